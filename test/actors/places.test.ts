/** Places are counted as leases come and go: as many as a look at all of them finds, by kind, by lane and in doubt. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Leases, type HeldLease } from '../../actors/loop/lease.ts'

const lease = fc.record({
  // Few, so that work often follows under the token of the work before it, and one that is over is dropped twice.
  token: fc.constantFrom('a', 'b', 'c', 'd'),
  kind: fc.constantFrom('command', 'subscription'),
  lane: fc.constantFrom('x', 'y', null),
  isDoubted: fc.boolean(),
})
const step = fc.oneof(
  fc.record({ kind: fc.constant('hold' as const), lease }),
  fc.record({ kind: fc.constant('drop' as const), nth: fc.nat(20) }),
)

describe('the places of a kind', () => {
  it('are those of the leases that are held, whatever was held before', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const leases = new Leases()
        const all: HeldLease[] = []
        for (const each of steps) {
          if (each.kind === 'hold') {
            const { token, kind, lane, isDoubted } = each.lease
            const of = { ref: { kind, id: token }, token, work: 'deliver', lane, isDoubted }
            all.push(leases.hold({ ...of, leaseMs: 15_000, trustedFrom: 0 }))
          } else {
            const dropped = all[each.nth]
            if (dropped) leases.drop(dropped, 0)
          }
          for (const kind of ['command', 'subscription']) {
            const held = leases.of(kind)
            const { all: taken, doubted, lanes } = leases.places(kind)
            expect(taken).toBe(held.length)
            expect(doubted).toBe(held.filter(({ isDoubted }) => isDoubted).length)
            const inLanes = held.flatMap(({ lane }) => lane ?? [])
            expect(lanes).toEqual(
              new Map([...Map.groupBy(inLanes, (lane) => lane)].map(([lane, { length }]) => [lane, length])),
            )
          }
        }
      }),
    )
  })
})
