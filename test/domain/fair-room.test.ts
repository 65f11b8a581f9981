/** Whoever is let in is whom the rule names, said plainly here; and what a visit costs grows with those who wait, not faster. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FairRoom, type RoomLimits, type Visit } from '../../domain/fair-room.ts'

type Guest = Omit<Visit, 'letIn'>

/** The rule, read from lists anew each time. */
class PlainRoom {
  readonly inside: Guest[] = []
  readonly waiting: Guest[] = []
  /** All that were ever let in, in that order; those of holders that left no visit here are forgotten. */
  served: Guest[] = []
  readonly #limits: RoomLimits

  constructor(limits: RoomLimits) {
    this.#limits = limits
  }

  weight(of: (guest: Guest) => boolean = () => true): number {
    return this.inside.filter(of).reduce((sum, { weight }) => sum + weight, 0)
  }

  enter(guest: Guest): readonly Guest[] {
    this.waiting.push(guest)
    return this.#letIn()
  }

  leave(guest: Guest): readonly Guest[] {
    for (const list of [this.inside, this.waiting]) if (list.includes(guest)) list.splice(list.indexOf(guest), 1)
    const isHere = [...this.inside, ...this.waiting].some(({ holder }) => holder === guest.holder)
    if (!isHere) this.served = this.served.filter(({ holder }) => holder !== guest.holder)
    return this.#letIn()
  }

  isWanted(guest: Guest): boolean {
    return this.inside.includes(guest) && this.waiting.some((each) => this.#isFree(each, guest))
  }

  /** Whether there is room for it, were another not inside. */
  #isFree(guest: Guest, without?: Guest): boolean {
    const { all, each, first } = this.#limits
    const inside = this.weight((other) => other !== without)
    const own = this.weight((other) => other !== without && other.holder === guest.holder)
    if (inside < all && own < each) return true
    return first !== undefined && own === 0 && guest.weight <= (first - inside) / 2
  }

  #letIn(): readonly Guest[] {
    const letIn: Guest[] = []
    for (;;) {
      const held = (guest: Guest): number => this.weight(({ holder }) => holder === guest.holder)
      const last = (guest: Guest): number => this.served.findLastIndex(({ holder }) => holder === guest.holder)
      const free = this.waiting.filter((guest) => this.#isFree(guest))
      const anew = free.toSorted((a, b) => held(a) - held(b) || last(a) - last(b))
      const next = free.find(({ isAgain }) => isAgain) ?? anew[0]
      if (!next) break
      this.waiting.splice(this.waiting.indexOf(next), 1)
      this.inside.push(next)
      this.served.push(next)
      letIn.push(next)
    }
    return letIn
  }
}

const guest = fc.record(
  {
    holder: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    weight: fc.integer({ min: 1, max: 40 }),
    isAgain: fc.constant(true),
  },
  { requiredKeys: ['holder', 'weight'] },
) as fc.Arbitrary<Guest>
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constant('enter' as const), guest }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('leave' as const), which: fc.nat() }) },
)
const limits = fc.record(
  {
    all: fc.integer({ min: 1, max: 120 }),
    each: fc.integer({ min: 1, max: 60 }),
    first: fc.integer({ min: 1, max: 200 }),
  },
  { requiredKeys: ['all', 'each'] },
) as fc.Arbitrary<RoomLimits>

it('lets in whom the rule names, in its order, whoever comes and leaves, also twice', () => {
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 60 }), (of, steps) => {
      const room = new FairRoom(of)
      const plain = new PlainRoom(of)
      const all: { readonly visit: Visit; readonly guest: Guest }[] = []
      let letIn: Guest[] = []
      for (const each of steps) {
        letIn = []
        if (each.does === 'enter') {
          const { guest: comes } = each
          const visit = { ...comes, letIn: () => void letIn.push(comes) }
          all.push({ visit, guest: comes })
          room.enter(visit)
          expect(letIn).toEqual(plain.enter(comes))
        } else {
          // Some of them have left before.
          const leaves = all[each.which % Math.max(1, all.length)]
          if (!leaves) continue
          room.leave(leaves.visit)
          expect(letIn).toEqual(plain.leave(leaves.guest))
        }
        expect(room.counts).toEqual({ weight: plain.weight(), waiting: plain.waiting.length })
        for (const { visit, guest: known } of all) {
          expect(room.has(visit)).toBe(plain.inside.includes(known))
          expect(room.isWanted(visit)).toBe(plain.isWanted(known))
        }
      }
    }),
    { numRuns: 300 },
  )
})

it('looks at each who waits a few times a leave, however many are inside', () => {
  const people = 300
  const room = new FairRoom({ all: 100, each: 50 })
  let looks = 0
  const inside: Visit[] = []
  for (let n = 0; n < people; n++) {
    const visit: Visit = {
      get holder() {
        looks += 1
        return `p${n}`
      },
      weight: 1,
      letIn: () => void inside.push(visit),
    }
    room.enter(visit)
  }
  looks = 0
  for (let visit = inside.shift(); visit; visit = inside.shift()) room.leave(visit)
  expect(room.counts).toEqual({ weight: 0, waiting: 0 })
  expect(looks).toBeLessThan(3 * people * people)
})
