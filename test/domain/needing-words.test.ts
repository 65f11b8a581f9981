/** Messages and cancels are counted apart: who sent a cancel did not send a message. */
import { expect, it } from 'vitest'
import { needingWords, sendsCounted } from '../../domain/needing-words.ts'

const message = { action: 'send' } as const
const cancel = { action: 'cancelTask' } as const

it.each([
  [[message], true, '1 message needs you'],
  [[cancel], true, '1 cancel needs you'],
  [[message, message], true, '2 messages need you'],
  [[cancel, message], true, '1 message and 1 cancel need you'],
  [[cancel, message, message, cancel], true, '2 messages and 2 cancels need you'],
  [[message], false, '1+ messages need you'],
  [[cancel, cancel], false, '2+ cancels need you'],
  [[message, cancel], false, '2+ messages and cancels need you'],
] as const)('%j, whole: %s', (sends, isWhole, words) => {
  expect(needingWords(sends, isWhole)).toBe(words)
})

it.each([
  [[message], 49, true, '49 messages'],
  [[message, cancel], 49, true, '49 messages and cancels'],
  [[message, cancel], 2, true, '1 message and 1 cancel'],
  [[cancel], 3, false, '3+ cancels'],
] as const)('%j of %d, whole: %s', (sends, count, isWhole, words) => {
  expect(sendsCounted(sends, count, isWhole)).toBe(words)
})
