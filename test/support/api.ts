/**
 * The console's API as a test speaks it: plain fetch, answers whole and checked by the domain's own schemas, event streams
 * as events. Owns no expectation.
 */
import { z } from 'zod'
import { FrameSplitter, parseFrame } from '../../a2a/sse.ts'
import { RegisteredAgent } from '../../domain/agent.ts'
import { Command } from '../../domain/command.ts'
import { TaskView } from '../../domain/task.ts'

type Headers_ = Readonly<Record<string, string>>

export interface Reply {
  readonly status: number
  readonly headers: Headers
  /** Parsed JSON; the text itself where it is none. */
  readonly body: unknown
  readonly text: string
}

export interface StreamedEvent {
  readonly event: string
  readonly data: unknown
}

const Outcome = z.object({
  result: z.looseObject({}),
  localId: z.guid(),
  commandId: z.guid(),
  sessionId: z.string(),
  requestId: z.string(),
  telemetry: z.array(z.never()),
})
export type Outcome = z.infer<typeof Outcome>

export class Client {
  readonly url: string
  /** Sent with every request: a person's cookie and origin. */
  readonly #own: Headers_

  constructor(url: string, headers: Headers_ = {}) {
    this.url = url
    this.#own = headers
  }

  get(path: string, headers: Headers_ = {}): Promise<Reply> {
    return this.#ask(path, { headers })
  }

  delete(path: string): Promise<Reply> {
    return this.#ask(path, { method: 'DELETE' })
  }

  /** A string goes out as it is, everything else as JSON. */
  post(path: string, body?: unknown, headers: Headers_ = {}): Promise<Reply> {
    return this.#ask(path, posted(body, headers))
  }

  /** A request as it is, for answers that are read while they come. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    for (const [name, value] of Object.entries(this.#own)) if (!headers.has(name)) headers.set(name, value)
    return fetch(this.url + path, { redirect: 'manual', ...init, headers })
  }

  /** The events of a stream that is asked for with POST, or with GET where there is no body. */
  async stream(path: string, body?: unknown, headers: Headers_ = {}): Promise<EventStream> {
    const cut = new AbortController()
    const init = body === undefined ? { headers } : posted(body, headers)
    return new EventStream(await this.fetch(path, { ...init, signal: cut.signal }), cut)
  }

  /** Registers an agent and returns its id. */
  async register(cardUrl: string): Promise<string> {
    const { body } = await this.post('/api/agents', { cardUrl })
    return z.object({ agent: RegisteredAgent }).parse(body).agent.id
  }

  /** Sends and waits for the agent's answer; throws when it is no success. */
  async send(agentId: string, body: object): Promise<Outcome> {
    const reply = await this.post(`/api/agents/${agentId}/messages`, body)
    if (reply.status !== 200) throw new Error(`HTTP ${reply.status}: ${reply.text}`)
    return Outcome.parse(reply.body)
  }

  async command(id: string): Promise<Command> {
    return commandIn(await this.get(`/api/commands/${id}`))
  }

  async task(localId: string): Promise<TaskView> {
    return z.object({ task: TaskView }).parse((await this.get(`/api/tasks/${localId}`)).body).task
  }

  async #ask(path: string, init: RequestInit): Promise<Reply> {
    const response = await this.fetch(path, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: jsonOr(text), text }
  }
}

export const commandIn = ({ body }: Reply): Command => z.object({ command: Command }).parse(body).command

const posted = (body: unknown, headers: Headers_): RequestInit => ({
  method: 'POST',
  headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
  ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
})

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return text
    throw error
  }
}

const frameLimitBytes = 64 * 1024 * 1024

export class EventStream {
  readonly response: Response
  readonly #cut: AbortController
  readonly #events: AsyncGenerator<StreamedEvent, undefined>

  constructor(response: Response, cut: AbortController) {
    this.response = response
    this.#cut = cut
    this.#events = eventsOf(response)
  }

  /** The next event; throws when the stream has ended. */
  async next(): Promise<StreamedEvent> {
    const { done, value } = await this.#events.next()
    if (done) throw new Error(`The stream (HTTP ${this.response.status}) has ended.`)
    return value
  }

  /** Reads on until an event of that name, which is returned. */
  async until(event: string): Promise<StreamedEvent> {
    for (;;) {
      const next = await this.next()
      if (next.event === event) return next
    }
  }

  /** Everything that still comes, to the end. */
  async rest(): Promise<StreamedEvent[]> {
    const all: StreamedEvent[] = []
    for await (const event of this.#events) all.push(event)
    return all
  }

  /** Goes away, as a closed tab does. */
  cancel(): void {
    this.#cut.abort()
  }
}

async function* eventsOf(response: Response): AsyncGenerator<StreamedEvent, undefined> {
  const splitter = new FrameSplitter(frameLimitBytes)
  for await (const chunk of response.body ?? [])
    for (const bytes of splitter.push(chunk)) {
      const frame = parseFrame(bytes)
      if (frame) yield { event: frame.event, data: JSON.parse(frame.data) }
    }
}
