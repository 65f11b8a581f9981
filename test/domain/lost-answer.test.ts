/** Which causes may be shown: sentences of ours with a number or a short word of the system's, and nothing that was put in their place. */
import { expect, it } from 'vitest'
import { lostAnswers, shownCause, unstoredAnswer } from '../../domain/lost-answer.ts'

it.each(['ENOSPC', 'EDQUOT', 'EROFS', 'ENOTDIR'])('shows that files could not be stored, and why: %s', (code) => {
  expect(shownCause(unstoredAnswer(code))).toBe(unstoredAnswer(code))
})

it.each([
  'No answer within 60 s, so the console hung up.',
  'The answer had begun and was not whole within 60 s, so the console hung up.',
  'The answer had begun and was not whole within 60 s beside its wait for room here, so the console hung up.',
  'The answer had begun, and the console had no room for so large a one and hung up.',
  'The agent announced an answer again and again, and gave none.',
  'The connection broke before the answer was whole.',
  'The console hung up before the answer was whole.',
  // Of logs from before there were these.
  'Agent network request failed.',
])('shows a sentence of ours as it stands, and none with anything behind it: %s', (sentence) => {
  expect(shownCause(sentence)).toBe(sentence)
  expect(shownCause(`${sentence} token sk-4711`)).toBe(lostAnswers.undecided)
})

it('shows no more than that word', () => {
  for (const other of ['', 'token sk-4711 expired', 'ENOSPC). token sk-4711 (A'])
    expect(shownCause(unstoredAnswer(other))).toBe(lostAnswers.undecided)
  expect(shownCause(`${unstoredAnswer('ENOSPC')} token sk-4711`)).toBe(lostAnswers.undecided)
})
