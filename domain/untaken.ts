/** That nobody has taken up what is due, and why, in words. Whose places are taken is actor-wait.ts, and told to administrators. */
import * as z from 'zod/mini'

/**
 * Why nobody has taken up what is due: no process works, those that do have all their places for its kind taken, or neither. Told to
 * everybody, where whose places they are is told to administrators.
 */
export const Untaken = z.enum(['nobody', 'full', 'free'])
export type Untaken = z.infer<typeof Untaken>

const whyUntaken: Readonly<Record<Untaken, string>> = {
  nobody: 'none runs. It is taken up within moments of one that starts.',
  full: 'all their places for it are taken. It is taken up when its turn comes.',
  free: 'some run, and not all their places are taken. It waits for one that its agent may have, or the database is slow.',
}
/** Null: the release before does not say which. */
export const untakenWords = (due: string, why: Untaken | null): string =>
  `${due}, and no worker has taken it up: ${why === null ? 'none runs, or all their places are taken.' : whyUntaken[why]}`

export const leftWaiting = (why: Untaken | null): string => untakenWords('What was to come next is due', why)
