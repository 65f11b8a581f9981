/** What counts as work of an agent that says one large thing: 64 kB a second, by each 256 KiB of it. */
import { expect, it } from 'vitest'
import { Pace } from '../../actors/pace.ts'

const KiB = 1024

it('is in time by each measure, whatever came before', () => {
  let nowMs = 0
  const pace = new Pace(() => nowMs)
  const comes = (bytes: number, inMs: number): boolean => {
    nowMs += inMs
    return pace.add(bytes)
  }
  expect([comes(64 * KiB, 10), comes(64 * KiB, 10), comes(64 * KiB, 10), comes(64 * KiB, 10)]).toEqual([
    false,
    false,
    false,
    true,
  ])
  expect(comes(256 * KiB, 4_096)).toBe(true)
  expect(comes(256 * KiB, 4_097)).toBe(false)
  expect(comes(25 * 1024 * KiB, 60_000)).toBe(true)
  expect([comes(255 * KiB, 1), comes(1, 10_000)]).toEqual([false, false])
})
