/**
 * What happens in this process, for whoever measures it: Node.js' own channels [node:diagnostics_channel], which cost nothing
 * while nobody listens, so that an embedder's tracer can listen beside our metrics. No message holds an id. Does not count
 * (http/metrics.ts).
 */
import { channel } from 'node:diagnostics_channel'
import type { OutboundCode } from './outbound/policy.ts'

/** How a piece of work ended that was begun under a lease. */
export interface WorkEnded {
  readonly kind: string
  readonly work: string
  /**
   * `done`: its outcome was committed; `failed`: it threw, and that was; `lost`: somebody else held its lease by then, and the outcome
   * was discarded; `given back`: nothing was done; `unrecorded`: the outcome is known and could not be stored.
   */
  readonly end: 'done' | 'failed' | 'lost' | 'given back' | 'unrecorded'
  /** Since it began here. */
  readonly seconds: number
}

/** A request to an agent, or to whoever it names, that brought no whole answer; refused by the policy or not. */
export interface RequestFailed {
  readonly code: OutboundCode
}

/**
 * A look at a task beside a stream of it (actors/gap-looks.ts): `seen`, and what was missing of it is kept; `unread`: the agent did not
 * show its task in time, or not at all; `put off`: the database was away.
 */
export interface LookEnded {
  readonly end: 'seen' | 'unread' | 'put off'
  /** For so long the stream was held back. */
  readonly seconds: number
}

const named = <Message>(name: string) => {
  const messages = channel(name)
  return {
    publish: (message: Message): void => messages.publish(message),
    /** Returns how to stop. */
    subscribe: (listener: (message: Message) => void): (() => void) => {
      const heard = (message: unknown): void => listener(message as Message)
      messages.subscribe(heard)
      return () => void messages.unsubscribe(heard)
    },
  }
}

export const workEnded = named<WorkEnded>('signalbox:work.ended')
export const lookEnded = named<LookEnded>('signalbox:stream.look.ended')
export const requestFailed = named<RequestFailed>('signalbox:request.failed')
