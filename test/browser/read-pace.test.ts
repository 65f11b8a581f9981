/** How often a page asks: at once while it asks seldom, ever less often the more it hears of, and not at all while it was told to wait. */
import { expect, test } from 'vitest'
import { ReadPace } from '../../ui/read-pace.ts'

function paced(isHidden = false) {
  let nowMs = 0
  const pace = new ReadPace(
    () => nowMs,
    () => isHidden,
  )
  return { pace, pass: (ms: number) => void (nowMs += ms), now: () => nowMs }
}

/** Reads a minute of a page whose every answer changes all the time. */
function readsOf(answers: number, minutes: number): number {
  const { pace, pass, now } = paced()
  const askedAt = Array.from({ length: answers }, () => -Infinity)
  let lastMinute = 0
  while (now() < minutes * 60_000) {
    for (const [which, at] of askedAt.entries()) {
      if (pace.untilDueMs(at) > 0) continue
      askedAt[which] = now()
      pace.noteRead()
      if (now() >= (minutes - 1) * 60_000) lastMinute += 1
    }
    pass(50)
  }
  return lastMinute
}

test('a change shows at once where a page has asked little', () => {
  const { pace, pass } = paced()
  expect(pace.untilDueMs(-Infinity)).toBe(0)
  pace.noteRead()
  expect(pace.untilDueMs(0)).toBe(400)
  pass(400)
  expect(pace.untilDueMs(0)).toBe(0)
})

test.each([1, 7, 20])(
  'five pages of %d answers that change all the time stay within what a person may read',
  (answers) => {
    expect(5 * readsOf(answers, 4)).toBeLessThan(900)
    // And each is still asked for.
    expect(readsOf(answers, 4)).toBeGreaterThan(5 * answers)
  },
)

test('what is asked for by a person, or by a page’s own rhythm, does not wait for as long as what only changed', () => {
  const { pace } = paced()
  for (let n = 0; n < 300; n += 1) pace.noteRead()
  expect([pace.untilFreeMs(0), pace.untilDueMs(0)]).toEqual([400, 10_000])
})

test('a page that nobody sees asks six times a minute', () => {
  expect(paced(true).pace.untilDueMs(0)).toBe(10_000)
})

test('whoever was told to wait does, a minute at most, whoever asks', () => {
  const { pace, pass } = paced()
  pace.hold(30_000)
  expect([pace.untilFreeMs(-Infinity), pace.untilDueMs(-Infinity)]).toEqual([30_000, 30_000])
  pass(30_000)
  expect(pace.untilFreeMs(-Infinity)).toBe(0)
  pace.hold(3_600_000)
  expect(pace.untilFreeMs(-Infinity)).toBe(60_000)
})
