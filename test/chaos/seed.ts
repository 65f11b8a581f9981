/**
 * Where a storm's chance comes from: one number, printed when a scenario begins and settable, so that a failing run can be
 * run again. Owns the generator, not what it decides.
 */

/** `SIGNALBOX_CHAOS_SEED` of the tests' own environment; a fixed one otherwise, so that the suite is the same every day. */
export const suiteSeed = Number(process.env['SIGNALBOX_CHAOS_SEED'] ?? 20_261_121)

export interface Chance {
  readonly seed: number
  /** In [0, 1). */
  next(): number
  /** A whole number in [from, to]. */
  whole(from: number, to: number): number
  pick<T>(of: readonly [T, ...T[]]): T
}

/** mulberry32, mixed with the scenario's name so that two scenarios do not throw the same dice. */
export function chanceOf(scenario: string, seed = suiteSeed): Chance {
  let state = seed
  for (const character of scenario) state = Math.imul(state ^ character.charCodeAt(0), 0x5bd1e995) | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    seed,
    next,
    whole: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (of) => of[Math.floor(next() * of.length)] ?? of[0],
  }
}
