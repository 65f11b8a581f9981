/**
 * How a task is followed, as `GET /api/tasks/{localId}` tells it beyond the specification. Owns the words for people's
 * pages; what a subscription does is machines/subscription.ts.
 */
import * as z from 'zod/mini'
import type { StateValue } from './chart.ts'

/**
 * `streaming`: the agent's stream is held or being opened. `queued`: it waits for a place among the streams. `retrying`: the
 * last attempt failed or ended, the next is near. `away`: no sign of life for minutes, tried every 30 s. `polling`: the agent does
 * not stream and is read now and then. `resting`: the agent waits for a person. `stopped`: given up until somebody replies, or it is seen again.
 * `finished`: the task is; it may be read once more as a whole.
 */
export const followingStates = [
  'streaming',
  'queued',
  'retrying',
  'away',
  'polling',
  'resting',
  'stopped',
  'finished',
] as const

export const Following = z.object({
  state: z.enum(followingStates),
  /** Why it does not go well at the moment, or once it is finished why it may not all have been seen; safe to show. Else null. */
  reason: z.nullable(z.string()),
  /** ISO 8601; null where nothing is tried by itself, or it is being tried now. */
  nextAttemptAt: z.nullable(z.string()),
})
export type Following = z.infer<typeof Following>

/** What a subscription's row says. `isHeld`: somebody works on it now. `dueAt`: its earliest timer. */
export interface FollowedBy {
  readonly reason: string | null
  readonly isHeld: boolean
  readonly dueAt: string | null
}

/** Reads the state of a subscription of machine version 1. */
export function followingFrom(value: StateValue, { reason, isHeld, dueAt }: FollowedBy): Following {
  return { state: stateFrom(value, isHeld), reason, nextAttemptAt: dueAt }
}

function stateFrom(value: StateValue, isHeld: boolean): Following['state'] {
  if (typeof value !== 'string') {
    if ('closing' in value) return 'finished'
    return value['polling'] === 'away' ? 'away' : 'polling'
  }
  if (value === 'following') return isHeld ? 'streaming' : 'queued'
  if (value === 'backingOff') return 'retrying'
  if (value === 'away' || value === 'resting' || value === 'stopped') return value
  return 'finished'
}
