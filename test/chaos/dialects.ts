/**
 * The four ways in which agents speak A2A (two versions, two bindings), as the witness agent needs them: reading a request,
 * writing an answer. Shares no code with the product: a suspect is no witness. Does not own what the agent does
 * (witness.ts).
 */
import { recordOf } from '../support/peers/operations.ts'

export const dialectNames = ['1.0-jsonrpc', '1.0-rest', '0.3-jsonrpc', '0.3-rest'] as const
export type DialectName = (typeof dialectNames)[number]

/** A task as the witness keeps it; `state` is the last part of the 1.0 name, in lower case. */
export interface WitnessTask {
  readonly id: string
  readonly contextId: string
  readonly messageId: string
  readonly dialect: DialectName
  state: 'submitted' | 'working' | 'input-required' | 'completed' | 'canceled'
  /** Undefined: it does not say since when. */
  stateAt: string | undefined
  readonly chunks: string[]
}

export const isOver = ({ state }: WitnessTask): boolean => state === 'completed' || state === 'canceled'

export type Said =
  /** `file`: its words, which are a file of their own; said in 1.0 alone. */
  | { readonly kind: 'message'; readonly messageId: string; readonly text: string; readonly file?: string }
  | { readonly kind: 'task'; readonly task: WitnessTask }
  | { readonly kind: 'status'; readonly task: WitnessTask }
  | { readonly kind: 'chunk'; readonly task: WitnessTask; readonly index: number; readonly last: boolean }

/** Of each message another one. */
export const fileOf = (messageId: string): string => `File of ${messageId}.`

export interface Dialect {
  readonly version: '1.0' | '0.3'
  readonly rpc: boolean
  /** An event, or the answer to a send. */
  event(said: Said): unknown
  /** A bare task: the answer to a get. */
  task(task: WitnessTask): unknown
}

const artifactId = 'result'

const one: Omit<Dialect, 'rpc'> = {
  version: '1.0',
  event(said) {
    if (said.kind === 'message') return { message: message1(said) }
    if (said.kind === 'task') return { task: one.task(said.task) }
    const { id: taskId, contextId } = said.task
    if (said.kind === 'status') return { statusUpdate: { taskId, contextId, status: status1(said.task) } }
    return { artifactUpdate: { taskId, contextId, artifact: artifactOf([{ text: chunk(said) }]), ...flow(said) } }
  },
  task: (task) => ({
    id: task.id,
    contextId: task.contextId,
    status: status1(task),
    artifacts: task.chunks.length === 0 ? [] : [artifactOf(task.chunks.map((text) => ({ text })))],
    history: [],
  }),
}

const kinds: Omit<Dialect, 'rpc'> = {
  version: '0.3',
  event(said) {
    if (said.kind === 'message')
      return {
        kind: 'message',
        messageId: said.messageId,
        role: 'agent',
        parts: [{ kind: 'text', text: said.text }],
      }
    if (said.kind === 'task') return kinds.task(said.task)
    const { id: taskId, contextId } = said.task
    if (said.kind === 'status')
      return {
        kind: 'status-update',
        taskId,
        contextId,
        status: status3(said.task),
        final: isOver(said.task),
      }
    const artifact = artifactOf([{ kind: 'text', text: chunk(said) }])
    return { kind: 'artifact-update', taskId, contextId, artifact, ...flow(said) }
  },
  task: (task) => ({
    kind: 'task',
    id: task.id,
    contextId: task.contextId,
    status: status3(task),
    artifacts: task.chunks.length === 0 ? [] : [artifactOf(task.chunks.map((text) => ({ kind: 'text', text })))],
    history: [],
  }),
}

/** What 0.3 servers put on the wire over REST: its proto's JSON, where a message's parts are called content. */
const proto: Omit<Dialect, 'rpc'> = {
  version: '0.3',
  event(said) {
    if (said.kind !== 'message') return one.event(said)
    const { messageId, text } = said
    return { message: { messageId, role: 'ROLE_AGENT', content: [{ text }] } }
  },
  task: one.task,
}

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  '1.0-jsonrpc': { ...one, rpc: true },
  '1.0-rest': { ...one, rpc: false },
  '0.3-jsonrpc': { ...kinds, rpc: true },
  '0.3-rest': { ...proto, rpc: false },
}

const message1 = ({ messageId, text, file }: Extract<Said, { kind: 'message' }>) => ({
  messageId,
  role: 'ROLE_AGENT',
  parts: [{ text }, ...(file === undefined ? [] : [{ raw: btoa(file), mediaType: 'application/octet-stream' }])],
})
const status1 = ({ state, stateAt }: WitnessTask) => ({
  state: `TASK_STATE_${state.toUpperCase().replace('-', '_')}`,
  timestamp: stateAt,
})
const status3 = ({ state, stateAt }: WitnessTask) => ({ state, timestamp: stateAt })
const artifactOf = (parts: readonly unknown[]) => ({ artifactId, name: artifactId, parts })
const chunk = (said: { readonly task: WitnessTask; readonly index: number }): string =>
  said.task.chunks[said.index] ?? ''
const flow = ({ index, last }: { readonly index: number; readonly last: boolean }) => ({
  append: index > 0,
  lastChunk: last,
})

function messageIn(body: unknown): Record<string, unknown> {
  const params = recordOf(recordOf(body)['params'] ?? body)
  return recordOf(params['message'] ?? params['request'])
}

/** The task that a message continues; empty: none. */
export function taskIn(body: unknown): string {
  const { taskId } = messageIn(body)
  return typeof taskId === 'string' ? taskId : ''
}

/** The words of a message, in whichever shape it came. */
export function wordsIn(body: unknown): string {
  const message = messageIn(body)
  const parts: unknown = message['parts'] ?? message['content']
  if (!Array.isArray(parts)) return ''
  return parts.map((part: unknown) => String(recordOf(part)['text'] ?? '')).join('')
}

/** `calls`: it pushes, and does not stream. */
export function cardOf(name: DialectName, origin: string, calls: boolean): Record<string, unknown> {
  const url = `${origin}/${name}`
  const { version, rpc } = dialects[name]
  const binding = rpc ? 'JSONRPC' : 'HTTP+JSON'
  const plain = {
    name: `Witness ${name}`,
    description: 'Writes down what reaches it before it answers.',
    version: '1.0.0',
    capabilities: { streaming: !calls, pushNotifications: calls },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'act', name: 'Act', description: 'Answers.', tags: ['test'] }],
  }
  if (version === '0.3') return { ...plain, protocolVersion: '0.3.0', url, preferredTransport: binding }
  return { ...plain, supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: '1.0' }] }
}
