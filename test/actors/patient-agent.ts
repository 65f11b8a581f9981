/** An agent of one task that ends no stream by itself and does what it is told: for what a published peer cannot be brought to do. */
import type { ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { interfaceEntry } from '../support/peers/card.ts'
import { operationOf, recordOf } from '../support/peers/operations.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'

export interface Saying {
  /** How long before now, by its clock, milliseconds. */
  readonly agoMs?: number
  /** Texts of the parts of its one artifact, from now on. */
  readonly made?: readonly string[]
  /** Nobody hears of it but who asks. */
  readonly isSilent?: true
}

export interface PatientOptions {
  readonly streaming?: boolean
  /** What a stream begins with: the task, what comes next, or every chunk of its artifact anew, and then it ends. */
  readonly begins?: 'with the task' | 'with what comes' | 'with all chunks'
  /** False: whoever asks for the task is refused. */
  readonly isShown?: false
}

const cardOf = (origin: string, streaming: boolean): object => ({
  name: 'Patient agent',
  description: 'Ends no stream.',
  version: '1.0.0',
  supportedInterfaces: [interfaceEntry(`${origin}/rpc`, 'JSONRPC', undefined)],
  capabilities: { streaming, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'wait', name: 'Wait', description: 'Waits.', tags: ['test'] }],
})

const event = (id: unknown, result: object): string => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`

/** Of its one artifact. */
const chunkOf = (taskId: string, text: string, append: boolean): object => ({
  artifactUpdate: { taskId, contextId: 'c', append, artifact: { artifactId: 'a', parts: [{ text }] } },
})

/** Streams that somebody holds. */
class Listeners {
  readonly #open = new Set<{ readonly response: ServerResponse; readonly id: unknown }>()
  #opened = 0

  add(response: ServerResponse, id: unknown, first: readonly object[]): void {
    const stream = { response, id }
    this.#open.add(stream)
    this.#opened += 1
    response.on('close', () => this.#open.delete(stream))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    for (const result of first) response.write(event(id, result))
  }

  /** How many there are, and how many were opened so far. */
  get counted(): { readonly held: number; readonly opened: number } {
    return { held: this.#open.size, opened: this.#opened }
  }

  tell(result: object): void {
    for (const { response, id } of this.#open) response.write(event(id, result))
  }

  cutOff(): void {
    for (const { response } of this.#open) response.destroy()
  }

  end(): void {
    for (const { response } of this.#open) response.end()
  }
}

/** Knows one task, works on it until told otherwise, and works on whenever somebody writes. */
export async function startPatientAgent(taskId: string, options: PatientOptions = {}) {
  const task = { id: taskId, contextId: 'c', status: { state: '', timestamp: '' }, artifacts: [] as object[] }
  const listeners = new Listeners()
  let looks = 0
  let knows = true
  let answersWith = { state: 'WORKING', agoMs: 0 }
  const { begins = 'with the task' } = options
  const chunks: string[] = []
  const firstWords = (): object[] => {
    if (begins === 'with the task') return [{ task }]
    return begins === 'with what comes' ? [] : chunks.map((text, n) => chunkOf(taskId, text, n > 0))
  }
  const turn = (state: string, { agoMs = 0, made }: Saying = {}): void => {
    task.status = { state: `TASK_STATE_${state}`, timestamp: new Date(Date.now() - agoMs).toISOString() }
    if (made) chunks.splice(0, Infinity, ...made)
    if (made) task.artifacts = [{ artifactId: 'a', parts: made.map((text) => ({ text })) }]
  }
  const listening = await listenOnLoopback((request, response) => {
    const reply = (body: unknown): void =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'GET') return reply(cardOf(listening.origin, options.streaming ?? true))
    const answer = async (): Promise<void> => {
      const body = await json(request)
      const { id } = recordOf(body)
      const result = (value: unknown): void => reply({ jsonrpc: '2.0', id, result: value })
      const { method } = operationOf('POST', '/', body)
      if (method === 'SendMessage') {
        if (answersWith.state !== '') turn(answersWith.state, answersWith)
        return result({ task })
      }
      if (method === 'ListTasks') {
        const tasks = knows ? [task] : []
        return result({ tasks, nextPageToken: '', pageSize: tasks.length, totalSize: tasks.length })
      }
      if (method === 'GetTask') looks += 1
      if (!knows || (method === 'GetTask' && options.isShown === false))
        return reply({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Task not found' } })
      if (method !== 'SubscribeToTask') return result(task)
      listeners.add(response, id, firstWords())
      if (begins === 'with all chunks') response.end()
    }
    answer().catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))))
  })
  return {
    cardUrl: `${listening.origin}/card.json`,
    /** Streams that somebody holds, and how many were opened so far. */
    streams: () => listeners.counted,
    /** How often somebody asked for the task. */
    looks: () => looks,
    /** Goes over to a state, and tells it to all who listen. */
    say: (state: string, saying: Saying = {}): void => {
      turn(state, saying)
      const { id, contextId, status } = task
      if (!saying.isSilent) listeners.tell({ statusUpdate: { taskId: id, contextId, status } })
    },
    /** A chunk of its artifact that only who listens hears of. */
    tellChunk: (text: string, append: boolean): void => listeners.tell(chunkOf(taskId, text, append)),
    /** Ends its streams, as something between the two does. */
    endStreams: (): void => listeners.end(),
    /** From now on it answers a message with this state, stamped so long before now; '': its status stays word for word. */
    answersWith: (state: string, agoMs: number): void => void (answersWith = { state, agoMs }),
    /** From now on it knows no task, or knows it again; whoever listens is cut off. */
    forget: (isForgotten: boolean): void => {
      knows = !isForgotten
      listeners.cutOff()
    },
    close: () => listening.close(),
  }
}
