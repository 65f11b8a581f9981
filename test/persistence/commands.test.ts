/** Rows of commands: what their end costs, and where those that need a person are found. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { projectCommands } from '../../persistence/commands.ts'
import { countUnsettledSends, listUnsettledSends } from '../../persistence/unsettled-sends.ts'
import { at, idOf, ours, placeCommands } from '../support/command-rows.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { administratorOf } from '../support/viewers.ts'

const administrator = administratorOf(ours)
const ended = (n: number, status: 'succeeded' | 'failed' | 'uncertain') => ({
  id: idOf(n),
  status,
  error: status === 'succeeded' ? null : 'Nobody knows.',
  reply: status === 'succeeded' ? '{}' : null,
  taskId: status === 'succeeded' ? idOf(2000 + n) : null,
})

describe.each(bothDatabases)('commands on %s', (database) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(database)
    await placeCommands(fresh.db, 6)
  })
  afterAll(() => fresh.close())

  test('a success writes its row and no index, whatever else is in the batch', async () => {
    const Updates = z.object({ all: z.number(), beside: z.number() })
    const updates = await fresh.db.pool.transaction(async (tx) => {
      await projectCommands(tx, [ended(0, 'succeeded'), ended(1, 'succeeded'), ended(2, 'failed')], at(1))
      return tx.one(sql.type(Updates)`
        select n_tup_upd as "all", n_tup_hot_upd as beside from pg_stat_xact_user_tables where relname = 'command'`)
    })
    expect(updates).toEqual({ all: 3, beside: 2 })
  })

  test('what ended failed or uncertain is found, the latest end first, and nothing else is', async () => {
    await fresh.db.pool.transaction((tx) => projectCommands(tx, [ended(3, 'uncertain')], at(3)))
    await fresh.db.pool.transaction((tx) => projectCommands(tx, [ended(4, 'failed')], at(2)))
    const found = async (since: string): Promise<readonly string[]> =>
      (await listUnsettledSends(fresh.db.pool, administrator, since, 10, null)).map(({ id }) => id)
    expect(await found(at(0))).toEqual([idOf(3), idOf(4), idOf(2)])
    expect(await found(at(1))).toEqual([idOf(3), idOf(4)])
  })

  test('what needs a person is counted by kind, the newest up to a limit, for who may see it', async () => {
    const { pool } = fresh.db
    await pool.query(sql.unsafe`update command set action = 'cancelTask' where id = ${idOf(2)}`)
    const count = (limit: number, who = administrator) => countUnsettledSends(pool, who, at(0), limit, null)
    expect(await count(10)).toEqual({ messages: 2, cancels: 1 })
    expect(await count(2)).toEqual({ messages: 2, cancels: 0 })
    expect(await count(10, { ...administrator, role: 'viewer' })).toEqual({ messages: 0, cancels: 0 })
  })
})
