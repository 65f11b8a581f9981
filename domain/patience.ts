/**
 * For how long things may be as they are before a person should know: one set of limits for what pages say, what counts as needing a
 * person and what queries look for. Does not own the words (actor-explanation.ts, queue-words.ts, system-words.ts).
 */
import type { ActorAnswer } from './actor.ts'
import { answerDeadlineMs } from './lost-answer.ts'

/** A lease that ran out is somebody's business only after this: whoever takes over needs a moment. Milliseconds. */
export const leaseGraceMs = 5_000

/** Every process tells of itself each five seconds: three times that it did not. Milliseconds. */
export const silentAfterMs = 15_000

export const isAbandoned = ({ work, lease }: Pick<ActorAnswer['actor'], 'work' | 'lease'>, nowMs: number): boolean =>
  work !== null && lease !== null && Date.parse(lease.until) + leaseGraceMs < nowMs

/** The process that holds it has not told of itself for long, as far as that was known when it was seen. */
export const isHolderSilent = ({ at, holderSeenAt }: Pick<ActorAnswer, 'at' | 'holderSeenAt'>): boolean =>
  holderSeenAt !== null && Date.parse(at) - Date.parse(holderSeenAt) >= silentAfterMs

/** One failure is weather. Of the context of a machine that counts them; in the database's words persistence/failing.ts. */
export const failedOften = ({ failures }: Readonly<Record<string, unknown>>): boolean =>
  typeof failures === 'number' && failures > 1

/**
 * A stream whose work was begun so long ago is open: opening it would have failed by then. Milliseconds. Where streams had failed workers
 * tell when one is open; those of the release before do not.
 */
export const streamOpenAfterMs = answerDeadlineMs + 20_000

/** Something due waits this long before it is worth a warning: every loop looks for it at least once a second. */
export const stuckAfterMs = 10_000

/** A database answers a small write within milliseconds; where it takes this long, all that waits for it is late. Milliseconds. */
export const slowAnswerMs = 1_000

/** Following, or asking, that fails for so long since its first failure needs a person to know. Milliseconds. */
export const failingToldAfterMs = 60_000
