/**
 * How several sends are counted in words: a message and a cancel are two things to whoever reads. Does not own what became of any
 * of them (domain/unsettled-send.ts) or what is said of those under way (domain/under-way.ts).
 */
import type { Command } from './command.ts'

type Counted = Pick<Command, 'action'>

/**
 * "1 message and 2 cancels"; where `count` is of more than these, or even those are not all (`isWhole`), what kinds there are:
 * "49 messages", "20+ messages and cancels".
 */
export function sendsCounted(sends: readonly Counted[], count: number = sends.length, isWhole = true): string {
  const { messages, cancels } = byKind(sends)
  if (count === sends.length && isWhole) return exactly(messages, cancels)
  return `${count}${isWhole ? '' : '+'} ${kinds(messages, cancels)}`
}

const both = (words: readonly string[]): string => words.filter((each) => each !== '').join(' and ')
const exactly = (messages: number, cancels: number): string =>
  both([counted(messages, 'message'), counted(cancels, 'cancel')])
const kinds = (messages: number, cancels: number): string =>
  both([messages > 0 || cancels === 0 ? 'messages' : '', cancels > 0 ? 'cancels' : ''])

const counted = (count: number, noun: string): string =>
  count === 0 ? '' : `${count} ${count === 1 ? noun : `${noun}s`}`

/** How many of each kind; `isWhole`: there are no older ones behind these. */
export interface SendsByKind {
  readonly messages: number
  readonly cancels: number
  readonly isWhole: boolean
}

/** These, and there are no others. */
export function byKind(sends: readonly Counted[]): SendsByKind {
  const cancels = sends.filter(({ action }) => action === 'cancelTask').length
  return { messages: sends.length - cancels, cancels, isWhole: true }
}

/** "93 messages and 1 cancel need you". */
export function needingWords({ messages, cancels, isWhole }: SendsByKind): string {
  const count = messages + cancels
  const words = isWhole ? exactly(messages, cancels) : `${count}+ ${kinds(messages, cancels)}`
  return `${words} ${count === 1 && isWhole ? 'needs' : 'need'} you`
}
