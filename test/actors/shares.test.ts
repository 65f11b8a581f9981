/**
 * Places when several agents hang at once: whoever answers finds one. The rule over all numbers, deliveries both where they begin
 * with their commit and where they are claimed, and the readers that ask for what is unfinished.
 */
import { sql } from 'slonik'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { Leases } from '../../actors/loop/lease.ts'
import { Room } from '../../actors/loop/room.ts'
import { usualPatience } from '../../actors/reconciliation-turn.ts'
import { shareOf } from '../../domain/shares.ts'
import { commandMachine } from '../../machines/command.ts'
import { eitherDatabase, freshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

describe('the share of one agent', () => {
  const places = 64
  /** Agents that take all they may, one place at a time, in any order. */
  const greedy = (perAgent: number, turns: readonly number[]): Map<number, number> => {
    const taken = new Map<number, number>()
    for (const agent of turns) {
      const all = [...taken.values()].reduce((sum, n) => sum + n, 0)
      const own = taken.get(agent) ?? 0
      if (all < places && own < shareOf({ places, perAgent, taken: all })) taken.set(agent, own + 1)
    }
    return taken
  }

  it('is its bound, as long as three times as much is free', () => {
    expect(shareOf({ places, perAgent: 16, taken: 16 })).toBe(16)
    expect(shareOf({ places, perAgent: 16, taken: 17 })).toBe(15)
    expect(shareOf({ places, perAgent: 16, taken: 64 })).toBe(1)
  })

  it('is all there is, where one may have all', () => {
    expect(shareOf({ places: 8, perAgent: 8, taken: 7 })).toBe(8)
  })

  it('leaves places for whoever comes next, however many take all they may', () => {
    const agents = fc.integer({ min: 1, max: 12 })
    const turns = fc.array(fc.nat({ max: 11 }), { minLength: 500, maxLength: 2_000 })
    fc.assert(
      fc.property(agents, fc.integer({ min: 2, max: 32 }), turns, (count, perAgent, order) => {
        const taken = greedy(
          perAgent,
          order.map((n) => n % count),
        )
        const free = places - [...taken.values()].reduce((sum, n) => sum + n, 0)
        expect(free).toBeGreaterThanOrEqual(Math.floor(places * (3 / 4) ** count))
        expect(Math.max(...taken.values())).toBeLessThanOrEqual(perAgent)
      }),
    )
  })
})

describe('a claim', () => {
  const lease = { work: 'deliver', isDoubted: false, leaseMs: 60_000, trustedFrom: 0 }
  const kinds: Kinds = {
    command: {
      machine: commandMachine,
      pollMs: 250,
      leaseMs: 60_000,
      concurrency: 32,
      laneLimit: 4,
      claimLimit: 10,
      work: {},
      repeatable: new Set(),
    },
  }
  const seat = { kind: 'command', lane: 'b', isDoubted: false }

  it('takes no more than any agent may still have, for all of it may be one’s', () => {
    const leases = new Leases()
    const room = new Room(kinds, leases)
    expect(room.opening('command').limit).toBe(4)
    for (let n = 0; n < 3; n++)
      leases.hold({ ...lease, ref: { kind: 'command', id: String(n) }, token: String(n), lane: 'a' })
    expect(room.opening('command').limit).toBe(1)
    leases.hold({ ...lease, ref: { kind: 'command', id: '3' }, token: '3', lane: 'a' })
    expect([room.opening('command').fullLanes, room.opening('command').limit]).toEqual([['a'], 4])
    // What is promised counts as what is held.
    room.reserve(seat, 2)
    expect(room.opening('command').limit).toBe(2)
    room.reserve(seat, 2)
    expect([room.opening('command').fullLanes, room.has(seat)]).toEqual([['a', 'b'], false])
    room.reserve(seat, -4)
    expect([room.opening('command').fullLanes, room.has(seat)]).toEqual([['a'], true])
  })
})

/** Sixteen places, four for one agent: four agents that hang would have them all. */
const narrow = ({ command, ...kinds }: Kinds): Kinds => ({
  ...followsNothing(kinds),
  ...(command && { command: { ...command, concurrency: 16, laneLimit: 4 } }),
})
const agents = 6
const sendsEach = 6
const { quickMs } = usualPatience

describe.each(eitherDatabase)('%s: while six agents hang, with more for each than it may have', (database) => {
  async function agentOf(running: RunningSystem): Promise<{ peer: RawPeer; agentId: string }> {
    const peer = await startRawPeer()
    // A test may have closed it.
    onTestFinished(() => peer.close().catch(() => undefined))
    return { peer, agentId: (await running.system.agents.register(running.viewer, peer.cardUrl)).id }
  }
  const hanging = (running: RunningSystem) =>
    Promise.all(
      Array.from({ length: agents }, async () => {
        const each = await agentOf(running)
        each.peer.script.holdReplies()
        return each
      }),
    )
  const sendAll = async (running: RunningSystem, hung: readonly { agentId: string }[]): Promise<void> => {
    for (let n = 0; n < sendsEach; n++)
      await Promise.all(hung.map(({ agentId }) => running.send(agentId, { text: 'direct' })))
  }
  /** Each got some, so it hangs indeed; and all of them did not get all there is. */
  const delivered = (hung: readonly { peer: RawPeer }[]): number[] =>
    hung.map(({ peer }) => peer.callsOf('SendMessage')).toSorted((a, b) => a - b)

  it('the seventh is delivered to, at once', async () => {
    const running = await freshSystem(database, { rhythm: narrow })
    onTestFinished(() => running.close())
    const well = await agentOf(running)
    const hung = await hanging(running)
    await sendAll(running, hung)
    await expect.poll(() => delivered(hung)[0], patience).toBeGreaterThan(0)
    for (let n = 0; n < 3; n++) {
      const { id } = await running.send(well.agentId, { text: 'direct' })
      expect((await running.finished(id)).status).toBe('succeeded')
    }
    const taken = delivered(hung)
    expect(taken.reduce((sum, n) => sum + n, 0)).toBeLessThan(16)
    expect(taken.at(-1)).toBeLessThanOrEqual(4)
    for (const { peer } of hung) peer.script.release()
  })

  it('so it is where all of it had waited for a worker, and it was sent to last', async () => {
    const fresh = await freshDatabase(database)
    onTestFinished(() => fresh.close())
    const web = await systemOn(fresh.db, { works: false })
    onTestFinished(() => web.close())
    const hung = await hanging(web)
    const well = await agentOf(web)
    await sendAll(web, hung)
    const { id } = await web.send(well.agentId, { text: 'direct' })
    const worker = await systemOn(fresh.db, { rhythm: narrow })
    onTestFinished(() => worker.close())
    expect((await worker.finished(id)).status).toBe('succeeded')
    expect(delivered(hung).reduce((sum, n) => sum + n, 0)).toBeLessThan(16)
    for (const { peer } of hung) peer.script.release()
  })

  it.each([
    ['those whose last look failed', 'failures', { fault: 'reset', performed: false }],
    [
      'those that were slow, whether they answer in the end or not,',
      'slow',
      { fault: 'delay', delayMs: quickMs + 500 },
    ],
  ] as const)('%s have one reader, and those that answer the other', async (_who, count, first) => {
    const running = await freshSystem(database, { rhythm: followsNothing })
    onTestFinished(() => running.close())
    const scopes = new Scopes(running)
    const all = await Promise.all(Array.from({ length: 4 }, () => agentOf(running)))
    for (const { agentId } of all) await running.finished((await running.send(agentId, { text: 'hold' })).id)
    const [well, ...hung] = all
    if (!well) throw new Error('No agent was made.')
    /** Looks until it counts, and no more: the next hangs. */
    const isCounted = async (agentId: string): Promise<boolean> => {
      const { context, work } = (await scopes.row(agentId)) ?? {}
      if ((context?.[count] ?? 0) > 0) return true
      if (work === null) await scopes.begin(agentId)
      return false
    }
    for (const { peer } of hung) {
      peer.script.fault('GetTask', first, 1)
      peer.script.fault('GetTask', { fault: 'hang-before-head' }, Infinity)
    }
    for (const { agentId } of hung) await expect.poll(() => isCounted(agentId), patience).toBe(true)
    const Held = z.object({ id: z.string(), isHeld: z.boolean() })
    const due = () =>
      running.db.pool.any(sql.type(Held)`
        select lane as id, lease_token is not null as "isHeld" from actor
        where kind = 'reconciliation' and lane <> ${well.agentId} and (wake_at <= now() or lease_token is not null)`)
    const reading = async () => (await due()).filter(({ isHeld }) => isHeld).map(({ id }) => id)
    for (const { agentId } of hung) await scopes.begin(agentId)
    await expect.poll(reading, patience).toHaveLength(1)
    const [holder = ''] = await reading()
    // All three are due, and each would have a reader for ten seconds.
    for (let n = 0; n < 3; n++) {
      expect((await scopes.turn(well.agentId)).value).toBe('pausing')
      expect((await reading()).length).toBeLessThanOrEqual(1)
    }
    // Its place goes to the next of them.
    await hung.find(({ agentId }) => agentId === holder)?.peer.close()
    const others = hung.map(({ agentId }) => agentId).filter((id) => id !== holder)
    await expect.poll(async () => (await reading()).filter((id) => others.includes(id)), patience).toHaveLength(1)
  })

  it('one that answers slowly is asked again with more patience, and what it says counts', async () => {
    const running = await freshSystem(database, { rhythm: followsNothing })
    onTestFinished(() => running.close())
    const scopes = new Scopes(running)
    const { peer, agentId } = await agentOf(running)
    await running.finished((await running.send(agentId, { text: 'hold' })).id)
    peer.script.fault('GetTask', { fault: 'delay', delayMs: quickMs + 500 }, 2)
    const asked = peer.callsOf('GetTask')
    const { value, context } = await scopes.turn(agentId)
    expect([value, context.slow, context.failures, context.after]).toEqual(['yielding', 10, 0, null])
    await scopes.begin(agentId)
    await expect.poll(async () => (await scopes.row(agentId))?.value, patience).toBe('pausing')
    expect((await scopes.row(agentId))?.context).toMatchObject({ slow: 10, failures: 0, reason: null })
    expect(peer.callsOf('GetTask')).toBe(asked + 2)
    expect((await scopes.turn(agentId)).context.slow).toBe(9)
  })
})
