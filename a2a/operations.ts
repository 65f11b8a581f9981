/**
 * The eleven operations of A2A [a2a.proto v1.0.1, A2AService], where an agent serves them and what each is asked with. Only shapes: what is
 * said on the wire is requests.ts, what comes back client.ts.
 */
import type { Message, PushConfig, SendConfiguration } from './messages.ts'

/** One interface of an agent's card. `tenant` is said in every request exactly as the card has it, or not at all. */
export interface Endpoint {
  readonly url: string
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly version: '1.0' | '0.3'
  readonly tenant?: string
}

export type Operation =
  | 'send'
  | 'stream'
  | 'get'
  | 'list'
  | 'cancel'
  | 'subscribe'
  | 'pushCreate'
  | 'pushGet'
  | 'pushList'
  | 'pushDelete'
  | 'extendedCard'

interface SendParams {
  readonly message: Message
  readonly configuration?: SendConfiguration
  readonly metadata?: Record<string, unknown>
}

export interface Params {
  send: SendParams
  stream: SendParams
  get: { readonly id: string; readonly historyLength?: number }
  list: {
    readonly contextId?: string
    /** A 1.0 state name. */
    readonly status?: string
    /** 1 to 100; the server's default is 50. */
    readonly pageSize?: number
    readonly pageToken?: string
    readonly historyLength?: number
    readonly statusTimestampAfter?: string
    readonly includeArtifacts?: boolean
  }
  cancel: { readonly id: string; readonly metadata?: Record<string, unknown> }
  subscribe: { readonly id: string }
  /** With an own `id`, repeating it is the same configuration. */
  pushCreate: PushConfig & { readonly taskId: string }
  pushGet: { readonly taskId: string; readonly id: string }
  pushList: { readonly taskId: string; readonly pageSize?: number; readonly pageToken?: string }
  pushDelete: { readonly taskId: string; readonly id: string }
  extendedCard: Record<never, never>
}
