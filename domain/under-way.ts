/**
 * A person's own sends that were accepted and are not delivered yet: the shape that the browser checks with, and what is said of
 * them together. Does not own a command's life (machines/command.ts); what became of those that ended badly is unsettled-send.ts.
 */
import * as z from 'zod/mini'
import { CommandStatus } from './command.ts'
import { sendsCounted } from './needing-words.ts'

const UnderWaySend = z.object({
  id: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  action: z.enum(['send', 'cancelTask']),
  status: CommandStatus,
  /** Its first words, or its task's title. */
  title: z.string(),
  createdAt: z.string(),
})
export type UnderWaySend = z.infer<typeof UnderWaySend>

export const underWayShown = 20
/** Looked at among so many open commands of an organization, the newest: a longer queue is not read for one person's part of it. */
export const underWaySearched = 2_000
/** Those to one agent are looked for among so many to any. */
export const underWayPassed = 10_000

/**
 * `GET /api/sends/under-way`: the oldest first. `at`: the server's clock. `count`: of all of them, `isWhole`: and that there are no
 * older ones behind what was searched.
 */
export const UnderWayAnswer = z.object({
  at: z.string(),
  sends: z.array(UnderWaySend),
  count: z.number(),
  isWhole: z.boolean(),
})
export type UnderWayAnswer = z.infer<typeof UnderWayAnswer>

/** What is delivered sooner is not worth a line that comes and goes. Milliseconds. */
export const underWayGraceMs = 3_000

/** How far one of them has come. Not that it is on its way: whether anybody is at it, nobody here knows. */
export const underWayStanding = ({ status }: Pick<UnderWaySend, 'status'>): string =>
  status === 'pending' ? 'waits' : 'begun, no answer yet'

/**
 * "2 messages are on their way"; where no byte of any has left, that they wait. `late`: for longer than a worker needs. Then nobody
 * here knows whether one is at it at all, and it is said how far each has come.
 */
export function underWayWords(
  { sends, count, isWhole }: Pick<UnderWayAnswer, 'sends' | 'count' | 'isWhole'>,
  late: boolean,
): string {
  const waiting = sends.filter(({ status }) => status === 'pending')
  const begun = sends.filter(({ status }) => status !== 'pending')
  const isAll = count === sends.length && isWhole
  const what = sendsCounted(sends, count, isWhole)
  const isOne = count === 1 && isWhole
  if (begun.length === 0) return `${what} ${waits(isOne)}`
  if (!late) return `${what} ${isOne ? 'is on its way' : 'are on their way'}`
  if (!isAll) return `${what} ${waits(false)} or ${unanswered(false)}`
  if (waiting.length === 0) return `${what} ${unanswered(isOne)}`
  return `${sendsCounted(waiting)} ${waits(waiting.length === 1)}, ${sendsCounted(begun)} ${unanswered(begun.length === 1)}`
}

const waits = (isOne: boolean): string => `${isOne ? 'waits' : 'wait'} to be delivered`
const unanswered = (isOne: boolean): string => `${isOne ? 'has' : 'have'} no answer yet`
