/** What a reader remembers of silent tasks and of lists: whom it passes over, for how long, and when a list is due by the clock. */
import { beforeEach, describe, expect, it } from 'vitest'
import { Silences } from '../../actors/reconciliation-silences.ts'

const scope = 'an agent'
let nowMs: number
let silences: Silences
beforeEach(() => {
  nowMs = 1_000_000
  silences = new Silences(() => nowMs)
})
/** Until it is asked for again, milliseconds, to the second. */
function rests(task: string): number {
  const from = nowMs
  for (; silences.rests(task); nowMs += 1_000);
  return nowMs - from
}

describe('a task about which its agent is silent while it answers for others', () => {
  it('is passed over from the second time on, for twice as long each time, up to a minute', () => {
    const pauses = [1, 2, 3, 4, 5].map(() => {
      silences.silent(scope, 'hangs', true)
      return rests('hangs')
    })
    expect(pauses).toEqual([0, 20_000, 40_000, 60_000, 60_000])
    silences.answered(scope, 'hangs')
    silences.silent(scope, 'hangs', true)
    expect(rests('hangs')).toBe(0)
  })

  it('is found out by whoever is answered next, where it was the first that was asked for', () => {
    for (const _pass of [1, 2]) {
      silences.silent(scope, 'hangs', false)
      expect(silences.rests('hangs')).toBe(false)
      silences.answered(scope, 'another')
    }
    expect(rests('hangs')).toBe(20_000)
  })

  it('is not passed over for an agent that answers for nobody', () => {
    for (const _pass of [1, 2, 3]) silences.silent(scope, 'hangs', false)
    silences.answered(scope, 'hangs')
    expect(silences.rests('hangs')).toBe(false)
  })
})

describe('a list', () => {
  it('is due by the clock a minute after the first look, or after it was read by whatever process', () => {
    expect(silences.isListOld(scope, null)).toBe(false)
    nowMs += 54_000
    expect(silences.isListOld(scope, null)).toBe(false)
    nowMs += 1_000
    expect(silences.isListOld(scope, 20_000)).toBe(false)
    expect(silences.isListOld(scope, 55_000)).toBe(true)
    silences.listed(scope)
    expect(silences.isListOld(scope, 55_000)).toBe(false)
  })
})
