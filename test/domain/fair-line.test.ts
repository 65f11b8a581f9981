/** Whoever is next is whom the rule names, said plainly here; and nobody is passed by more than once by any other holder. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FairLine } from '../../domain/fair-line.ts'

interface One {
  readonly holder: string
}

/** The rule, read from lists anew each time. */
class PlainLine {
  readonly waiting: { readonly one: One; readonly since: number }[] = []
  /** The holders of all turns, in their order. */
  readonly turns: string[] = []

  enter(one: One): void {
    // When its holder came to the line: whoever of it waits longest was there since.
    const since = this.waiting.find((each) => each.one.holder === one.holder)?.since ?? this.turns.length
    this.waiting.push({ one, since })
  }

  leave(one: One): void {
    const at = this.waiting.findIndex((each) => each.one === one)
    if (at >= 0) this.waiting.splice(at, 1)
  }

  next(): One | undefined {
    const order = [...new Set(this.waiting.map(({ one }) => one.holder))]
    const rank = (holder: string): number => {
      const since = this.waiting.find(({ one }) => one.holder === holder)?.since ?? 0
      return Math.max(this.turns.lastIndexOf(holder) + 1, since - 1)
    }
    const least = Math.min(...order.map(rank))
    const candidates = this.waiting.filter(({ one }) => rank(one.holder) === least)
    const one = candidates[0]?.one
    if (one) {
      this.leave(one)
      this.turns.push(one.holder)
    }
    return one
  }
}

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant('enter' as const), holder: fc.constantFrom('a', 'b', 'c', 'd') }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('next' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('leave' as const), which: fc.nat() }) },
)

it('gives turns as the rule says, whoever comes and leaves, also twice', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const line = new FairLine<One>()
      const plain = new PlainLine()
      const all: One[] = []
      for (const each of steps) {
        if (each.does === 'enter') {
          const one = { holder: each.holder }
          all.push(one)
          line.enter(one)
          plain.enter(one)
        } else if (each.does === 'next') {
          const [turn, expected] = [line.next(), plain.next()]
          expect(turn).toBe(expected)
        } else {
          const one = all[each.which % Math.max(1, all.length)]
          if (one) line.leave(one)
          if (one) plain.leave(one)
        }
        expect(line.size).toBe(plain.waiting.length)
      }
    }),
  )
})

it('behind holders that come again with each turn, everybody has one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }), (crowd, deep) => {
      const line = new FairLine<One>()
      for (let n = 0; n < deep; n++) line.enter({ holder: 'deep' })
      for (let n = 0; n < crowd; n++) line.enter({ holder: `again ${n}` })
      const turnsOfDeep: number[] = []
      for (let turn = 0; turnsOfDeep.length < deep; turn++) {
        const one = line.next()
        if (one?.holder === 'deep') turnsOfDeep.push(turn)
        else if (one) line.enter({ holder: one.holder })
        expect(turn).toBeLessThan(deep * (2 * crowd + 2))
      }
    }),
  )
})
