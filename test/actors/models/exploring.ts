/**
 * How far a model is walked: a few walks in the suite, the same every day, and some hundreds in the long pass; by the storm's seed,
 * so that `SIGNALBOX_CHAOS_SEED` chooses other ones (test/chaos/seed.ts). Owns no model.
 */
import fc from 'fast-check'
import { suiteSeed } from '../../chaos/seed.ts'
import type { Stage } from './stage.ts'
import { sized } from '../../support/pass.ts'

const longRuns = 400

/** Each walk leaves its actors behind, where the next one's worker does not come across them. A failure names seed and path. */
export async function explore<T extends [unknown, ...unknown[]]>(
  stage: Stage,
  property: fc.IAsyncPropertyWithHooks<T>,
  shortRuns: number,
): Promise<void> {
  const numRuns = sized(shortRuns, longRuns)
  const walk = property.afterEach(() => stage.retire())
  await fc.assert(walk, { numRuns, seed: suiteSeed, endOnFailure: true })
}
