/** Messages and cancels are counted apart: who sent a cancel did not send a message. */
import { expect, it } from 'vitest'
import { byKind, needingWords, sendsCounted } from '../../domain/needing-words.ts'

const message = { action: 'send' } as const
const cancel = { action: 'cancelTask' } as const

it.each([
  [[message], '1 message needs you'],
  [[cancel], '1 cancel needs you'],
  [[message, message], '2 messages need you'],
  [[cancel, message], '1 message and 1 cancel need you'],
  [[cancel, message, message, cancel], '2 messages and 2 cancels need you'],
] as const)('%j', (sends, words) => {
  expect(needingWords(byKind(sends))).toBe(words)
})

it.each([
  [{ messages: 93, cancels: 1, isWhole: true }, '93 messages and 1 cancel need you'],
  [{ messages: 1, cancels: 0, isWhole: false }, '1+ messages need you'],
  [{ messages: 0, cancels: 2, isWhole: false }, '2+ cancels need you'],
  [{ messages: 999, cancels: 1, isWhole: false }, '1000+ messages and cancels need you'],
])('%j', (count, words) => {
  expect(needingWords(count)).toBe(words)
})

it.each([
  [[message], 49, true, '49 messages'],
  [[message, cancel], 49, true, '49 messages and cancels'],
  [[message, cancel], 2, true, '1 message and 1 cancel'],
  [[cancel], 3, false, '3+ cancels'],
] as const)('%j of %d, whole: %s', (sends, count, isWhole, words) => {
  expect(sendsCounted(sends, count, isWhole)).toBe(words)
})
