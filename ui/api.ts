/**
 * The console's own HTTP API, typed by the domain's schemas. Owns the prefix, the shape of a failure and nothing else:
 * caching is queries.ts, the change signal is live.ts, idempotency keys come from whoever makes the attempt.
 */
import * as z from 'zod/mini'
import { ReadPace } from './read-pace.ts'

/**
 * What went wrong, as a person may act on it. `refused`: the console said no, in its own words. `unreachable`: nobody
 * answered, so for a send the outcome is open. `signed-out`: 401. `malformed`: an answer we do not understand.
 */
export type FaultKind = 'refused' | 'unreachable' | 'signed-out' | 'malformed'

export class ApiFault extends Error {
  override readonly name = 'ApiFault'
  readonly kind: FaultKind
  /** HTTP status; 0 where nobody answered. */
  readonly status: number
  constructor(kind: FaultKind, status: number, message: string) {
    super(message)
    this.kind = kind
    this.status = status
  }
}

const ErrorBody = z.object({ error: z.object({ message: z.string() }) })

/** zod's mini schemas, narrowed to what is asked of them here. */
export type Schema<T> = z.ZodMiniType<T>

export interface Mutation {
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly body?: unknown
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** Told of what answers say besides what was asked. */
export interface Listener {
  /** Every failure, besides whoever asked. */
  readonly failed: (fault: ApiFault) => void
  /** Whose session the console saw, by an id that stays: two people may have one name. */
  readonly answeredTo: (personId: string) => void
}

export class Api {
  /** Where the console is mounted, without a trailing slash: '' or '/console'. */
  readonly prefix: string
  readonly pace = new ReadPace()
  readonly #listener: Listener

  constructor(prefix: string, listener: Listener) {
    this.prefix = prefix.replace(/\/$/, '')
    this.#listener = listener
  }

  /** `path` starts with `/api/`. Throws ApiFault. */
  async get<T>(path: string, schema: Schema<T>, signal?: AbortSignal): Promise<T> {
    return this.#read(await this.request(path, signal ? { signal } : {}), schema, signal)
  }

  /** A change. Throws ApiFault; one of kind `unreachable` says nothing about whether it took place. */
  async change<T>(path: string, mutation: Mutation, schema: Schema<T>): Promise<T> {
    return this.#read(await this.send(path, mutation), schema)
  }

  /** A change whose answer is read by the caller: the event stream. */
  send(path: string, mutation: Mutation, accept = 'application/json'): Promise<Response> {
    const { method, body, idempotencyKey, signal } = mutation
    const headers: Record<string, string> = { accept }
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
    return this.request(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    })
  }

  /** `expected`: statuses that are an answer to the caller, and no failure. Throws ApiFault. */
  async request(path: string, init: RequestInit, expected: readonly number[] = []): Promise<Response> {
    if (init.method === undefined) this.pace.noteRead()
    const response = await this.#fetch(path, init)
    const person = response.headers.get('x-viewer-id')
    if (person !== null) this.#listener.answeredTo(person)
    if (response.ok || expected.includes(response.status)) return response
    const kind = response.status === 401 ? 'signed-out' : 'refused'
    if (response.status === 429) this.pace.hold(1000 * (Number(response.headers.get('retry-after')) || 1))
    throw this.#fault(kind, response.status, wordsOf(await refusalText(response), response.status))
  }

  #fault(kind: FaultKind, status: number, message: string): ApiFault {
    const fault = new ApiFault(kind, status, message)
    this.#listener.failed(fault)
    return fault
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(this.prefix + path, { credentials: 'same-origin', redirect: 'error', ...init })
    } catch (cause) {
      if (init.signal?.aborted) throw cause
      throw this.#fault('unreachable', 0, 'The console did not answer. Check the connection and try again.')
    }
  }

  async #read<T>(response: Response, schema: Schema<T>, signal?: AbortSignal): Promise<T> {
    const body: unknown = await response.json().catch(() => undefined)
    // Cut off by this page itself: no fault, and nobody is to be told of one.
    signal?.throwIfAborted()
    return this.#understood(body, schema, response.status)
  }

  /** What an answer that had begun says that it failed with. */
  refused(status: number, message: string): ApiFault {
    return this.#fault('refused', status, wordsOf(message, status))
  }

  /** One event of an answer that comes as a stream. Throws ApiFault. */
  read<T>(said: unknown, schema: Schema<T>): T {
    return this.#understood(said, schema, 200)
  }

  #understood<T>(body: unknown, schema: Schema<T>, status: number): T {
    const parsed = schema.safeParse(body)
    if (parsed.success) return parsed.data
    throw this.#fault('malformed', status, 'The console answered in a form this page does not know. Reload it.')
  }
}

/** What the specification has the console say of a database that is down, to whoever asks for whatever. */
const outage = 'Identity service unavailable.'

/** The server's own sentence, but for an outage: nobody asked about signing in. */
const wordsOf = (said: string | undefined, status: number): string =>
  said === outage ? 'The database does not answer.' : (said ?? `The console answered ${status}.`)

/** The artifact route answers in plain text, a proxy in whatever it likes: that is no sentence of ours. */
async function refusalText(response: Response): Promise<string | undefined> {
  const parsed = ErrorBody.safeParse(await response.json().catch(() => undefined))
  return parsed.data?.error.message
}

/** A failure of any kind as a fault; anything that is not one is a defect and is thrown on. */
export function faultOf(error: unknown): ApiFault {
  if (error instanceof ApiFault) return error
  throw error
}
