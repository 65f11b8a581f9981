/**
 * The vocabulary of agent traces: from `trace.*` artifacts and from the wrapper's AgentEvents to the console's event types. Owns types,
 * titles and levels; finding the events is sideband.ts.
 */
import type { JsonObject } from '../proto-json.ts'

export const traceUri = 'urn:x-a2a:trace:v1'

export interface Described {
  readonly type: string
  readonly title: string
  readonly level: 'debug' | 'info' | 'warning' | 'error'
}

const nameLimit = 200

const first = (data: JsonObject, names: readonly string[]): string | undefined => {
  for (const name of names) {
    const value = data[name]
    if (typeof value === 'string' && value !== '') return value.slice(0, nameLimit)
  }
  return undefined
}

/** Where senders put what happened: no key is specified, these are the ones in use. */
const outcomeNames = ['eventType', 'event_type', 'event', 'phase', 'outcome', 'status', 'state', 'action']
const outcome = (data: JsonObject): string => first(data, outcomeNames)?.toLowerCase() ?? ''
const hasFailed = (data: JsonObject): boolean =>
  data['isError'] === true ||
  data['is_error'] === true ||
  data['success'] === false ||
  (data['error'] !== undefined && data['error'] !== null && data['error'] !== '' && data['error'] !== false) ||
  /error|fail/.test(outcome(data))

const toolName = (data: JsonObject): string => {
  const name = first(data, ['toolName', 'tool_name', 'tool', 'name'])
  return name === undefined ? '' : `: ${name}`
}

function lifecycle(data: JsonObject): Described {
  if (hasFailed(data)) return { type: 'agent.error', title: 'Agent error', level: 'error' }
  if (/finish|complet|(^|[_. -])end|stop|done|success/.test(outcome(data)))
    return { type: 'agent.finished', title: 'Agent finished', level: 'info' }
  return { type: 'agent.started', title: 'Agent started', level: 'info' }
}

const toolStarted = (data: JsonObject): Described => ({
  type: 'tool.started',
  title: `Tool started${toolName(data)}`,
  level: 'info',
})

function toolEnded(data: JsonObject): Described {
  if (data['declined'] === true || /declin|reject|denied|deny/.test(outcome(data)))
    return { type: 'tool.declined', title: `Tool declined${toolName(data)}`, level: 'warning' }
  if (hasFailed(data)) return { type: 'tool.failed', title: `Tool failed${toolName(data)}`, level: 'error' }
  return { type: 'tool.completed', title: `Tool completed${toolName(data)}`, level: 'info' }
}

const thinking = (): Described => ({ type: 'agent.thinking', title: 'Thinking', level: 'debug' })
const decision = (): Described => ({ type: 'agent.decision', title: 'Decision', level: 'info' })
const delegation = (): Described => ({ type: 'agent.delegation', title: 'Delegation', level: 'info' })

const traces: ReadonlyMap<string, (data: JsonObject) => Described> = new Map([
  ['trace.lifecycle', lifecycle],
  ['trace.mcp.start', toolStarted],
  ['trace.mcp', toolEnded],
  ['trace.thinking', thinking],
  ['trace.thought', thinking],
  ['trace.decision', decision],
  ['trace.delegation', delegation],
])

/** What a trace artifact of this type says. A type that we do not know passes through with a title made of its name. */
export const describeTrace = (traceType: string, data: JsonObject): Described =>
  traces.get(traceType)?.(data) ?? { type: traceType, title: titleOf(traceType), level: 'info' }

const agentEvents: ReadonlyMap<string, (data: JsonObject) => Described> = new Map([
  ['tool_call_start', toolStarted],
  ['tool_call_end', toolEnded],
  ['thinking', thinking],
  ['decision', decision],
  ['agent_started', () => ({ type: 'agent.started', title: 'Agent started', level: 'info' })],
  ['agent_finished', () => ({ type: 'agent.finished', title: 'Agent finished', level: 'info' })],
  ['agent_error', () => ({ type: 'agent.error', title: 'Agent error', level: 'error' })],
  ['rate_limit', () => ({ type: 'rate_limit', title: 'Rate limit', level: 'warning' })],
])

/** What an AgentEvent of the wrapper says. */
export const describeAgentEvent = (eventType: string, data: JsonObject): Described =>
  agentEvents.get(eventType)?.(data) ?? { type: eventType, title: titleOf(eventType), level: 'info' }

/** `trace.cache-miss` → `Cache miss`. */
export function titleOf(type: string): string {
  const words = type
    .slice(0, nameLimit)
    .replace(/^trace\./, '')
    .replaceAll(/[._-]+/g, ' ')
    .trim()
  return words === '' ? 'Event' : words.charAt(0).toUpperCase() + words.slice(1)
}
