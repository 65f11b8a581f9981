/**
 * The embedded database's own housekeeping: what is dead is vacuumed, the log is cut, transaction numbers do not run out; by
 * the rounds that a process makes by itself, for nobody else would.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'slonik'
import { z } from 'zod'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Housekeeping, keepingByDefault } from '../../actors/housekeeping.ts'
import { instruments } from '../../actors/system.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { startPglite } from '../../persistence/drivers/pglite.ts'
import { PgliteHousekeeping } from '../../persistence/drivers/pglite-housekeeping.ts'
import { migratedDump } from '../support/databases.ts'
import { capturedLog, systemOn } from '../support/system.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-housekeeping-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const MB = 1024 * 1024
const bytesIn = (directory: string): number =>
  readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

/** A busy hour for the live table, whose actors are born, moved and removed, and for the log, which all else is written to. */
async function busyHour(db: Database): Promise<void> {
  await db.pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, wake_at, created_at, updated_at)
    select 'command', gen_random_uuid(), gen_random_uuid(), '1', 1, jsonb_build_object('value', repeat('x', 300)), '{}', now(), now(), now()
    from generate_series(1, 1500)`)
  await db.pool.query(sql.unsafe`update actor set wake_at = now(), revision = 2`)
  await db.pool.query(sql.unsafe`delete from actor`)
  await db.pool.query(sql.unsafe`select pg_logical_emit_message(false, 'all else', repeat('x', 24 * 1024 * 1024))`)
}

/** Rounds as a process makes them, on its own schedule. `aRound` resolves once a whole one has passed since it was called. */
function keep(db: Database, artifactDirectory: string) {
  let looks = 0
  const time = { ...instruments, now: () => (looks++, new Date()) }
  const stop = new AbortController()
  const { log } = capturedLog()
  const parts = { db, log, instruments: time, kinds: [], artifactDirectory, works: false, keeping: keepingByDefault }
  const rounds = new Housekeeping({ ...parts, roundMs: 20 }).loop(stop.signal)
  return {
    /** A round looks at the clock once, after it was the database's turn: the next look may be of one that had begun. */
    aRound: async (): Promise<void> => {
      const seen = looks
      await expect.poll(() => looks, { interval: 5 }).toBeGreaterThanOrEqual(seen + 2)
    },
    end: async (): Promise<void> => {
      stop.abort()
      await rounds
    },
  }
}
const sizeOf = (db: Database, table: string) =>
  db.pool.oneFirst(
    sql.type(z.object({ bytes: z.number() }))`select pg_total_relation_size(${table}::regclass) as bytes`,
  )

describe('housekeeping', () => {
  it('keeps the live table and the log at one size by its own rounds, where without them they grow by every hour', async () => {
    const tables = { kept: [0, 0], left: [0, 0] }
    const logs = { kept: 0, left: 0 }
    for (const house of ['kept', 'left'] as const) {
      const directory = join(folder, house)
      const db = await openDatabase({ kind: 'pglite', dataDir: directory, template: await migratedDump() })
      const keeper = house === 'kept' ? keep(db, folder) : null
      const hours: number[] = []
      for (let hour = 0; hour < 6; hour++) {
        await busyHour(db)
        await keeper?.aRound()
        hours.push(await sizeOf(db, 'actor'))
      }
      await keeper?.end()
      tables[house] = [hours[1] ?? 0, hours.at(-1) ?? 0]
      logs[house] = bytesIn(join(directory, 'pg_wal'))
      await db.close()
    }
    console.log(JSON.stringify({ tables, logs }))
    const [early = 0, late = 0] = tables.kept
    // The hours are not alike: a round may come in the middle of one, and what dies after it is the next one's.
    expect(late).toBeLessThan(2 * early)
    expect(tables.left[1]).toBeGreaterThan(4 * late)
    expect(logs.kept).toBeLessThanOrEqual(80 * MB)
    expect(logs.left).toBeGreaterThan(120 * MB)
  })

  it('comes with every process: what was dead before one started is vacuumed once it runs', async () => {
    const db = await openDatabase({ kind: 'pglite', template: await migratedDump() })
    await busyHour(db)
    const before = await sizeOf(db, 'actor')
    const running = await systemOn(db)
    await expect.poll(() => sizeOf(db, 'actor')).toBeLessThan(before / 2)
    await running.close()
    await db.close()
  })

  it('vacuums what grows as it grows, long texts too, so that no later round has all of it to read', async () => {
    const embedded = await startPglite({ template: await migratedDump() })
    const house = new PgliteHousekeeping(embedded)
    await embedded.client.query(`
      create table short (id int, words text);
      create table long (words text); alter table long alter column words set storage external`)
    const seen = async (table: string) => {
      const { rows } = await embedded.client.query<{ pages: number; seen: number }>(
        `select pg_relation_size($1::regclass) / 8192 as pages, relallvisible as seen from pg_class where oid = $1::regclass`,
        [table],
      )
      return rows[0] ?? { pages: 0, seen: 0 }
    }
    const { rows } = await embedded.client.query<{ name: string }>(
      `select reltoastrelid::regclass::text as name from pg_class where relname = 'long'`,
    )
    const apart = rows[0]?.name ?? ''
    for (let megabytes = 0; megabytes < 48; megabytes++) {
      const words = randomBytes(MB / 2).toString('hex')
      await embedded.client.query('insert into long values ($1)', [words])
      await embedded.client.query(
        `insert into short select n, repeat(md5(n::text), 31) from generate_series(1, 1000) n`,
      )
      await house.afterBurst()
    }
    for (const table of ['short', apart]) {
      const { pages, seen: visible } = await seen(table)
      expect(pages).toBeGreaterThan(4_096)
      // At most what may wait, and what came since the last burst.
      expect(pages - visible).toBeLessThan(5_000)
      expect(visible).toBeGreaterThan(0)
    }
    await embedded.client.query('create table small as select id from short where id <= 1000 limit 2000')
    // One table a call at the least: on a busy machine the first one takes all that a call may take.
    for (let call = 0; call < 5; call++) await house.run()
    const { rows: bounds } = await embedded.client.query<{ table: string; count: number }>(
      `select tablename as table, array_length(histogram_bounds::text::text[], 1) as count from pg_stats
       where attname = 'id' and tablename in ('short', 'small') order by 1`,
    )
    // A bound more than the target: of the large one a sample of a tenth was read.
    expect(bounds).toEqual([
      { table: 'short', count: 11 },
      { table: 'small', count: 101 },
    ])
    await embedded.client.end()
    await embedded.server.close()
  })

  it('says in its next round what failed in a burst, whose statement is not to blame', async () => {
    const embedded = await startPglite({ template: await migratedDump() })
    const { client } = embedded
    let isFull = true
    const query = ((text: string, values?: unknown[]) =>
      isFull && text === 'checkpoint'
        ? Promise.reject(new Error('could not write: no space left on device'))
        : client.query(text, values)) as typeof client.query
    const server = { unflushedBytes: 21 * MB }
    const house = new PgliteHousekeeping({ client: { query }, server })
    await house.afterBurst()
    isFull = false
    await expect(house.run()).rejects.toThrow(
      expect.objectContaining({ cause: new Error('could not write: no space left on device') }),
    )
    await house.run()
    await embedded.client.end()
    await embedded.server.close()
  })

  it('freezes every table before transaction numbers run out, the templates’ too', async () => {
    const embedded = await startPglite({ template: await migratedDump() })
    const oldest = async (): Promise<number> => {
      const { rows } = await embedded.client.query<{ age: number }>(
        'select max(age(datfrozenxid)) as age from pg_database',
      )
      return Number(rows[0]?.age)
    }
    await embedded.client.query('create table later (id int)')
    for (let n = 0; n < 300; n++) await embedded.client.query('insert into later values (1)')
    expect(await oldest()).toBeGreaterThan(300)
    const house = new PgliteHousekeeping(embedded, 200)
    // Bounded by its budget, it may take several calls.
    for (let call = 0; call < 40 && (await oldest()) > 200; call++) await house.run()
    expect(await oldest()).toBeLessThanOrEqual(200)
    const { rows } = await embedded.client.query('select count(*)::int as count from later')
    expect(rows).toEqual([{ count: 300 }])
    await embedded.client.end()
    await embedded.server.close()
  })
})
