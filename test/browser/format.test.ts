/** Times as people read them: what is rounded up is the next unit, not sixty of the one before. */
import { expect, it } from 'vitest'
import { Format } from '../../ui/format.ts'

const format = new Format('en')
const minuteMs = 60_000
const hourMs = 60 * minuteMs

it.each([
  [840, '840 ms'],
  [999.7, '1 s'],
  [4_800, '4.8 s'],
  [59_940, '59.9 s'],
  [59_960, '1 min 0 s'],
  [192_000, '3 min 12 s'],
  [119_600, '2 min 0 s'],
  [3_599_600, '1 h 0 min'],
  [7_185_000, '2 h 0 min'],
  [7_500_000, '2 h 5 min'],
])('%d ms lasted %s', (ms, words) => {
  expect(format.duration(ms)).toBe(words)
})

it.each([
  [49_000, 'now'],
  [50_000, '1m'],
  [59 * minuteMs, '59m'],
  [59.6 * minuteMs, '1h'],
  [23.4 * hourMs, '23h'],
  [23.6 * hourMs, '1d'],
  [5 * 24 * hourMs, '5d'],
])('%d ms ago: %s', (ms, words) => {
  const nowMs = Date.UTC(2026, 0, 31)
  expect(format.ago(new Date(nowMs - ms).toISOString(), nowMs)).toBe(words)
})
