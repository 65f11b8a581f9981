/** Taking turns at the places that long work keeps: who is asked to go, and that nobody waits for ever behind a quiet stream. */
import { sql } from 'slonik'
import { describe, expect, it } from 'vitest'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import type { Kind } from '../../actors/loop/kinds.ts'
import { Leases, type HeldLease } from '../../actors/loop/lease.ts'
import { Room } from '../../actors/loop/room.ts'
import type { PlaceTimes } from '../../actors/loop/place-time.ts'
import { endTurns, whoYields, type Queue } from '../../actors/loop/turns.ts'
import { claimFor, type Turn } from '../../persistence/leases.ts'
import { bothDatabases, eitherDatabase, freshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem } from '../support/system.ts'

const Kind = z.object({ kind: z.string() })
const turnMs = 10_000
const now = 100_000

function held(id: string, lane: string, ago: { readonly since: number; readonly busy: number }): HeldLease {
  const ref = { kind: 'subscription', id }
  const lease = new Leases().hold({
    ref,
    token: id,
    work: 'follow',
    lane,
    isDoubted: false,
    leaseMs: 15_000,
    trustedFrom: now - ago.since,
  })
  lease.busyAt = now - ago.busy
  return lease
}
const timesOf =
  (times: Readonly<Record<string, number>>): PlaceTimes =>
  (lane) =>
    times[lane] ?? 0
/** All of them had as much. */
const queue = (...waiting: readonly string[]): Queue => ({ waiting, holding: new Set(), times: () => 0 })
const ids = (leases: readonly HeldLease[]): string[] => leases.map(({ ref }) => ref.id)

describe('who gives up a place', () => {
  const quiet = { since: 20_000, busy: 20_000 }

  it('is nobody while nobody waits, and nobody who had no turn yet', () => {
    expect(whoYields([held('a', 'x', quiet)], queue(), turnMs, now)).toEqual([])
    expect(whoYields([held('a', 'x', { since: 9_999, busy: 9_999 })], queue('y'), turnMs, now)).toEqual([])
  })

  it('is first of the agent that has most, there the quiet before the busy, then the oldest', () => {
    const all = [
      held('lonely', 'y', { since: 90_000, busy: 90_000 }),
      held('busy', 'x', { since: 90_000, busy: 10 }),
      held('young', 'x', { since: 10_000, busy: 10_000 }),
      held('old', 'x', quiet),
    ]
    expect(ids(whoYields(all, queue('x', 'x', 'y', 'y'), turnMs, now))).toEqual(['old', 'young', 'busy', 'lonely'])
    expect(ids(whoYields(all, queue('x'), turnMs, now))).toEqual(['old'])
  })

  it('is somebody busy only after three turns', () => {
    expect(whoYields([held('a', 'x', { since: 29_999, busy: 10 })], queue('y'), turnMs, now)).toEqual([])
    expect(ids(whoYields([held('a', 'x', { since: 30_000, busy: 10 })], queue('y'), turnMs, now))).toEqual(['a'])
  })

  it('is somebody busy after one turn, where an agent waits that has fewer places by two', () => {
    const busy = { since: 10_000, busy: 10 }
    const all = ['a', 'b', 'c'].map((id) => held(id, 'x', busy)).concat(held('d', 'y', { ...busy, since: 10_001 }))
    expect(ids(whoYields(all, queue('x', 'x'), turnMs, now))).toEqual([])
    expect(ids(whoYields(all, queue('x', 'z', 'x'), turnMs, now))).toEqual(['a'])
    // To the second of the same agent none goes: then it would have as many.
    expect(ids(whoYields(all, queue('z', 'z', 'v'), turnMs, now))).toEqual(['a', 'b'])
    const young = ['a', 'b', 'c'].map((id) => held(id, 'x', { since: 9_999, busy: 10 }))
    expect(whoYields(young, queue('z'), turnMs, now)).toEqual([])
  })

  it('is somebody who was quiet for a fifth of a turn, for an agent that had ten seconds less', () => {
    const all = [
      held('busy', 'x', { since: 9_000, busy: 1_999 }),
      held('young', 'x', { since: 1_999, busy: 1_999 }),
      held('second', 'x', { since: 2_000, busy: 2_000 }),
      held('first', 'x', { since: 2_001, busy: 2_000 }),
      held('lonely', 'y', { since: 9_000, busy: 9_000 }),
    ]
    const times = timesOf({ x: 40_000, y: 30_000, z: 30_000, w: 30_001, v: 20_001, u: 20_000 })
    const yielding = (...waiting: readonly string[]) =>
      ids(whoYields(all, { waiting, times, holding: new Set(['x', 'y']) }, turnMs, now))
    expect(yielding('z', 'z', 'z')).toEqual(['first'])
    expect(yielding('w')).toEqual([])
    // Whoever had least goes first; to those that are left one goes only if it had as much more than they.
    expect(yielding('z', 'v')).toEqual(['first', 'second'])
    expect(yielding('z', 'v', 'u')).toEqual(['first', 'second'])
    expect(yielding('u', 's', 't')).toEqual(['first', 'second', 'lonely'])
    // Who has a place here need not be given one.
    expect(yielding('x', 'y')).toEqual([])
  })

  it('is nobody besides, where places become free for the new ones anyway', () => {
    const all = [held('over', 'x', quiet), held('half', 'y', { since: 5_000, busy: 5_000 })]
    expect(
      ids(
        whoYields(
          all,
          { waiting: ['x', 'z'], holding: new Set(['x', 'y']), times: timesOf({ x: 40_000, y: 40_000, z: 0 }) },
          turnMs,
          now,
        ),
      ),
    ).toEqual(['over'])
  })
})

describe('whose turn it is', () => {
  const stage = () => {
    const leases = new Leases({ turnTaking: new Set(['subscription']) })
    const room = new Room({ subscription: { turnMs, concurrency: 8 } as Kind }, leases)
    let nth = 0
    const hold = (lane: string, at: number) =>
      leases.hold({ ...held(`${lane} ${++nth}`, lane, { since: 0, busy: 0 }), trustedFrom: at })
    const order = (at: number) => [...(room.turnsOf('subscription', at) ?? []).keys()]
    const times = (at: number) => leases.placeTime.of('subscription', leases.of('subscription'), at)
    return { leases, room, hold, order, times }
  }

  it('is of who has least, then of who had places for the least time', () => {
    const { leases, room, hold, order } = stage()
    const [x, y, z] = [hold('x', 0), hold('y', 0), hold('z', 0)]
    leases.drop(x, 3_000)
    leases.drop(y, 1_000)
    leases.drop(z, 2_000)
    expect(order(3_000)).toEqual(['y', 'z', 'x'])
    hold('y', 3_000)
    expect(room.turnsOf('subscription', 3_000)?.get('y')).toEqual({ held: 1, number: 0 })
    // Who is new here is nowhere in the order: it goes before all.
    expect(order(3_000)).not.toContain('w')
  })

  it('is of who is new, or was away for long, by no more than ten seconds, and of nobody after more than thirty', () => {
    const { leases, hold, times } = stage()
    leases.drop(hold('away', 0), 0)
    hold('there', 0)
    hold('there', 0)
    const least = times(3_600_000)('there')
    expect(times(3_600_000)('away')).toBe(least - 10_000)
    // However many are new: each is as far ahead as the first.
    for (const lane of ['new', 'newer', 'newest']) {
      expect(times(3_600_000)(lane)).toBe(least - 10_000)
      hold(lane, 3_600_000)
    }
    // A lead is used up by having places, and not had anew each time.
    leases.drop(hold('away', 3_600_000), 3_604_000)
    expect(times(3_604_000)('away')).toBe(least - 10_000 + 4_000)
    // Who had two places for an hour in which nobody wanted them need not wait until others had as much.
    expect(times(3_700_000)('there')).toBe(times(3_700_000)('new') + 30_000)
  })

  it.each(bothDatabases)('is told to the claim, on %s', async (database) => {
    const { db, close } = await freshDatabase(database)
    const [first, second, third] = [uuidv7(), uuidv7(), uuidv7()]
    for (const [i, lane] of [first, first, first, second, third].entries())
      await db.pool.query(sql.unsafe`
        insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, work, timers, wake_at, created_at, updated_at)
        values ('subscription', gen_random_uuid(), gen_random_uuid(), ${lane}, '1', 1, '{}', 'follow', '{}',
          now() - interval '5 seconds' + ${i} * interval '1 millisecond', now(), now())`)
    const claim = { kind: 'subscription', leaseMs: 15_000, fullLanes: [] }
    const take = async (limit: number, turns: readonly [string, Turn][]) => {
      const due = await claimFor(db, { ...claim, limit, turns: new Map(turns) }, { owner: 'a/1', held: () => [] })
      return due.map(({ lane }) => String(lane)).toSorted()
    }
    // Each lane's first before any lane's second, and of these whose turn it is; who holds one has had its first.
    const inOrder = [second, first].map((lane, number): [string, Turn] => [lane, { held: 0, number }])
    expect(await take(2, inOrder)).toEqual([second, third].toSorted())
    expect(await take(1, [[first, { held: 1, number: 0 }]])).toEqual([first])
    expect(await take(4, inOrder)).toEqual([first, first])
    await close()
  })
})

describe.each(eitherDatabase)('streams on %s', (kind) => {
  it('of an agent with more tasks than there are places make room for another agent, and for one another', async () => {
    const running = await freshSystem(kind, {
      rhythm: ({ subscription, ...kinds }) =>
        subscription ? { ...kinds, subscription: { ...subscription, turnMs: 100 } } : kinds,
    })
    const [many, one] = [await startRawPeer(), await startRawPeer()]
    const [manyId, oneId] = await Promise.all(
      [many, one].map(async ({ cardUrl }) => (await running.system.agents.register(running.viewer, cardUrl)).id),
    )
    const tasks = 12
    const sent = await Promise.all(Array.from({ length: tasks }, () => running.send(manyId ?? '', { text: 'hold' })))
    await Promise.all(sent.map(({ id }) => running.finished(id)))
    await expect.poll(() => many.callsOf('SubscribeToTask'), { timeout: 10_000 }).toBeGreaterThanOrEqual(8)
    const { id } = await running.send(oneId ?? '', { text: 'hold' })
    await running.finished(id)
    // The other agent's one stream is opened although eight of the first are quiet and would stay for half an hour.
    await expect.poll(() => one.callsOf('SubscribeToTask'), { timeout: 10_000 }).toBeGreaterThanOrEqual(1)
    await expect.poll(() => new Set(many.subscribed()).size, { timeout: 20_000 }).toBe(tasks)
    // Nobody has lost anything by it: every task is still seen to its end.
    many.script.finish()
    one.script.finish()
    for (const command of [...sent, { id }]) {
      const { result } = await running.system.commands.find(running.viewer, command.id)
      await running.task(String(result?.localId), ({ state }) => state === 'TASK_STATE_COMPLETED')
    }
    expect(running.lines.filter(({ level }) => level === 'error')).toEqual([])
    await running.close()
    await Promise.all([many.close(), one.close()])
  })
})

it.concurrent.each(eitherDatabase)(
  'a new agent’s stream need not wait until a turn is over, however many wait, on %s',
  async (kind) => {
    const running = await freshSystem(kind, {
      rhythm: ({ subscription, ...kinds }) =>
        subscription ? { ...kinds, subscription: { ...subscription, concurrency: 4, turnMs: 45_000 } } : kinds,
    })
    const peers = await Promise.all(Array.from({ length: 6 }, () => startRawPeer()))
    const [fresh, ...silent] = peers
    const sendTo = async ({ cardUrl }: RawPeer, count: number) => {
      const { id } = await running.system.agents.register(running.viewer, cardUrl)
      const sent = await Promise.all(Array.from({ length: count }, () => running.send(id, { text: 'hold' })))
      return Promise.all(sent.map((command) => running.finished(command.id)))
    }
    try {
      // Fifteen streams that say nothing, and four places: one agent has none yet, and its tasks are older, too.
      await Promise.all(silent.map((peer) => sendTo(peer, 3)))
      const subscribed = () => silent.reduce((sum, peer) => sum + peer.callsOf('SubscribeToTask'), 0)
      await expect.poll(subscribed, { timeout: 10_000 }).toBeGreaterThanOrEqual(4)
      const [task] = await sendTo(fresh ?? (await startRawPeer()), 1)
      await expect.poll(() => fresh?.callsOf('SubscribeToTask'), { timeout: 30_000 }).toBe(1)
      fresh?.script.finish()
      await running.task(String(task?.result?.localId), ({ state }) => state === 'TASK_STATE_COMPLETED')
    } finally {
      await running.close()
      await Promise.all(peers.map((peer) => peer.close()))
    }
  },
)

it.concurrent.each(eitherDatabase)('a look that others cut short is no failure of its agent, on %s', async (kind) => {
  const running = await freshSystem(kind, {
    rhythm: ({ subscription, ...kinds }) =>
      subscription ? { ...kinds, subscription: { ...subscription, concurrency: 1, turnMs: 100 } } : kinds,
  })
  const peer = await startRawPeer({ streaming: false })
  try {
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    // Longer than anybody waits for a place, and much less than an answer may take.
    peer.script.fault('GetTask', { fault: 'delay', delayMs: 2_500 }, Infinity)
    const sent = await Promise.all(['hold', 'hold'].map((text) => running.send(agentId, { text })))
    const tasks = (await Promise.all(sent.map(({ id }) => running.finished(id)))).map(({ result }) => result)
    await expect.poll(() => peer.callsOf('GetTask'), { timeout: 45_000 }).toBeGreaterThanOrEqual(3)
    peer.script.heal()
    peer.script.finish()
    for (const task of tasks) await running.task(String(task?.localId), ({ state }) => state === 'TASK_STATE_COMPLETED')
    const told = await running.db.pool.anyFirst(sql.type(Kind)`select kind from fact where kind like 'subscription.%'`)
    expect(new Set(told)).toEqual(new Set(['subscription.started', 'subscription.finished']))
  } finally {
    await running.close()
    await peer.close()
  }
})

it('a place whose work does not hear of turns at once uses up nobody’s turn', async () => {
  const running = await freshSystem('pglite', { works: false })
  const { subscription } = running.system.kinds
  if (!subscription) throw new Error('There are no subscriptions.')
  await running.db.pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, timers, wake_at, created_at, updated_at)
    values ('subscription', gen_random_uuid(), gen_random_uuid(), '1', 1, '{}', 'follow', '{}', now() - interval '5 seconds', now(), now())`)
  const leases = new Leases()
  const [closing, following] = (['close', 'follow'] as const).map((work, i) =>
    leases.hold({
      ref: { kind: 'subscription', id: work },
      token: work,
      work,
      lane: 'x',
      isDoubted: false,
      leaseMs: 15_000,
      trustedFrom: i,
    }),
  )
  // One waits, and the older of the two is a look at a task that is over.
  await endTurns(running.db, { subscription: { ...subscription, concurrency: 2 } }, leases, 60_000)
  expect([closing?.turn.signal.aborted, following?.turn.signal.aborted]).toEqual([true, true])
  await running.close()
})
