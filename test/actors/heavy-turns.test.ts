/** Large texts go one after the other, small ones pass by, and nobody pays for another's failure. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HeavyTurns } from '../../actors/threads/heavy-turns.ts'

const MiB = 1024 * 1024

it('runs one large text at a time, in order, whatever fails', async () => {
  const wishes = fc.array(fc.record({ fails: fc.boolean(), turnsOfTheLoop: fc.nat(5) }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(wishes, async (asked) => {
      const turns = new HeavyTurns()
      const order: number[] = []
      let inside = 0
      const outcomes = await Promise.allSettled(
        asked.map(({ fails, turnsOfTheLoop }, n) =>
          turns.take(MiB, async (isHeavy) => {
            expect([isHeavy, ++inside]).toEqual([true, 1])
            for (let i = 0; i < turnsOfTheLoop; i++) await new Promise((resolve) => setImmediate(resolve))
            order.push(n)
            inside -= 1
            if (fails) throw new Error(`wish ${n}`)
            return n
          }),
        ),
      )
      expect(order).toEqual(asked.map((_, n) => n))
      expect(outcomes.map(({ status }) => status === 'rejected')).toEqual(asked.map(({ fails }) => fails))
      expect(turns.waiting).toBe(0)
    }),
    { numRuns: 30 },
  )
})

it('lets a small text pass by a large one', async () => {
  const turns = new HeavyTurns()
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
  const large = turns.take(MiB, () => held)
  expect(await turns.take(MiB - 1, (isHeavy) => Promise.resolve(isHeavy))).toBe(false)
  expect(turns.waiting).toBe(1)
  letGo()
  await large
})
