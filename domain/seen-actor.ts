/** An actor as its page shows it, and what its rows alone say of time. Owns no sentence (actor-explanation.ts, actor-wait.ts). */
import type { ActorAnswer } from './actor.ts'
import { isOverdue } from './unread-agent.ts'

/** An actor with what is on record about it elsewhere. */
export type Seen = Omit<ActorAnswer, 'reopenings' | 'replaces'>

export const firstTimer = ({ actor: { timers } }: Seen): string | null =>
  timers.map(({ dueAt }) => dueAt).toSorted()[0] ?? null

/** Its timer is over, and nobody has taken it up: since when; null where that is not so. By what was seen, for old news accuses nobody. */
export const leftSince = (seen: Seen): string | null => {
  const dueAt = firstTimer(seen)
  return seen.actor.lease === null && dueAt !== null && isOverdue(dueAt, Date.parse(seen.at)) ? dueAt : null
}
