/** Who may wait for a connection: first come, first served, a bounded number for a bounded time, and nobody's place is lost. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Admission, DatabaseBusy } from '../../persistence/admission.ts'
import { isOutage } from '../../persistence/outage.ts'

/** Work that ends when the test says so. */
function piece() {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  return { promise, resolve, reject }
}

const patient = { waitMs: 60_000, queue: 100 }

test('runs as much at once as there are places, and the rest in the order it came, whether work ends well or badly', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
      async (places, endsWell) => {
        const admission = new Admission({ ...patient, places })
        const begun: number[] = []
        let running = 0
        let most = 0
        const pieces = endsWell.map(piece)
        const outcomes = pieces.map(({ promise }, i) =>
          admission
            .run(() => {
              begun.push(i)
              most = Math.max(most, ++running)
              return promise.finally(() => (running -= 1))
            })
            .then(
              () => true,
              () => false,
            ),
        )
        for (const [i, well] of endsWell.entries()) {
          if (well) pieces[i]?.resolve()
          else pieces[i]?.reject(new Error('It failed.'))
          await outcomes[i]
        }
        expect(await Promise.all(outcomes)).toEqual(endsWell)
        expect(begun).toEqual(endsWell.map((_, i) => i))
        expect(most).toBeLessThanOrEqual(places)
        expect(admission.waiting).toBe(0)
      },
    ),
    { seed: 20_261_121, numRuns: 100 },
  )
})

test('one too many is turned away at once, and one who waited too long leaves the queue', async () => {
  const admission = new Admission({ places: 1, waitMs: 20, queue: 1 })
  const holder = piece()
  const holding = admission.run(() => holder.promise)
  const waiting = admission.run(() => Promise.resolve('late')).catch((error: unknown) => error)
  await expect(admission.run(() => Promise.resolve())).rejects.toBeInstanceOf(DatabaseBusy)
  const error = await waiting
  expect(error).toBeInstanceOf(DatabaseBusy)
  expect(isOutage(error)).toBe(true)
  expect(admission.waiting).toBe(0)
  holder.resolve()
  await holding
  expect(await admission.run(() => Promise.resolve('free'))).toBe('free')
})
