/**
 * Which tasks reconciliation leaves to their own subscriptions: those that are really read, not those whose subscription is in
 * a state of reading and waits for a place, a process or its turn.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { v7 as newToken } from 'uuid'
import type { ActorRef } from '../../persistence/actors.ts'
import { postponeActor, type DueActor } from '../../persistence/leases.ts'
import { readUnfinished } from '../../persistence/reconciliation.ts'
import { readingStates } from '../../machines/subscription.ts'
import { bothDatabases } from '../support/databases.ts'
import { openModelStage, type Stage } from './models/stage.ts'

const ended = (work: string, kind: string) => ({ type: `xstate.done.actor.${work}`, output: { kind } })
const pauseOver = { type: 'xstate.after.readPause.subscription.polling.pausing' }

describe.each(bothDatabases)('a task whose subscription reads it, on %s', (kind) => {
  let stage: Stage
  let ref: ActorRef
  beforeAll(async () => {
    stage = await openModelStage(kind)
  })
  afterAll(() => stage.close())

  const claimed = async (): Promise<DueActor> => {
    const due = await stage.claim(ref)
    if (!due) throw new Error('The subscription is not due.')
    return due
  }
  /** Its agent does not stream, so its subscription pauses until the next read. */
  beforeEach(async () => {
    ref = { kind: 'subscription', id: await stage.beginTask(newToken(), 'TASK_STATE_WORKING') }
    await stage.report(await claimed(), ended('follow', 'unsupported'))
    expect(await stage.snapshot(ref)).toMatchObject({ value: { polling: 'pausing' } })
  })

  const isAskedFor = async (): Promise<boolean> => {
    const at = '9999-01-01T00:00:00.000Z'
    const readElsewhere = readingStates.map((value) => JSON.stringify(value))
    const scope = { agentId: stage.agentId, tenant: '' }
    const page = { after: null, quietSince: at, at, readElsewhere, limit: 1_000 }
    return (await readUnfinished(stage.db.pool, scope, page)).some(({ id }) => id === ref.id)
  }
  /** The row as if so much time had passed. */
  const later = (seconds: number) =>
    stage.db.pool.query(sql.unsafe`
      update actor set wake_at = wake_at - ${seconds} * interval '1 second',
        timers = (select jsonb_object_agg(key, jsonb_set(value, '{dueAt}',
          to_jsonb((value->>'dueAt')::timestamptz - ${seconds} * interval '1 second'))) from jsonb_each(timers))
      where kind = ${ref.kind} and id = ${ref.id}`)

  it('is not asked for while something was just heard of it, also by a clock that is ahead; by one that was set back it is', async () => {
    const scope = { agentId: stage.agentId, tenant: '' }
    const isAsked = async (secondsAhead: number): Promise<boolean> => {
      await stage.db.pool.query(
        sql.unsafe`update task set updated_at = now() + ${secondsAhead} * interval '1 second' where id = ${ref.id}`,
      )
      const now = Date.now()
      const [quietSince = '', at = ''] = [now - 10_000, now].map((ms) => new Date(ms).toISOString())
      const page = { after: null, quietSince, at, readElsewhere: [], limit: 1_000 }
      return (await readUnfinished(stage.db.pool, scope, page)).some(({ id }) => id === ref.id)
    }
    expect([await isAsked(-60), await isAsked(-1), await isAsked(5), await isAsked(3600)]).toEqual([
      true,
      false,
      false,
      true,
    ])
  })

  it('is left to it while its pause lasts, and not when the pause is long over', async () => {
    expect(await isAskedFor()).toBe(false)
    await later(60)
    expect(await isAskedFor()).toBe(true)
  })

  it('is left to it while it reads under a lease, and not when it waits for a place or its holder is gone', async () => {
    await stage.ring(ref, pauseOver)
    expect(await stage.snapshot(ref)).toMatchObject({ value: { polling: 'reading' } })
    expect(await isAskedFor()).toBe(true)
    const holder = await claimed()
    expect(await isAskedFor()).toBe(false)
    await stage.expire(ref)
    expect(await isAskedFor()).toBe(true)
    await postponeActor(stage.db.pool, holder, 600_000)
    expect(await isAskedFor()).toBe(true)
  })
})
