/** Which causes may be shown: sentences of ours with a number or a short word of the system's, and nothing that was put in their place. */
import { expect, it } from 'vitest'
import { lostAnswers, shownCause, unstoredAnswer } from '../../domain/lost-answer.ts'

it.each(['ENOSPC', 'EDQUOT', 'EROFS', 'ENOTDIR'])('shows that files could not be stored, and why: %s', (code) => {
  expect(shownCause(unstoredAnswer(code))).toBe(unstoredAnswer(code))
})

it('shows no more than that word', () => {
  for (const other of ['', 'token sk-4711 expired', 'ENOSPC). token sk-4711 (A'])
    expect(shownCause(unstoredAnswer(other))).toBe(lostAnswers.undecided)
  expect(shownCause(`${unstoredAnswer('ENOSPC')} token sk-4711`)).toBe(lostAnswers.undecided)
})
