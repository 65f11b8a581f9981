/** Who leaves with whom: everything that waits, one commit at a time, unless it is late or a crowd waits. */
import { describe, expect, it } from 'vitest'
import { Departures } from '../../actors/loop/departures.ts'

interface Item {
  readonly name: number
  readonly weight: number
}
const item = (name: number): Item => ({ name, weight: 0 })

/** Commits that end when they are told to; `begun(n)` resolves when the n-th leaves, with who is in it. */
function commits(limits: { usual: number; most: number }) {
  const flights: { readonly names: readonly number[]; readonly end: () => void }[] = []
  const watchers: (() => void)[] = []
  const departures = new Departures<Item>(limits, (items) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    flights.push({ names: items.map(({ name }) => name), end: resolve })
    for (const watcher of watchers.splice(0)) watcher()
    return promise
  })
  const begun = async (n: number) => {
    for (;;) {
      const flight = flights[n]
      if (flight) return flight
      await new Promise<void>((resolve) => watchers.push(resolve))
    }
  }
  return { departures, begun, count: () => flights.length }
}

describe('departures', () => {
  it('take all that one turn of the event loop brings, and then all that came meanwhile', async () => {
    const { departures, begun } = commits({ usual: 1, most: 1 })
    departures.add(item(1))
    departures.add(item(2), item(3))
    const first = await begun(0)
    expect(first.names).toEqual([1, 2, 3])
    departures.add(item(4))
    departures.add(item(5))
    expect(departures.waiting).toBe(2)
    first.end()
    expect((await begun(1)).names).toEqual([4, 5])
  })

  it('wait for a commit at the usual pace, and not for one that is late', async () => {
    const { departures, begun, count } = commits({ usual: 1, most: 2 })
    departures.add(item(1))
    await begun(0)
    const startedAt = performance.now()
    departures.add(item(2))
    expect((await begun(1)).names).toEqual([2])
    expect(performance.now() - startedAt).toBeGreaterThan(15)
    // Two are all there may be, however late they are.
    departures.add(item(3))
    expect([count(), departures.waiting]).toEqual([2, 1])
  })

  it('do not let a crowd wait', async () => {
    const { departures, begun } = commits({ usual: 1, most: 2 })
    departures.add(item(0))
    await begun(0)
    for (let name = 1; name <= 40; name++) departures.add(item(name))
    expect((await begun(1)).names).toHaveLength(40)
  })

  it('forget who is taken back, and nobody who has left', async () => {
    const { departures, begun } = commits({ usual: 1, most: 1 })
    const [left, waits, stays] = [item(1), item(2), item(3)]
    departures.add(left)
    const first = await begun(0)
    departures.add(waits, stays)
    expect([departures.takeBack(left), departures.takeBack(waits)]).toEqual([false, true])
    first.end()
    expect((await begun(1)).names).toEqual([3])
  })

  it('are idle once nothing waits and nothing is under way', async () => {
    const { departures, begun } = commits({ usual: 1, most: 1 })
    expect(await departures.isIdle()).toBe(true)
    departures.add(item(1))
    expect(await departures.isIdle()).toBe(false)
    const { end } = await begun(0)
    end()
    expect(await departures.isIdle()).toBe(false)
    expect(await departures.isIdle()).toBe(true)
  })
})
