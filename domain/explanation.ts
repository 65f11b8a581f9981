/**
 * Something stuck, in doubt or ended, explained to a person: what it is called, what it means, what is known, what can be done. Only the
 * shapes, and how others' sentences are put into them; the words are actor-explanation.ts, command-explanation.ts and agent-troubles.ts.
 */

/** One thing that is on record, and when it happened (ISO 8601); null where the time is not known or does not matter. */
export interface Known {
  readonly words: string
  readonly at: string | null
}

/** What a person can do next. Each is a place or a composer to go to: nothing is done by choosing it. */
export type Remedy = 'send-again' | 'open-successor' | 'open-task' | 'open-agent' | 'see-queues'

export interface Explanation {
  /** `quiet`: as it should be, or settled by a person. `warn`: stuck or uncertain. `bad`: it failed. */
  readonly tone: 'quiet' | 'warn' | 'bad'
  readonly title: string
  readonly sentences: readonly string[]
  /** The evidence, oldest first. */
  readonly known: readonly Known[]
  readonly remedies: readonly Remedy[]
}

/** Those of these sentences that there are. */
export const listOf = (...sentences: readonly (string | null)[]): string[] =>
  sentences.filter((sentence) => sentence !== null)

/** A sentence that somebody else wrote, with one full stop. */
export const withStop = (said: string): string => said.trim().replace(/[.!?]?$/, (end) => end || '.')
