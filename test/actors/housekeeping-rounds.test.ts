/**
 * The rounds of housekeeping that a process makes by itself, for nobody else would: on the embedded database they keep the live table
 * and the log at one size. What one round of the database's own does is persistence/housekeeping.test.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Housekeeping, keepingByDefault } from '../../actors/housekeeping.ts'
import { instruments } from '../../actors/system.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { migratedDump } from '../support/migrated-dump.ts'
import { bytesIn, bytesOf } from '../support/disk-use.ts'
import { capturedLog, systemOn } from '../support/system.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-rounds-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const MB = 1024 * 1024
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

describe('rounds of housekeeping', () => {
  it('keep the live table and the log at one size, where without them they grow by every hour', async () => {
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
        hours.push(await bytesOf(db, 'actor'))
      }
      await keeper?.end()
      tables[house] = [hours[1] ?? 0, hours.at(-1) ?? 0]
      logs[house] = bytesIn(join(directory, 'pg_wal'))
      await db.close()
    }
    const [early = 0, late = 0] = tables.kept
    // The hours are not alike: a round may come in the middle of one, and what dies after it is the next one's.
    expect(late).toBeLessThan(2 * early)
    expect(tables.left[1]).toBeGreaterThan(4 * late)
    expect(logs.kept).toBeLessThanOrEqual(80 * MB)
    expect(logs.left).toBeGreaterThan(120 * MB)
  })

  it('come with every process: what was dead before one started is vacuumed once it runs', async () => {
    const db = await openDatabase({ kind: 'pglite', template: await migratedDump() })
    await busyHour(db)
    const before = await bytesOf(db, 'actor')
    const running = await systemOn(db)
    await expect.poll(() => bytesOf(db, 'actor')).toBeLessThan(before / 2)
    await running.close()
    await db.close()
  })
})
