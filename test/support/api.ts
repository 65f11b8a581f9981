/** The console's API as a test speaks it: plain fetch, answers whole, event streams as events. Owns no assertion. */
import { FrameSplitter, parseFrame } from '../../a2a/sse.ts'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  /** Parsed JSON; the text itself where it is none. */
  readonly body: never
  readonly text: string
}

export interface StreamedEvent {
  readonly event: string
  readonly data: Readonly<Record<string, never>>
}

export interface Asked {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface Client {
  get(path: string, asked?: Asked): Promise<Reply>
  post(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>
  delete(path: string): Promise<Reply>
  /** A request as it is, for answers that are read while they come. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** The events of a stream that was asked for with POST, or with GET where there is no body. */
  stream(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<EventStream>
}

export interface EventStream extends AsyncIterable<StreamedEvent> {
  readonly response: Response
  /** The next event; rejects when the stream has ended. */
  next(): Promise<StreamedEvent>
  /** Everything that still comes, to the end. */
  rest(): Promise<StreamedEvent[]>
  /** Goes away, as a closed tab does. */
  cancel(): Promise<void>
}

export function clientOf(url: string): Client {
  const ask = async (path: string, init: RequestInit): Promise<Reply> => {
    const response = await fetch(url + path, { redirect: 'manual', ...init })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: parsed(text) as never, text }
  }
  const sent = (body: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit => ({
    method: 'POST',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return {
    get: (path, { headers = {}, signal } = {}) => ask(path, { headers, ...(signal ? { signal } : {}) }),
    post: (path, body, headers) => ask(path, sent(body, headers)),
    delete: (path) => ask(path, { method: 'DELETE' }),
    fetch: (path, init) => fetch(url + path, { redirect: 'manual', ...init }),
    async stream(path, body, headers) {
      const cut = new AbortController()
      const init = body === undefined ? { headers: headers ?? {} } : sent(body, headers)
      return openEvents(await fetch(url + path, { ...init, signal: cut.signal }), cut)
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return text
    throw error
  }
}

const frameLimitBytes = 64 * 1024 * 1024

function openEvents(response: Response, cut: AbortController): EventStream {
  const events = eventsOf(response)
  return {
    response,
    [Symbol.asyncIterator]: () => events,
    async next() {
      const { done, value } = await events.next()
      if (done) throw new Error(`The stream (HTTP ${response.status}) has ended.`)
      return value
    },
    async rest() {
      const all: StreamedEvent[] = []
      for await (const event of events) all.push(event)
      return all
    },
    async cancel() {
      cut.abort()
      await response.body?.cancel().catch((error: unknown) => {
        if (!cut.signal.aborted) throw error
      })
    },
  }
}

async function* eventsOf(response: Response): AsyncGenerator<StreamedEvent, undefined> {
  const splitter = new FrameSplitter(frameLimitBytes)
  for await (const chunk of response.body ?? []) {
    for (const bytes of splitter.push(chunk)) {
      const frame = parseFrame(bytes)
      if (frame) yield { event: frame.event, data: JSON.parse(frame.data) as never }
    }
  }
}
