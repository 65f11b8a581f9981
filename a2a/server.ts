/**
 * The server side of A2A without I/O: an HTTP request becomes one operation in 1.0 shapes, and its result, error or
 * events become bytes in the dialect that the client spoke. Owns version negotiation and envelopes. Does not own
 * sockets, content types, tasks, or who may call (the server around it); nor parameters (server-params.ts), routes
 * (server-routes.ts) and the card (server-card.ts).
 */
import type { Results } from './client.ts'
import type { Operation } from './operations.ts'
import { WireError, isObject, present } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { methods } from './requests.ts'
import { Declined, bareError, rpcError, statusError } from './server-errors.ts'
import { readCall } from './server-params.ts'
import type { Call } from './server-params.ts'
import { matchRoute } from './server-routes.ts'
import { formatEvent } from './sse.ts'
import { kindEvent, kindTask, methodsV03, nestedPushConfig } from './v0_3.ts'
import { protoEvent, protoPushConfig, protoTask } from './v0_3-rest.ts'
import type { PushConfig, StreamResponse } from './messages.ts'

export interface ServerRequest {
  readonly method: string
  /**
   * Below the mount, still escaped, without the query: `/tasks/t%201:cancel`. JSON-RPC has one address and ignores it.
   */
  readonly path: string
  readonly query: URLSearchParams
  /** Names in lower case, as Node.js gives them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** As received; empty when there is none. */
  readonly body: string
}

/** The dialect to answer in. */
export interface Dialect {
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly version: '1.0' | '0.3'
  /** JSON-RPC only; null when the request's could not be read. */
  readonly rpcId?: string | number | null
  readonly mediaType: string
}

export type Decoded =
  | {
      readonly kind: 'call'
      readonly call: Call
      readonly dialect: Dialect
      /** URIs the client opted into, in order, without repetition. */
      readonly extensions: readonly string[]
    }
  | { readonly kind: 'declined'; readonly error: Declined; readonly dialect: Dialect }

export interface ServerResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Empty with 204. */
  readonly body: string
}

const operations = [
  ...(['send', 'stream', 'get', 'list', 'cancel', 'subscribe'] as const),
  ...(['pushCreate', 'pushGet', 'pushList', 'pushDelete', 'extendedCard'] as const),
] satisfies readonly Operation[]

const operationByMethod: ReadonlyMap<string, Operation> = new Map(operations.map((o) => [methods[o], o]))
const operationByMethodV03: ReadonlyMap<string, Operation> = new Map(
  operations.flatMap((o) => (o === 'list' ? [] : [[methodsV03[o], o] as const])),
)

/**
 * Reads a JSON-RPC request. The method's name decides the shapes: a 0.3 name means 0.3, a 1.0 name means 1.0 when the
 * version asked for is 1.0 or none (0.3 clients of wrappers mix them). Notifications and batches are refused: every
 * operation has an answer.
 */
export function decodeRpc(request: ServerRequest): Decoded {
  const dialect: Dialect = { binding: 'JSONRPC', version: '1.0', rpcId: null, mediaType: 'application/json' }
  const envelope = parseBody(request.body)
  if (envelope instanceof Declined) return { kind: 'declined', error: envelope, dialect }
  if (!isObject(envelope)) return declined(dialect, 'INVALID_REQUEST', 'The request must be one JSON-RPC object.')
  const { id, method, params } = envelope
  const known = typeof id === 'string' || (typeof id === 'number' && Number.isSafeInteger(id))
  const identified: Dialect = { ...dialect, rpcId: known ? id : null }
  if (envelope['jsonrpc'] !== '2.0' || !known || typeof method !== 'string')
    return declined(identified, 'INVALID_REQUEST', 'A request needs jsonrpc "2.0", an id and a method.')
  const version = versionOf(request)
  const legacy = operationByMethodV03.get(method)
  const operation = legacy ?? operationByMethod.get(method)
  const spoken: Dialect = { ...identified, version: legacy === undefined ? '1.0' : '0.3' }
  if (!understood(version, spoken.version, legacy !== undefined)) return unsupported(spoken, version)
  if (operation === undefined)
    return declined(spoken, 'METHOD_NOT_FOUND', `There is no method ${method.slice(0, 100)}.`)
  if (params !== undefined && params !== null && !isObject(params))
    return declined(spoken, 'INVALID_PARAMS', 'params must be an object')
  const read = (): Call =>
    readCall(operation, isObject(params) ? params : {}, legacy === undefined ? '1.0' : '0.3 kind')
  return called(request, spoken, read)
}

/** Reads an HTTP+JSON request: paths under `/v1` mean 0.3, all others 1.0. */
export function decodeRest(request: ServerRequest): Decoded {
  const isV03 = /^\/+v1(\/|$)/.test(request.path)
  const dialect: Dialect = {
    binding: 'HTTP+JSON',
    version: isV03 ? '0.3' : '1.0',
    mediaType: !isV03 && acceptsA2aJson(request) ? 'application/a2a+json' : 'application/json',
  }
  const version = versionOf(request)
  if (!understood(version, dialect.version, isV03)) return unsupported(dialect, version)
  const body = request.body === '' ? {} : parseBody(request.body)
  if (body instanceof Declined) return { kind: 'declined', error: body, dialect }
  if (!isObject(body)) return declined(dialect, 'INVALID_REQUEST', 'The body must be a JSON object.')
  return called(request, dialect, () => {
    const route = matchRoute(request.method, request.path)
    if (!route) throw new Declined('METHOD_NOT_FOUND', `There is no ${request.method} ${request.path.slice(0, 200)}.`)
    return readCall(route.operation, { ...restParams(request, body), ...route.named }, isV03 ? '0.3 proto' : '1.0')
  })
}

/** A GET says everything in its query, any other request in its body. */
function restParams(request: ServerRequest, body: JsonObject): JsonObject {
  if (request.method !== 'GET') return body
  const { 'A2A-Version': _, ...asked } = Object.fromEntries(request.query)
  return asked
}

function called(request: ServerRequest, dialect: Dialect, read: () => Call): Decoded {
  try {
    return { kind: 'call', call: read(), dialect, extensions: extensionsOf(request) }
  } catch (error) {
    if (error instanceof WireError) return declined(dialect, 'INVALID_PARAMS', error.message)
    if (error instanceof Declined) return { kind: 'declined', error, dialect }
    throw error
  }
}

const declined = (dialect: Dialect, reason: ConstructorParameters<typeof Declined>[0], message: string): Decoded => ({
  kind: 'declined',
  error: new Declined(reason, message),
  dialect,
})

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    if (error instanceof SyntaxError) return new Declined('PARSE_ERROR', 'The body is not JSON.')
    throw error
  }
}

/** The version asked for, as Major.Minor because patches must not count [specification 3.6]; null when none was. */
export function versionOf({ headers, query }: Pick<ServerRequest, 'headers' | 'query'>): string | null {
  const asked = (first(headers['a2a-version']) ?? query.get('A2A-Version') ?? '').trim()
  if (asked === '') return null
  return /^(\d{1,4}\.\d{1,4})(\.\d{1,6})?$/.exec(asked)?.[1] ?? asked.slice(0, 40)
}

/**
 * 0.3 names and paths are plain enough to serve whoever says 1.0 beside them; 1.0 shapes go to nobody who asked for
 * 0.3.
 */
const understood = (asked: string | null, spoken: '1.0' | '0.3', isLegacy: boolean): boolean =>
  asked === null || asked === spoken || (isLegacy && asked === '1.0')

function unsupported(dialect: Dialect, asked: string | null): Decoded {
  const facts = { requestedVersion: asked ?? '', supportedVersions: '1.0,0.3' }
  const error = new Declined('VERSION_NOT_SUPPORTED', `A2A ${asked ?? ''} is not supported here.`, facts)
  return { kind: 'declined', error, dialect }
}

const first = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value)

const acceptsA2aJson = ({ headers }: ServerRequest): boolean =>
  (first(headers['accept']) ?? '').toLowerCase().includes('application/a2a+json')

const extensionsLimit = 100

/** 1.0 and 0.3 name the header differently; a client that speaks both may send both. */
function extensionsOf({ headers }: ServerRequest): string[] {
  const values = [headers['a2a-extensions'], headers['x-a2a-extensions']].flat()
  const uris = values.flatMap((value) => value?.split(',') ?? []).map((uri) => uri.trim())
  return [...new Set(uris.filter((uri) => uri !== ''))].slice(0, extensionsLimit)
}

type Writers = { readonly [O in Exclude<Operation, 'pushDelete'>]: (value: Results[O]) => unknown }

const same = (value: unknown): unknown => value

const writers1_0: Writers = {
  send: same,
  stream: same,
  get: same,
  list: same,
  cancel: same,
  subscribe: same,
  pushCreate: same,
  pushGet: same,
  pushList: same,
  extendedCard: same,
}
const writersKind: Writers = {
  ...writers1_0,
  send: kindEvent,
  stream: kindEvent,
  get: kindTask,
  cancel: kindTask,
  subscribe: kindEvent,
  pushCreate: nestedPushConfig,
  pushGet: nestedPushConfig,
  pushList: ({ configs }) => configs.map(nestedPushConfig),
}
const protoConfig = (config: PushConfig): JsonObject => protoPushConfig({ ...config, taskId: config.taskId ?? '' })
const writersProto: Writers = {
  ...writers1_0,
  send: protoEvent,
  stream: protoEvent,
  get: protoTask,
  cancel: protoTask,
  subscribe: protoEvent,
  pushCreate: protoConfig,
  pushGet: protoConfig,
  pushList: ({ configs }) => ({ configs: configs.map(protoConfig) }),
}

const writersFor = ({ binding, version }: Dialect): Writers =>
  version === '1.0' ? writers1_0 : binding === 'JSONRPC' ? writersKind : writersProto

/** Headers of every answer. `activated`: the extensions in use for this request, which SHOULD be echoed. */
const commonHeaders = ({ version }: Dialect, activated: readonly string[]): Record<string, string> => ({
  'A2A-Version': version,
  ...(activated.length === 0
    ? {}
    : { [version === '1.0' ? 'A2A-Extensions' : 'X-A2A-Extensions']: activated.join(',') }),
})

/** The whole answer of an operation that succeeded. A deleted push configuration is null. */
export function encodeResult<O extends Operation>(
  dialect: Dialect,
  operation: O,
  value: Results[O],
  activated: readonly string[] = [],
): ServerResponse {
  const headers = { ...commonHeaders(dialect, activated), 'Content-Type': dialect.mediaType }
  const result = operation === 'pushDelete' ? null : written(dialect, operation, value)
  if (dialect.binding === 'JSONRPC')
    return { status: 200, headers, body: JSON.stringify({ jsonrpc: '2.0', id: dialect.rpcId, result }) }
  if (operation === 'pushDelete') return { status: 204, headers: commonHeaders(dialect, activated), body: '' }
  // Servers of 0.3 answer a send with 201 because the proto made it a creation.
  const created = dialect.version === '0.3' && operation === 'send'
  return { status: created ? 201 : 200, headers, body: JSON.stringify(result) }
}

function written<O extends Operation>(dialect: Dialect, operation: O, value: Results[O]): unknown {
  const table: { readonly [P in Operation]: (value: Results[P]) => unknown } = {
    ...writersFor(dialect),
    pushDelete: same,
  }
  return table[operation](value)
}

/** The whole answer of an operation that was declined, or could not be read. JSON-RPC errors travel with HTTP 200. */
export function encodeError(dialect: Dialect, error: Declined): ServerResponse {
  const headers = { ...commonHeaders(dialect, []), 'Content-Type': dialect.mediaType }
  const status = dialect.binding === 'JSONRPC' ? 200 : error.error.httpStatus
  return { status, headers, body: JSON.stringify(errorBody(dialect, error)) }
}

function errorBody(dialect: Dialect, error: Declined): JsonObject {
  if (dialect.binding === 'JSONRPC') {
    const said = dialect.version === '1.0' ? rpcError(error) : bareError(error)
    return present({ jsonrpc: '2.0', id: dialect.rpcId, error: said })
  }
  return dialect.version === '1.0' ? statusError(error) : bareError(error)
}

/** The head of a stream's answer, status 200. `X-Accel-Buffering` keeps proxies from holding events back. */
export const streamHeaders = (dialect: Dialect, activated: readonly string[] = []): Record<string, string> => ({
  ...commonHeaders(dialect, activated),
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
})

/** Writes nothing that a client sees; due every 15 s, or proxies take the stream for dead. */
export const keepAlive = ': keep-alive\n\n'

/** One event of a stream. */
export function encodeEvent(dialect: Dialect, event: StreamResponse): string {
  const result = writersFor(dialect).stream(event)
  const data = dialect.binding === 'JSONRPC' ? { jsonrpc: '2.0', id: dialect.rpcId, result } : result
  return formatEvent({ data: JSON.stringify(data) })
}

/** The last event of a stream that fails after its head was sent. */
export const encodeStreamError = (dialect: Dialect, error: Declined): string =>
  formatEvent({ event: 'error', data: JSON.stringify(errorBody(dialect, error)) })
