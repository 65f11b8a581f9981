/** Settlements as rows: one decision a command however many people come, beside a successor that is still under way. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Connection } from '../../persistence/connection.ts'
import { projectCommands, unsettledCommands } from '../../persistence/commands.ts'
import {
  findCommandToSettle,
  findSettlement,
  insertReopening,
  insertSettlement,
  lockEndedCommand,
} from '../../persistence/settlements.ts'
import { listUnsettledSends } from '../../persistence/unsettled-sends.ts'
import { at, idOf, ours, placeCommands } from '../support/command-rows.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { administratorOf } from '../support/viewers.ts'

const viewer = administratorOf(ours)
const count = 5

describe.each(bothDatabases)('settlements on %s', (database) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(database)
    const { pool } = fresh.db
    await placeCommands(fresh.db, count)
    await pool.query(sql.unsafe`insert into person (id, display_name) values (${ours}, 'Ada')`)
    await pool.transaction((tx) =>
      projectCommands(
        tx,
        [0, 1, 2].map((n) => ({
          id: idOf(n),
          status: 'uncertain',
          error: 'Nobody knows.',
          reply: null,
          taskId: null,
        })),
        at(1),
      ),
    )
  })
  afterAll(() => fresh.close())

  const decide = (tx: Connection, n: number, successor: number | null = null): Promise<void> =>
    insertSettlement(tx, viewer, {
      commandId: idOf(n),
      decision: successor === null ? 'arrived' : 'sent-again',
      note: null,
      successorId: successor === null ? null : idOf(successor),
      at: at(2),
    })
  const unsettled = async (): Promise<readonly string[]> =>
    (await listUnsettledSends(fresh.db.pool, viewer, at(0), 10, null)).map(({ id }) => id)

  const waiting = async (): Promise<number> => {
    const { n } = await fresh.db.pool.one(
      sql.type(z.object({ n: z.number() }))`
        select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return n
  }

  test('whoever comes second waits for the first, and reads what they decided', async () => {
    const { pool } = fresh.db
    const locked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const first = pool.transaction(async (tx) => {
      await lockEndedCommand(tx, viewer, idOf(0))
      locked.resolve()
      await goOn.promise
      await decide(tx, 0)
    })
    await locked.promise
    const second = pool.transaction(async (tx) => {
      await lockEndedCommand(tx, viewer, idOf(0))
      return findSettlement(tx, viewer, idOf(0))
    })
    // The first goes on when the second is surely waiting; an embedded database has one transaction at a time anyway.
    if (database === 'postgresql') await expect.poll(waiting).toBe(1)
    goOn.resolve()
    await first
    expect(await second).toEqual({
      decision: 'arrived',
      note: null,
      by: { id: ours, name: 'Ada' },
      at: at(2),
      successorId: null,
    })
  })

  test('of a task’s commands those that need a person come first, however many wait', async () => {
    const { pool } = fresh.db
    const remoteId = 'theirs'
    await pool.query(sql.unsafe`
      update command set remote_task_id = ${remoteId}, created_at = case when id = ${idOf(2)} then ${at(-9)} else created_at end
      where id = any(${sql.array([idOf(2), idOf(3), idOf(4)], 'uuid')})`)
    const commands = await unsettledCommands(pool, viewer, { agentId: ours, tenant: '', remoteId })
    expect(commands.map(({ id }) => id)).toEqual([idOf(2), idOf(4), idOf(3)])
    await pool.query(sql.unsafe`update command set remote_task_id = null, created_at = ${at(0)}`)
  })

  test('a command leaves the list once it is settled, also one whose actor nobody has any more', async () => {
    expect(await unsettled()).toEqual([idOf(2), idOf(1)])
    const { n } = await fresh.db.pool.one(
      sql.type(z.object({ n: z.number() }))`select count(*)::int as n from actor_archive`,
    )
    expect(n).toBe(0)
    await fresh.db.pool.transaction((tx) => decide(tx, 1))
    expect(await unsettled()).toEqual([idOf(2)])
  })

  test('a successor that is under way is named without waiting for it, and ends as it would', async () => {
    const { pool } = fresh.db
    // On an embedded database there is one transaction at a time: there the second waits its turn.
    const isAlone = database === 'pglite'
    const settle = () => pool.transaction((tx) => decide(tx, 2, 3))
    await pool.transaction(async (tx) => {
      await projectCommands(
        tx,
        [{ id: idOf(3), status: 'succeeded', error: null, reply: '{}', taskId: idOf(9) }],
        at(3),
      )
      if (!isAlone) await settle()
    })
    if (isAlone) await settle()
    expect((await findSettlement(pool, viewer, idOf(2)))?.successorId).toBe(idOf(3))
    expect(await unsettled()).toEqual([])
  })

  test('one that has not ended is not locked: it belongs to whoever holds its actor', async () => {
    const { pool } = fresh.db
    await pool.query(sql.unsafe`update command set status = 'dispatching' where id = ${idOf(4)}`)
    const lockElsewhere = () => pool.query(sql.unsafe`select from command where id = ${idOf(4)} for update nowait`)
    await pool.transaction(async (tx) => {
      expect(await lockEndedCommand(tx, viewer, idOf(4))).toBe(null)
      expect(await findCommandToSettle(tx, viewer, idOf(4))).toMatchObject({ status: 'dispatching', createdAt: at(0) })
      // On an embedded database nobody else is there to be held up.
      if (database === 'postgresql') await lockElsewhere()
    })
  })

  test('there is one decision a command; taken back, it needs a person as since its end, and may be decided anew', async () => {
    const { pool } = fresh.db
    await expect(pool.transaction((tx) => decide(tx, 0))).rejects.toThrow(/unique/)
    await pool.transaction((tx) => insertReopening(tx, viewer, { commandId: idOf(0), note: 'Wrong.', at: at(2) }))
    expect(await findSettlement(pool, viewer, idOf(0))).toBeNull()
    const [send] = await listUnsettledSends(pool, viewer, at(0), 10, null)
    expect([send?.id, send?.updatedAt]).toEqual([idOf(0), at(1)])
    await pool.transaction((tx) => decide(tx, 0))
    expect(await unsettled()).toEqual([])
  })
})
