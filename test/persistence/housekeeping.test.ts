/**
 * The embedded database's own housekeeping: what is dead is vacuumed, the log is cut, transaction numbers do not run out. That a process
 * comes to it by itself is actors/housekeeping-rounds.test.ts.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startPglite } from '../../persistence/drivers/pglite.ts'
import { PgliteHousekeeping } from '../../persistence/drivers/pglite-housekeeping.ts'
import { migratedDump } from '../support/migrated-dump.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-housekeeping-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const MB = 1024 * 1024
describe('housekeeping', () => {
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
