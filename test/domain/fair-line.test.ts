/** Whoever is next is whom the rule names, said plainly here; and nobody is passed by more than once by any other holder. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FairLine } from '../../domain/fair-line.ts'

interface One {
  readonly holder: string
}

/** A holder's coming to the line: which of all comings it was, and how many turns there had been. */
interface Coming {
  readonly nth: number
  readonly turns: number
}

/** The rule, read from lists anew each time. */
class PlainLine {
  /** `came`: its holder, who stays in line as long as anybody of it waits. */
  readonly waiting: { readonly one: One; readonly came: Coming }[] = []
  /** The holders of all turns, in their order. */
  readonly turns: string[] = []
  #comings = 0

  enter(one: One): void {
    const standing = this.waiting.find((each) => each.one.holder === one.holder)
    this.waiting.push({ one, came: standing?.came ?? { nth: this.#comings++, turns: this.turns.length } })
  }

  leave(one: One): void {
    const at = this.waiting.findIndex((each) => each.one === one)
    if (at >= 0) this.waiting.splice(at, 1)
  }

  next(): One | undefined {
    const rank = ({ one: { holder }, came }: (typeof this.waiting)[number]): number =>
      Math.max(this.turns.lastIndexOf(holder) + 1, came.turns - 1)
    // Of two equals the one whose holder came first; of one holder's whoever came first.
    const [first] = this.waiting.toSorted((a, b) => rank(a) - rank(b) || a.came.nth - b.came.nth)
    const one = first?.one
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

const enter = (holder: string) => ({ does: 'enter' as const, holder })

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
    { examples: [[[enter('b'), enter('a'), enter('b'), { does: 'leave', which: 0 }, { does: 'next' }]]] },
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
