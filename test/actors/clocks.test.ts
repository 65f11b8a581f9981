/**
 * Machines whose clocks differ share one database: its clock alone says when a timer is due, for whoever set it and whoever
 * looks. A process that is an hour ahead or behind waits as long as any other. On an embedded database that clock is the
 * machine's own, and may be set back: nothing waits until it has come to where it was.
 */
import { sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { setup } from 'xstate'
import { z } from 'zod'
import type { Runtime } from '../../actors/loop/runtime.ts'
import { instruments } from '../../actors/system.ts'
import { commandErrors } from '../../domain/command.ts'
import type { ActorRef } from '../../persistence/actors.ts'
import { claimActors, type Claim } from '../../persistence/leases.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { kindOf, loneRuntime } from '../support/lone-runtime.ts'
import { spawning } from '../support/spawning.ts'
import { systemOn } from '../support/system.ts'

const organizationId = newToken()
const hourMs = 3_600_000
const delayMs = 600_000

const sleeper = setup({ types: { events: {} as { type: 'turn' } } }).createMachine({
  id: 'sleeper',
  initial: 'asleep',
  states: { asleep: { after: { [delayMs]: 'awake' }, on: { turn: { target: 'asleep', reenter: true } } }, awake: {} },
})
const alone = { owner: 'test', exclusive: true, held: [] }
const ring = { type: `xstate.after.${delayMs}.sleeper.asleep` }

const spawn = spawning(organizationId)

/** Milliseconds until the timer is due, and until its row is, by the database's clock. */
const Due = z.object({ timer: z.number(), row: z.number() })
const skewed = (skewMs: number) => ({ ...instruments, now: () => new Date(instruments.now().getTime() + skewMs) })

describe.each(bothDatabases)('clocks that differ on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())

  const runtimeOf = (skewMs: number): Runtime =>
    loneRuntime({
      db: fresh.db,
      kinds: { sleeper: kindOf(sleeper) },
      instruments: skewed(skewMs),
      intake: { owner: 'test', takeRoom: () => false, giveBack: () => undefined, newToken },
    })
  const dueIn = (ref: ActorRef) =>
    fresh.db.pool.one(sql.type(Due)`
      select extract(epoch from (timers->${ring.type}->>'dueAt')::timestamptz - now())::float8 * 1000 as timer,
        extract(epoch from wake_at - now())::float8 * 1000 as row
      from actor where kind = ${ref.kind} and id = ${ref.id}`)

  it.each([hourMs, -hourMs])(
    'a timer is due as late as it should be, set by a process that is %i ms off',
    async (skewMs) => {
      const runtime = runtimeOf(skewMs)
      const ref = { kind: 'sleeper', id: newToken() }
      await runtime.perform(spawn, ref)
      const born = await dueIn(ref)
      await runtime.send(ref, { type: 'turn' }, 'test')
      for (const { timer, row } of [born, await dueIn(ref)]) {
        expect(timer).toBeGreaterThan(delayMs - 60_000)
        expect(timer).toBeLessThanOrEqual(delayMs)
        expect(Math.abs(timer - row)).toBeLessThan(1)
      }
      // Nor does it ring early because this process believes that it is due.
      expect(await runtime.send(ref, ring, 'timer')).toMatchObject({ value: 'asleep' })
    },
  )

  it('a command is tried again in time by a process that is an hour ahead', async () => {
    const running = await systemOn(fresh.db, { instruments: skewed(hourMs) })
    const shy = await startRawPeer()
    shy.script.fault('GetAgentCard', { fault: 'status', status: 503 }, Infinity)
    const { id: agentId } = await running.system.agents.register(running.viewer, shy.cardUrl)
    const { id } = await running.send(agentId, { text: 'hello' })
    // One second and then two: an hour more would not end here.
    expect(await running.finished(id)).toMatchObject({ status: 'failed', error: commandErrors.discovery })
    await running.close()
    await shy.close()
  })

  /** As if the clock had been set back: whatever was written was written in what is now the future. */
  const setBack = async (minutes: number): Promise<void> => {
    const later = sql.fragment`${minutes} * interval '1 minute'`
    await fresh.db.pool.query(sql.unsafe`
      update actor set updated_at = updated_at + ${later}, wake_at = wake_at + ${later},
        timers = coalesce((select jsonb_object_agg(t.key, jsonb_set(t.value, '{dueAt}', to_jsonb(to_char(
          ((t.value->>'dueAt')::timestamptz + ${later}) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))))
          from jsonb_each(timers) t), '{}'::jsonb)`)
    await fresh.db.pool.query(sql.unsafe`update task set updated_at = updated_at + ${later}`)
  }

  it.runIf(kind === 'pglite')(
    'a clock that is set back by twenty minutes stops no wait, and hastens no date',
    async () => {
      const ref = { kind: 'sleeper', id: newToken() }
      await runtimeOf(0).perform(spawn, ref)
      const claim = (more: Partial<Claim>) =>
        claimActors(fresh.db.pool, { kind: 'sleeper', limit: 10, leaseMs: 60_000, fullLanes: [], ...more }, alone)
      expect(await claim({})).toEqual([])
      await setBack(20)
      expect(await claim({ byCalendar: true })).toEqual([])
      const due = await claim({})
      expect(due.map(({ id }) => id)).toContain(ref.id)
      for (const { seenAt, timers } of due) expect(seenAt >= String(timers[ring.type]?.dueAt)).toBe(true)
      // It was put off as any row is whose timer is to ring, and does not come again at once.
      expect(await claim({})).toEqual([])
    },
  )

  it.runIf(kind === 'pglite')('a task that is read at intervals goes on being read', async () => {
    const running = await systemOn(fresh.db)
    const mute = await startRawPeer({ streaming: false })
    const { id: agentId } = await running.system.agents.register(running.viewer, mute.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
    await expect.poll(() => mute.callsOf('GetTask')).toBeGreaterThan(0)
    await setBack(20)
    mute.script.finish()
    await running.task(String(result?.localId), ({ state }) => state === 'TASK_STATE_COMPLETED')
    await running.close()
    await mute.close()
  })
})
