/**
 * What crosses between the main thread and a parsing thread: plain data that structured clone carries, bytes as buffers
 * of their own so that they are moved rather than copied. Owns the shapes only.
 */
import type { AgentError } from '../../a2a/client.ts'
import type { Endpoint, Operation } from '../../a2a/operations.ts'
import type { JsonText } from '../../domain/json-text.ts'
import type { Observation } from '../../domain/observation.ts'
import type { Began } from './deadline.ts'

/** Bytes of a `raw` part, to be on disk before the observation that names them is committed. */
export interface Blob {
  /** SHA-256, lower-case hex. */
  readonly digest: string
  readonly bytes: Uint8Array
}

export type ParsedEvent =
  | {
      readonly kind: 'observation'
      readonly observation: Observation
      readonly blobs: Blob[]
      /** Of the whole event, as persistence/text-digest.ts makes it, where that is large or its history long. */
      readonly digest?: string
      /**
       * Where its history is long: events to be told ahead of the observation, in this order, which shows the end of it only; and the text of
       * the whole event. (domain/long-history.ts)
       */
      readonly long?: { readonly ahead: readonly JsonText[]; readonly whole: JsonText }
      /** A push only. `digest`: SHA-256 of its body, hex. `tenant`: the one that it names, if any. */
      readonly push?: { readonly digest: string; readonly tenant: string | null }
    }
  /** The agent declined, in its own words. */
  | { readonly kind: 'refused'; readonly error: AgentError }
  /**
   * What was received proves nothing. `defect` is for the log: our own code failed on it. `oversized`: it is over a limit of ours,
   * and will be however often it is said. `lost`: why nobody has read it: what its thread died of, that it took too long, or that
   * none was free.
   */
  | {
      readonly kind: 'invalid'
      readonly message: string
      readonly defect?: string
      readonly oversized?: true
      readonly lost?: string
      /** A push only: whether its body is no event at all, or an event that cannot be read. */
      readonly fault?: 'envelope' | 'payload'
    }

/** An event that says something of a task. */
export type SeenEvent = ParsedEvent & { readonly kind: 'observation' }

/** Operations whose answer is an event or a task. */
export type ReplyOperation = Extract<Operation, 'send' | 'stream' | 'get' | 'cancel' | 'subscribe'>

export interface Reply {
  readonly status: number
  readonly contentType: string
  readonly body: Uint8Array
}

export interface FramesTask {
  readonly kind: 'frames'
  readonly endpoint: Endpoint
  readonly requestId: string
  readonly frames: readonly Uint8Array[]
}

export interface ReplyTask {
  readonly kind: 'reply'
  readonly endpoint: Endpoint
  readonly requestId: string
  readonly operation: ReplyOperation
  readonly reply: Reply
}

/** The body of a delivery: one event, that nobody asked for. */
export interface PushTask {
  readonly kind: 'push'
  readonly body: Uint8Array
}

export type ParserTask = FramesTask | ReplyTask | PushTask

/** What a thread is given: the work, and where it says that it has begun. */
export interface ThreadTask {
  readonly task: ParserTask
  readonly began: Began
}
