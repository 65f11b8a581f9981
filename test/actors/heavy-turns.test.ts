/** Large texts go one after the other, small ones pass by, nobody pays for another's failure, and who gives up is in nobody's way. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HeavyTurns } from '../../actors/threads/heavy-turns.ts'

const MiB = 1024 * 1024
const large = (agentId: string) => ({ bytes: MiB, agentId })

it('runs one large text of an agent at a time, in order, whatever fails', async () => {
  const wishes = fc.array(fc.record({ fails: fc.boolean(), turnsOfTheLoop: fc.nat(5) }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(wishes, async (asked) => {
      const turns = new HeavyTurns()
      const order: number[] = []
      let inside = 0
      const outcomes = await Promise.allSettled(
        asked.map(({ fails, turnsOfTheLoop }, n) =>
          turns.take(large('agent'), async (isHeavy) => {
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
  const over = turns.take(large('a'), () => held)
  expect(await turns.take({ bytes: MiB - 1, agentId: 'a' }, (isHeavy) => Promise.resolve(isHeavy))).toBe(false)
  expect(turns.waiting).toBe(1)
  letGo()
  await over
})

describe('while another has its turn', () => {
  /** `over`: each of these, in the order of the list; `order`: in that of their turns. */
  function line() {
    const turns = new HeavyTurns()
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
    const first = turns.take(large('first'), () => held)
    const order: string[] = []
    const others: Promise<void>[] = []
    const ask = (agentId: string, more: { readonly isAnswer?: true; readonly signal?: AbortSignal } = {}) => {
      const asked = turns.take({ ...large(agentId), ...more }, async () => {
        order.push(`${agentId}${more.isAnswer ? ' answers' : ''}`)
      })
      others.push(asked)
      return asked
    }
    const run = async (): Promise<readonly string[]> => {
      letGo()
      await first
      await Promise.allSettled(others)
      return order
    }
    return { turns, ask, run }
  }

  it('who is aborted leaves at once, and has done nothing', async () => {
    const { turns, ask, run } = line()
    const stop = new AbortController()
    const gone = [ask('a', { signal: stop.signal }), ask('a', { signal: stop.signal })]
    void ask('b', { signal: new AbortController().signal })
    expect(turns.waiting).toBe(4)
    const reason = new Error('given back')
    stop.abort(reason)
    expect(turns.waiting).toBe(2)
    for (const each of gone) await expect(each).rejects.toBe(reason)
    // Who comes without a lease does not even wait.
    await expect(ask('a', { signal: stop.signal })).rejects.toBe(reason)
    expect(await run()).toEqual(['b'])
    expect(turns.waiting).toBe(0)
  })

  it('agents take turns, whoever came first', async () => {
    const { ask, run } = line()
    for (const agentId of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) void ask(agentId)
    expect(await run()).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a'])
  })

  it('answers go first, and of four turns one is another’s', async () => {
    const { ask, run } = line()
    for (const agentId of ['a', 'a']) void ask(agentId)
    for (let n = 0; n < 7; n++) void ask('b', { isAnswer: true })
    const answers = Array.from({ length: 3 }, () => 'b answers')
    expect(await run()).toEqual([...answers, 'a', ...answers, 'a', 'b answers'])
  })
})
