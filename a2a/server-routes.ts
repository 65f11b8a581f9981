/**
 * The routes of HTTP+JSON as one table [a2a.proto 1.0, google.api.http; 0.3 likewise]. Owns matching a path and what
 * the path says about the parameters. Does not own bodies (server-params.ts). Paths are below whatever the server is
 * mounted on.
 */
import type { Operation } from './operations.ts'
import { WireError } from './proto-json.ts'

export interface Route {
  readonly operation: Operation
  readonly version: '1.0' | '0.3'
  /** Ids and tenant from the path. They win over the body's. */
  readonly named: Readonly<Record<string, string>>
}

/** A segment that stands for a name, perhaps with a verb behind it (`{id}:cancel`), or for itself. */
type Row = readonly [methods: string, path: string, operation: Operation]

const rows: readonly Row[] = [
  ['POST', 'message:send', 'send'],
  ['POST', 'message:stream', 'stream'],
  ['POST', 'tasks/{id}:cancel', 'cancel'],
  // The specification's text says POST, its proto GET; clients do either (A2A#1574), so both are served.
  ['POST GET', 'tasks/{id}:subscribe', 'subscribe'],
  ['POST', 'tasks/{taskId}/pushNotificationConfigs', 'pushCreate'],
  ['GET', 'tasks/{taskId}/pushNotificationConfigs', 'pushList'],
  ['GET', 'tasks/{taskId}/pushNotificationConfigs/{id}', 'pushGet'],
  ['DELETE', 'tasks/{taskId}/pushNotificationConfigs/{id}', 'pushDelete'],
  ['GET', 'tasks/{id}', 'get'],
]
const rows1_0: readonly Row[] = [...rows, ['GET', 'tasks', 'list'], ['GET', 'extendedAgentCard', 'extendedCard']]
/** 0.3 cannot list. */
const rows0_3: readonly Row[] = [...rows, ['GET', 'card', 'extendedCard']]

/** Finds the route of a request; null when there is none. Throws WireError when an id is not properly escaped. */
export function matchRoute(method: string, path: string): Route | null {
  const segments = path.replace(/^\/+|\/+$/g, '').split('/')
  const [first, ...rest] = segments
  // So a tenant cannot be called v1; the specification reserves nothing, but every 0.3 client has this prefix.
  if (first === 'v1') return matchRows(rows0_3, '0.3', method, rest)
  const plain = matchRows(rows1_0, '1.0', method, segments)
  if (plain || first === undefined) return plain
  const below = matchRows(rows1_0, '1.0', method, rest)
  return below && { ...below, named: { ...below.named, tenant: unescaped(first) } }
}

function matchRows(
  table: readonly Row[],
  version: Route['version'],
  method: string,
  path: readonly string[],
): Route | null {
  for (const [methods, pattern, operation] of table) {
    const named = methods.split(' ').includes(method) ? matchPath(pattern.split('/'), path) : null
    if (named) return { operation, version, named }
  }
  return null
}

function matchPath(pattern: readonly string[], path: readonly string[]): Record<string, string> | null {
  if (pattern.length !== path.length) return null
  const named: Record<string, string> = {}
  for (const [index, expected] of pattern.entries()) {
    const actual = path[index] ?? ''
    const placeholder = /^\{(\w+)\}(:\w+)?$/.exec(expected)
    if (!placeholder) {
      if (actual !== expected) return null
      continue
    }
    const [, name = '', verb = ''] = placeholder
    if (!actual.endsWith(verb) || actual.length === verb.length) return null
    named[name] = unescaped(actual.slice(0, actual.length - verb.length))
  }
  return named
}

function unescaped(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch (error) {
    if (error instanceof URIError) throw new WireError('path', 'is not properly escaped')
    throw error
  }
}
