/**
 * What every scenario does alike: says its seed, runs at the size of the pass, is judged, and prints its figures. The long
 * pass is `npm run test:chaos` (test/chaos/vitest.config.ts); everything else is the short one.
 */
import { expect } from 'vitest'
import { violations, type History } from './checker.ts'
import type { Load } from './load.ts'
import { chanceOf, suiteSeed, type Chance } from './seed.ts'
import { Stage, type StageOptions } from './stage.ts'

/** All plots, mostly the quick one; answers take up to 40 ms, so that there is always something under way. */
export function usualWords(n: number, chance: Chance): string {
  const delayMs = chance.whole(0, 40)
  if (n % 9 === 4) return `task ${delayMs}`
  // A task that asks is answered, and one that is held is canceled (load.ts).
  if (n % 11 === 2) return `ask ${delayMs}`
  if (n % 13 === 6) return `hold ${delayMs}`
  return n % 23 === 7 ? `refuse ${delayMs}` : `message ${delayMs}`
}

/** One scenario from its stage to its verdict. What `play` returns is printed beside the figures. */
export async function storm(
  name: string,
  options: StageOptions,
  play: (
    stage: Stage,
    chance: Chance,
  ) => Promise<{ readonly load: Load; readonly figures?: Readonly<Record<string, number>> }>,
): Promise<History> {
  const chance = chanceOf(name)
  const stage = await Stage.open(options)
  try {
    const playing = play(stage, chance)
    const { load, figures = {} } = await Promise.race([playing, stage.astray])
    const history = await Promise.race([stage.history(load), stage.astray])
    say(name, { ...counts(history), ...figures })
    expect(violations(history), `seed ${suiteSeed}`).toEqual([])
    return history
  } finally {
    await stage.close()
  }
}

/** A storm in which nothing gets through proves nothing. */
export function expectMostSucceeded({ finals, asks }: History): void {
  const succeeded = [...finals.values()].filter(({ status }) => status === 'succeeded').length
  expect(succeeded).toBeGreaterThan(asks.length / 2)
}

/** Where nothing that was broken may have cost a command its outcome. */
export function expectNoDoubt({ finals }: History): void {
  expect([...finals.values()].filter(({ status }) => status === 'uncertain')).toEqual([])
}

export function counts({ finals, receipts, asks }: History): Record<string, number> {
  const statuses = Map.groupBy(finals.values(), ({ status }) => status)
  const distinct = new Set(receipts.map(({ messageId }) => messageId)).size
  const accepted = asks.filter(({ attempts }) => attempts.some(({ commandId }) => commandId !== null)).length
  // What reached a task that was there already, and was not refused.
  const heard = receipts.filter(({ messageId, answer }) => answer.startsWith('task-') && answer !== `task-${messageId}`)
  const cancels = heard.filter(({ messageId }) => messageId.startsWith('cancel-'))
  return {
    accepted,
    lost: accepted - finals.size,
    twice: receipts.length - distinct,
    succeeded: statuses.get('succeeded')?.length ?? 0,
    failed: statuses.get('failed')?.length ?? 0,
    uncertain: statuses.get('uncertain')?.length ?? 0,
    replies: heard.length - cancels.length,
    cancels: cancels.length,
  }
}

/** One line a scenario: what a person reads who asks what the storm has shown. */
export function say(name: string, figures: Readonly<Record<string, number>>): void {
  const text = Object.entries(figures).map(([what, value]) => `${what} ${Math.round(value)}`)
  process.stdout.write(`storm: ${name} (seed ${suiteSeed}): ${text.join(', ')}\n`)
}

/** What this machine cannot show: said in the same place, so that its silence is not taken for a success. */
export function sayLeftOut(name: string, why: string): void {
  process.stdout.write(`storm: ${name}: left out, for ${why}\n`)
}

export const meanOf = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
