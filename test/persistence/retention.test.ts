/** Retention: what is old is forgotten in bounded passes, and append-only stays what it was for everybody and everything else. */
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Housekeeping, keepingByDefault } from '../../actors/housekeeping.ts'
import { instruments } from '../../actors/system.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { lookFrom, openHorizon } from '../../persistence/freshness.ts'
import { ensureLocalAdministrator } from '../../persistence/people.ts'
import { forgetActors, forgetFacts, markLineages } from '../../persistence/retention.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { capturedLog } from '../support/system.ts'

const hoursAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString()
const Count = sql.type(z.object({ count: z.number() }))
const kinds = ['command', 'ownership', 'subscription']
const never = new AbortController().signal

const shards = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))
/** Puts a file that nothing refers to into each shard of an artifact directory, as old as that. */
async function fillShards(folder: string, at: Date): Promise<void> {
  for (const shard of shards) {
    const file = join(folder, shard, shard.padEnd(64, '0'))
    await mkdir(join(folder, shard))
    await writeFile(file, 'which nothing refers to')
    await utimes(file, at, at)
  }
}

describe.each(bothDatabases)('retention on %s', (kind) => {
  let fresh: FreshDatabase
  let db: Database
  let organizationId: string

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
    const ids = { organizationId: uuidv7(), personId: uuidv7(), membershipId: uuidv7() }
    organizationId = (await ensureLocalAdministrator(db, 'local', 'Local', ids)).organizationId
  })
  afterAll(() => fresh.close())
  beforeEach(async () => {
    // The tests' own hand, which no guard is meant to hold.
    await db.raw((client) =>
      client.query(`alter table fact disable trigger user; alter table actor_log disable trigger user;
        delete from fact; delete from actor_log; delete from actor_archive; delete from actor; delete from retention_mark;
        alter table fact enable trigger user; alter table actor_log enable trigger user;`),
    )
  })

  const facts = (count: number, at: string) =>
    db.pool.query(sql.unsafe`
      insert into fact (organization_id, kind, subject_id, data, at, batch_id)
      select ${organizationId}, 'command.accepted', 's', '{}', ${at}, ${uuidv7()} from generate_series(1, ${count}::int)`)
  const factsLeft = () => db.pool.oneFirst(Count`select count(*)::int from fact`)
  const entries = () => db.pool.oneFirst(Count`select count(*)::int from actor_log`)
  const logOf = (ids: readonly string[], actorKind: string, at: string) =>
    db.pool.query(sql.unsafe`
      insert into actor_log (actor_id, kind, revision, machine_version, event, value, facts, cause, at, batch_id)
      select id, ${actorKind}, n, '1', '{}', '"x"', '{}', 'test', ${at}, ${uuidv7()}
      from unnest(${sql.array([...ids], 'uuid')}) id, generate_series(1, 3) n`)
  /** Archived actors with three entries each; the first one's id. */
  async function archived(actorKind: string, at: string, count = 1): Promise<string> {
    const ids = Array.from({ length: count }, () => uuidv7())
    await db.pool.query(sql.unsafe`
      insert into actor_archive (kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at)
      select ${actorKind}, id, ${organizationId}, '1', 3, '{}', ${at}, ${at} from unnest(${sql.array(ids, 'uuid')}) id`)
    await logOf(ids, actorKind, at)
    return ids[0] ?? ''
  }
  async function living(actorKind: string, at: string): Promise<string> {
    const id = uuidv7()
    await db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, created_at, updated_at)
      values (${actorKind}, ${id}, ${organizationId}, '1', 3, '{}', '{}', ${at}, ${at})`)
    await logOf([id], actorKind, at)
    return id
  }
  async function forgetAll(): Promise<{ actors: number; entries: number; passes: number }> {
    const sum = { actors: 0, entries: 0, passes: 0 }
    for (const lineage of await markLineages(db.pool, kinds))
      for (let more = true; more;) {
        const rows = lineage.kind === 'command' ? 'forget rows' : 'keep rows'
        const pass = await forgetActors(db.pool, lineage, hoursAgo(30 * 24), rows)
        sum.actors += pass.actors
        sum.entries += pass.entries
        sum.passes += 1
        more = pass.more
      }
    return sum
  }

  it('forgets old facts pass by pass, never the last thousand, and whoever waits for news does not notice', async () => {
    await facts(4_500, hoursAgo(24 * 8))
    await facts(700, hoursAgo(1))
    const before = hoursAgo(24 * 7)
    const { horizon } = await lookFrom(db.pool, await openHorizon(db.pool))
    const first = await forgetFacts(db.pool, before, 0)
    expect(first.facts).toBe(2_000)
    expect(first.next).not.toBeNull()
    const second = await forgetFacts(db.pool, before, first.next ?? 0)
    expect(second.facts).toBe(2_000)
    // 4,200 may go: the last thousand numbers stay, old as three hundred of them are.
    expect(await forgetFacts(db.pool, before, second.next ?? 0)).toEqual({ facts: 200, next: null })
    expect(await factsLeft()).toBe(1_000)
    const unmoved = await lookFrom(db.pool, horizon)
    expect(unmoved).toMatchObject({ news: [], isBlurred: false, more: false })
    expect(await forgetFacts(db.pool, before, 0)).toEqual({ facts: 0, next: null })
    await facts(1, hoursAgo(0))
    expect((await lookFrom(db.pool, unmoved.horizon)).news).toHaveLength(1)
  })

  it('is not held up by facts of a clock that was ahead', async () => {
    // A year ahead, and by now no more: three days old as it says.
    await facts(2_000, hoursAgo(-24 * 365))
    await facts(2_000, hoursAgo(24 * 3))
    await facts(500, hoursAgo(24 * 8))
    await facts(1_000, hoursAgo(0))
    const before = hoursAgo(24 * 7)
    const ahead = await forgetFacts(db.pool, before, 0)
    expect(ahead).toEqual({ facts: 0, next: expect.any(Number) })
    const first = await forgetFacts(db.pool, before, ahead.next ?? 0)
    expect(first).toEqual({ facts: 0, next: expect.any(Number) })
    expect(await forgetFacts(db.pool, before, first.next ?? 0)).toEqual({ facts: 500, next: null })
  })

  it('gives the database its due between passes, so that its log stays small', async () => {
    await facts(110_000, hoursAgo(24 * 8))
    let dues = 0
    const housekeep = (): Promise<void> => {
      dues += 1
      return db.housekeep()
    }
    const { log } = capturedLog()
    const parts = { log, instruments, kinds: [], artifactDirectory: '', works: true, keeping: keepingByDefault }
    await new Housekeeping({ ...parts, db: { ...db, housekeep } }).forget(never)
    expect(await factsLeft()).toBe(1_000)
    expect(dues).toBe(1)
  })

  it('leaves no gap for whoever begins to listen: what is under way may fill a number, what was forgotten may not', async () => {
    await facts(3_000, hoursAgo(24 * 8))
    expect((await forgetFacts(db.pool, hoursAgo(24 * 7), 0)).facts).toBe(2_000)
    expect((await openHorizon(db.pool)).gaps.size).toBe(0)
    await db.pool.query(sql.unsafe`select nextval(pg_get_serial_sequence('fact', 'number'))`)
    await facts(1, hoursAgo(0))
    expect((await openHorizon(db.pool)).gaps.size).toBe(1)
  })

  it('keeps young facts wherever they stand', async () => {
    await facts(500, hoursAgo(24 * 8))
    await facts(500, hoursAgo(1))
    await facts(500, hoursAgo(24 * 8))
    await facts(1_500, hoursAgo(1))
    expect((await forgetFacts(db.pool, hoursAgo(24 * 7), 0)).facts).toBe(1_000)
    expect(await factsLeft()).toBe(2_000)
  })

  it('forgets the logs of actors that were archived long ago; of commands the archived row, too', async () => {
    const old = hoursAgo(31 * 24)
    // Of one instant, more than a pass takes: none is skipped, and none is looked at twice.
    await archived('command', old, 250)
    await archived('subscription', old, 250)
    const young = await archived('command', hoursAgo(29 * 24))
    const alive = await living('ownership', old)
    expect(await forgetAll()).toEqual({ actors: 500, entries: 1_500, passes: 5 })
    expect(await entries()).toBe(6)
    const left = await db.pool.any(sql.type(z.object({ kind: z.string(), count: z.number() }))`
      select kind, count(*)::int from actor_archive group by kind order by kind`)
    expect(left).toEqual([
      { kind: 'command', count: 1 },
      { kind: 'subscription', count: 250 },
    ])
    const owners = await db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
      select distinct actor_id as id from actor_log order by 1`)
    expect(owners.toSorted()).toEqual([young, alive].toSorted())
    // The next look begins where this one ended, and not with what is left of it.
    expect(await forgetAll()).toEqual({ actors: 0, entries: 0, passes: 3 })
    await archived('subscription', hoursAgo(30 * 24 + 1))
    expect(await forgetAll()).toEqual({ actors: 1, entries: 3, passes: 3 })
  })

  it('refuses everybody else, and retention itself what is young or alive', async () => {
    const old = hoursAgo(31 * 24)
    await facts(1, old)
    await facts(1, hoursAgo(23))
    const dead = await archived('command', old)
    const alive = await living('ownership', old)
    const recent = await archived('command', hoursAgo(23))
    const attempt = (statement: ReturnType<typeof sql.unsafe>, admitted: boolean) =>
      db.pool.transaction(async (tx) => {
        if (admitted) await tx.query(sql.unsafe`select set_config('signalbox.retention', 'on', true)`)
        await tx.query(statement)
      })
    const factsRefused = 'facts are append-only'
    const logRefused = 'actor log entries are append-only'
    const logs = (id: string) => sql.unsafe`delete from actor_log where actor_id = ${id}`
    await expect(attempt(sql.unsafe`delete from fact`, false)).rejects.toThrow(factsRefused)
    await expect(attempt(sql.unsafe`delete from fact`, true)).rejects.toThrow(factsRefused)
    await expect(attempt(sql.unsafe`update fact set kind = 'x'`, true)).rejects.toThrow(factsRefused)
    await expect(attempt(sql.unsafe`truncate fact`, true)).rejects.toThrow(factsRefused)
    await expect(attempt(logs(dead), false)).rejects.toThrow(logRefused)
    await expect(attempt(logs(alive), true)).rejects.toThrow(logRefused)
    await expect(attempt(logs(recent), true)).rejects.toThrow(logRefused)
    await expect(attempt(sql.unsafe`update actor_log set cause = 'x'`, true)).rejects.toThrow(logRefused)
    await expect(attempt(sql.unsafe`truncate actor_log`, true)).rejects.toThrow(logRefused)
    expect([await factsLeft(), await entries()]).toEqual([2, 9])
    // The admission ends with its transaction.
    await attempt(logs(dead), true)
    await expect(attempt(sql.unsafe`delete from fact where at < now() - interval '2 days'`, false)).rejects.toThrow(
      factsRefused,
    )
  })

  it('is done by the house: what is kept is what was configured, and a round says what went', async () => {
    await facts(1_500, hoursAgo(24 * 8))
    await facts(1_000, hoursAgo(24 * 3))
    await archived('command', hoursAgo(24 * 31))
    const { log, lines } = capturedLog()
    const directory = '/nonexistent/signalbox/artifacts'
    const options = {
      db,
      log,
      instruments,
      kinds,
      works: true,
      artifactDirectory: directory,
      keeping: keepingByDefault,
    }
    await new Housekeeping(options).round(never)
    expect(lines).toEqual([
      { level: 'info', message: 'old facts and logs were deleted', fields: { facts: 1_500, actors: 1, entries: 3 } },
    ])
    const keeping = { ...keepingByDefault, factDays: 2 }
    await facts(1_000, hoursAgo(1))
    await new Housekeeping({ ...options, keeping, works: false }).round(never)
    expect(await factsLeft()).toBe(2_000)
    await new Housekeeping({ ...options, keeping }).round(never)
    expect(await factsLeft()).toBe(1_000)
  })

  it('is done with what is over of windows, deliveries, sign-ins, sessions and processes, where nobody works, too', async () => {
    const longAgo = hoursAgo(24)
    const over = [
      sql.unsafe`insert into rate_window (bucket, starts_at, taken) values ('over', ${longAgo}, 1)`,
      sql.unsafe`insert into push_delivery (registration_id, key, received_at) values (${uuidv7()}, 'over', ${longAgo})`,
      sql.unsafe`insert into sign_in_attempt (state_hash, binding_hash, sealed, expires_at) values ('over', 'b', 's', ${longAgo})`,
      sql.unsafe`insert into session (token_hash, id, membership_id, created_at, seen_at, expires_at)
        values ('over', ${uuidv7()}, ${uuidv7()}, ${longAgo}, ${longAgo}, ${longAgo})`,
      sql.unsafe`insert into process (owner, seen_at, told) values ('over', ${longAgo}, '{}')`,
    ]
    await db.pool.transaction(async (tx) => {
      // Whose they were matters to nobody here.
      await tx.query(sql.unsafe`set local session_replication_role = replica`)
      for (const statement of over) await tx.query(statement)
    })
    const left = (): Promise<readonly string[]> =>
      db.pool.anyFirst(sql.type(z.object({ place: z.string() }))`
        select 'window' as place from rate_window where bucket = 'over'
        union all select 'delivery' from push_delivery where key = 'over'
        union all select 'sign-in' from sign_in_attempt where state_hash = 'over'
        union all select 'session' from session where token_hash = 'over'
        union all select 'process' from process where owner = 'over'`)
    expect(await left()).toHaveLength(over.length)
    const { log } = capturedLog()
    const parts = { db, log, instruments, kinds, works: false, artifactDirectory: '/nonexistent' }
    await new Housekeeping({ ...parts, keeping: keepingByDefault }).round(never)
    expect(await left()).toEqual([])
  })

  it('is no matter of one clock that is ahead: what is over for nobody else stays', async () => {
    const later = hoursAgo(-24)
    await facts(1_500, hoursAgo(25))
    await archived('command', hoursAgo(25))
    const justOver = hoursAgo(0.5)
    const [attempt, session] = [uuidv7(), uuidv7()]
    await db.pool.transaction(async (tx) => {
      // Whose they are matters to nobody here.
      await tx.query(sql.unsafe`set local session_replication_role = replica`)
      for (const [name, until] of [
        ['good', later],
        ['good elsewhere', justOver],
      ] as const) {
        await tx.query(sql.unsafe`insert into sign_in_attempt (state_hash, binding_hash, sealed, expires_at)
          values (${name + attempt}, 'b', 's', ${until})`)
        await tx.query(sql.unsafe`insert into session (token_hash, id, membership_id, created_at, seen_at, expires_at)
          values (${name + session}, ${uuidv7()}, ${uuidv7()}, ${justOver}, ${justOver}, ${until})`)
      }
    })
    const folder = await mkdtemp(join(tmpdir(), 'signalbox-ahead-'))
    await fillShards(folder, new Date())
    const { log, lines } = capturedLog()
    const ahead = { ...instruments, now: () => new Date(Date.now() + 60 * 24 * 3_600_000) }
    const parts = { db, log, instruments: ahead, kinds, works: true, artifactDirectory: folder }
    await new Housekeeping({ ...parts, keeping: keepingByDefault }).round(never)
    const Names = sql.type(z.object({ name: z.string() }))
    expect([
      await db.pool.anyFirst(
        Names`select state_hash as name from sign_in_attempt where state_hash like ${`%${attempt}`} order by 1`,
      ),
      await db.pool.anyFirst(
        Names`select token_hash as name from session where token_hash like ${`%${session}`} order by 1`,
      ),
    ]).toEqual([attempt, session].map((id) => [`good elsewhere${id}`, `good${id}`]))
    expect([await factsLeft(), await entries(), lines]).toEqual([1_500, 3, []])
    await rm(folder, { recursive: true })
  })

  it('sweeps four shards of the artifacts in each round, the next ones in the next, where work is done', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'signalbox-swept-'))
    await fillShards(folder, new Date(hoursAgo(24 * 8)))
    const { log, lines } = capturedLog()
    const parts = { db, log, instruments, kinds, artifactDirectory: folder, keeping: keepingByDefault }
    await new Housekeeping({ ...parts, works: false }).round(never)
    expect(lines).toEqual([])
    const house = new Housekeeping({ ...parts, works: true })
    for (let round = 0; round < 2; round++) await house.round(never)
    const told = lines.map(({ message, fields }) => [message, fields['aside'], fields['removed']])
    expect(told).toEqual(Array.from({ length: 8 }, () => ['artifacts were swept', 1, 0]))
    const first = Number(lines[0]?.fields['shard'])
    expect(lines.map(({ fields }) => fields['shard'])).toEqual(
      Array.from({ length: 8 }, (_, n) => (first + n) % shards.length),
    )
    const left = await Promise.all(shards.map((shard) => readdir(join(folder, shard))))
    expect(left.flat().filter((name) => name.length === 64)).toHaveLength(shards.length - 8)
    await rm(folder, { recursive: true })
  })

  it('by two at once forgets everything once, while others write', async () => {
    const other = kind === 'postgresql' ? await openDatabase(fresh.profile) : null
    const old = hoursAgo(31 * 24)
    await facts(6_000, old)
    await archived('command', old, 300)
    const { log, lines } = capturedLog()
    const options = {
      db,
      log,
      instruments,
      kinds,
      works: true,
      artifactDirectory: '/nonexistent',
      keeping: keepingByDefault,
    }
    const houses = [new Housekeeping(options), new Housekeeping({ ...options, db: other ?? db })]
    let written = 0
    let working = true
    const writer = async (): Promise<void> => {
      for (; working && written < 2_000; written += 10) await facts(10, hoursAgo(0))
    }
    const writing = writer()
    await Promise.all(houses.map((house) => house.forget(never)))
    working = false
    await writing
    // One may have been waiting for the mark that the other held; then it left the rest to a later look.
    for (const house of houses) await house.forget(never)
    const sum = (field: string): number => lines.reduce((total, { fields }) => total + Number(fields[field]), 0)
    expect([sum('actors'), sum('entries'), await entries()]).toEqual([300, 900, 0])
    expect(sum('facts') + (await factsLeft())).toBe(6_000 + written)
    expect(await factsLeft()).toBe(Math.max(1_000, written))
    await other?.close()
  })
})
