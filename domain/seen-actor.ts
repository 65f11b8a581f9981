/** An actor as its page shows it, and what its rows alone say of time. Owns no sentence (actor-explanation.ts, actor-wait.ts). */
import type { ActorWait, DeliveryRecord } from './actor.ts'
import type { ActorDetail } from './chart.ts'
import type { CommandEvidence } from './evidence.ts'
import type { Settlement } from './settlement.ts'
import { isOverdue } from './unread-agent.ts'

/** An actor with what is on record about it elsewhere. */
export interface Seen {
  /** When it was seen so, by the server's clock: nobody is called missing by what is old. */
  readonly at: string
  readonly actor: ActorDetail
  readonly wait: ActorWait | null
  readonly since: string | null
  readonly holderSeenAt: string | null
  readonly delivery: DeliveryRecord | null
  readonly evidence: CommandEvidence | null
  readonly settlement: Settlement | null
}

export const firstTimer = ({ actor: { timers } }: Seen): string | null =>
  timers.map(({ dueAt }) => dueAt).toSorted()[0] ?? null

/** Its timer is over, and nobody has taken it up: since when; null where that is not so. By what was seen, for old news accuses nobody. */
export const leftSince = (seen: Seen): string | null => {
  const dueAt = firstTimer(seen)
  return seen.actor.lease === null && dueAt !== null && isOverdue(dueAt, Date.parse(seen.at)) ? dueAt : null
}
