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
  const cancels = sends.filter(({ action }) => action === 'cancelTask').length
  const messages = sends.length - cancels
  if (count === sends.length && isWhole)
    return [counted(messages, 'message'), counted(cancels, 'cancel')].filter((words) => words !== '').join(' and ')
  const kinds = [messages > 0 || cancels === 0 ? 'messages' : '', cancels > 0 ? 'cancels' : '']
  return `${count}${isWhole ? '' : '+'} ${kinds.filter((words) => words !== '').join(' and ')}`
}

const counted = (count: number, noun: string): string =>
  count === 0 ? '' : `${count} ${count === 1 ? noun : `${noun}s`}`

/** "1 message and 1 cancel need you"; `isWhole`: there are no older ones behind these. */
export const needingWords = (sends: readonly Counted[], isWhole: boolean): string =>
  `${sendsCounted(sends, sends.length, isWhole)} ${sends.length === 1 && isWhole ? 'needs' : 'need'} you`
