/** Which actors have failed for so long that a person should know: by their first failure since they last did well, wherever that is counted. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listActors } from '../../persistence/actor-views.ts'
import { readQueues } from '../../persistence/queue-views.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { administratorOf } from '../support/viewers.ts'

const ours = '00000000-0000-7000-8000-00000000000a'
const [registered, removed] = ['a1000000-0000-7000-8000-000000000001', 'a1000000-0000-7000-8000-000000000002']
const kinds = ['subscription', 'reconciliation']

/** A step of a log: what happened, what it told, and how many seconds ago. */
type Step = readonly [type: string, facts: readonly string[], ageS: number]
interface Row {
  readonly kind: string
  readonly context: { readonly failures: number; readonly reason: string | null; readonly open?: true }
  readonly log: readonly Step[]
  readonly counts: boolean
  readonly ended?: boolean
  /** Its stream was begun so many seconds ago, under a lease that lasts. */
  readonly streamingS?: number
  readonly stopped?: boolean
  /** Of an agent that was removed. */
  readonly isRemoved?: boolean
}
const failed = { failures: 6, reason: 'Agent network request failed.' }
const failing = 'subscription.failing'
const born: Step = ['xstate.init', ['subscription.started'], 3_600]
const follow = 'xstate.done.actor.follow'
const rows: Readonly<Record<string, Row>> = {
  'for two minutes': { kind: 'subscription', context: failed, log: [born, [follow, [failing], 120]], counts: true },
  'for another reason since a moment': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 120], [follow, [failing], 3]],
    counts: true,
  },
  'asking, for two minutes': {
    kind: 'reconciliation',
    context: failed,
    log: [
      ['wanted', ['reconciliation.woken'], 3_600],
      ['xstate.done.actor.check', ['reconciliation.failing'], 120],
    ],
    counts: true,
  },
  'for longer than its log says': { kind: 'subscription', context: failed, log: [], counts: true, isRemoved: true },
  'for half a minute': { kind: 'subscription', context: failed, log: [born, [follow, [failing], 30]], counts: false },
  once: {
    kind: 'subscription',
    context: { ...failed, failures: 1 },
    log: [born, [follow, [failing], 120]],
    counts: false,
  },
  'again, since it did well': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 900], [follow, ['subscription.recovered'], 600], [follow, [failing], 30]],
    counts: false,
  },
  'again, since the agent was heard': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 900], ['heard', [], 600], [follow, [failing], 30]],
    counts: false,
  },
  'before it ended': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 900]],
    counts: false,
    ended: true,
  },
  'before its stream was opened again': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 900]],
    counts: false,
    streamingS: 300,
  },
  'while its stream is being opened': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 900]],
    counts: true,
    streamingS: 30,
  },
  'once its stream was just told to be open': {
    kind: 'subscription',
    context: { ...failed, open: true },
    log: [born, [follow, [failing], 900]],
    counts: false,
    streamingS: 30,
  },
  'before it gave up': {
    kind: 'subscription',
    context: failed,
    log: [born, [follow, [failing], 900], [follow, ['subscription.stopped'], 3]],
    counts: true,
    stopped: true,
  },
  'without a reason': { kind: 'subscription', context: { ...failed, reason: null }, log: [born], counts: false },
}

const idOf = (place: number): string => `a0000000-0000-7000-8000-0000000000${place.toString(16).padStart(2, '0')}`

describe.each(bothDatabases)('what fails, on %s', (profile) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(profile)
    const { pool } = fresh.db
    await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${ours}, 'ours', 'Ours')`)
    for (const [id, enabled] of [
      [registered, true],
      [removed, false],
    ] as const)
      await pool.query(sql.unsafe`
        insert into agent (id, organization_id, card_url, source, name, enabled)
        values (${id}, ${ours}, ${`http://agent.example/${id}`}, 'managed', 'Agent', ${enabled})`)
    for (const [place, { kind, context, log, ended, stopped, streamingS, isRemoved }] of Object.values(
      rows,
    ).entries()) {
      const id = idOf(place)
      const snapshot = JSON.stringify({
        value: stopped ? 'stopped' : 'backingOff',
        context,
        status: ended ? 'done' : 'active',
      })
      const columns = sql.fragment`kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at`
      const values = sql.fragment`${kind}, ${id}, ${ours}, '1', 9, ${snapshot}::jsonb, now() - interval '1 hour', now()`
      await pool.query(
        ended
          ? sql.unsafe`insert into actor_archive (${columns}) values (${values})`
          : sql.unsafe`insert into actor (${columns}, lane, timers) values (${values}, ${isRemoved ? removed : registered}, '{}')`,
      )
      if (streamingS !== undefined)
        await pool.query(sql.unsafe`
          update actor set work = 'follow', work_started_at = now() - ${streamingS} * interval '1 second', lease_owner = 'host/1',
            lease_token = gen_random_uuid(), lease_until = now() + interval '15 s' where id = ${id}`)
      for (const [at, [type, facts, ageS]] of log.entries())
        await pool.query(sql.unsafe`
        insert into actor_log (actor_id, kind, revision, machine_version, event, value, facts, cause, at, batch_id)
        values (${id}, ${kind}, ${at + 1}, '1', ${JSON.stringify({ type })}, '"backingOff"', ${sql.array([...facts], 'text')}, 'worker',
          now() - ${ageS} * interval '1 second', gen_random_uuid())`)
    }
  })
  afterAll(() => fresh.close())

  it('has moved last when this began, however often it was tried since, and when it gave up', async () => {
    const filter = {
      kinds,
      state: null,
      q: null,
      work: null,
      owner: null,
      agentId: null,
      attention: null,
      before: null,
    }
    const { pool } = fresh.db
    const all = await listActors(pool, administratorOf(ours), { ...filter, limit: 100 })
    const ages = Object.keys(rows).map((name, place) => {
      const { movedAt = '', seenAt = '' } = all.find(({ id }) => id === idOf(place)) ?? {}
      return [name, Math.floor((Date.parse(seenAt) - Date.parse(movedAt)) / 10_000) * 10]
    })
    expect(Object.fromEntries(ages)).toEqual({
      'for two minutes': 120,
      'for another reason since a moment': 120,
      'asking, for two minutes': 120,
      'for longer than its log says': 0,
      'for half a minute': 30,
      once: 0,
      'again, since it did well': 30,
      'again, since the agent was heard': 30,
      'before it ended': 0,
      'before its stream was opened again': 0,
      'while its stream is being opened': 900,
      'once its stream was just told to be open': 0,
      'without a reason': 0,
      'before it gave up': 0,
    })
  })

  it('needs a person where it is due and nobody works, in its filter and among the counts alike', async () => {
    const { pool } = fresh.db
    const filter = { kinds, state: null, q: null, work: null, owner: null, agentId: null, before: null, limit: 100 }
    const administrator = administratorOf(ours)
    const counted = async (): Promise<number> =>
      (await readQueues(pool, ours, kinds, [])).kinds.reduce((sum, { attention }) => sum + attention, 0)
    const left = async (): Promise<string[]> =>
      (await listActors(pool, administrator, { ...filter, attention: [] }))
        .filter(({ isLeftBehind }) => isLeftBehind)
        .map(({ id }) => id)
    const before = await counted()
    // One that otherwise does well.
    const due = idOf(Object.keys(rows).indexOf('once'))
    await pool.query(sql.unsafe`update actor set wake_at = now() - interval '10 seconds' where id = ${due}`)
    expect([await counted(), await left()]).toEqual([before, []])
    await pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values ('web', now(), '{"process": {"works": false}}')`)
    expect([await counted(), await left()]).toEqual([before + 1, [due]])
    await pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values ('worker', now(), '{"process": {"works": true}}')`)
    expect([await counted(), await left()]).toEqual([before, []])
    await pool.query(sql.unsafe`delete from process`)
    await pool.query(sql.unsafe`update actor set wake_at = null where id = ${due}`)
  })

  it('needs a person once that has lasted, in the list, in its filter and among the counts alike', async () => {
    const { pool } = fresh.db
    const filter = { kinds, state: null, q: null, work: null, owner: null, agentId: null, before: null, limit: 100 }
    const administrator = administratorOf(ours)
    const all = await listActors(pool, administrator, { ...filter, attention: null })
    const told = Object.entries(rows).map(([name], place) => [
      name,
      all.find(({ id }) => id === idOf(place))?.failsForLong,
    ])
    expect(told).toEqual(Object.entries(rows).map(([name, { counts }]) => [name, counts]))
    const wanted = Object.values(rows).flatMap(({ counts }, place) => (counts ? [idOf(place)] : []))
    const found = await listActors(pool, administrator, { ...filter, attention: [] })
    expect(found.map(({ id }) => id).toSorted()).toEqual(wanted)
    const queues = await readQueues(pool, ours, kinds, [])
    // What belonged to a removed agent needs a person still, but nothing of it goes on unseen.
    expect(queues.kinds.map(({ kind, attention, unseen }) => [kind, attention, unseen])).toEqual([
      ['subscription', 5, 4],
      ['reconciliation', 1, 1],
    ])
  })
})
