/**
 * A request that is counted does not wait for the disk, whoever asks and however they are known; what is accepted does. What each
 * transaction's commit waits for is noted by the database itself, as it ends.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { takePlaces } from '../../persistence/rate-limits.ts'
import { commandIn } from '../support/api.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startConsole } from '../support/console.ts'
import { startOrganization } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const tables = ['rate_window', 'command', 'audit'] as const

let fresh: FreshDatabase
let peer: RawPeer
beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
  peer = await startRawPeer()
  // A deferred constraint's trigger runs as the transaction commits.
  const watched = tables.map(
    (table) =>
      `create constraint trigger note_commit after insert or update on ${table} deferrable initially deferred for each row execute function note_commit();`,
  )
  await fresh.db.raw((client) =>
    client.query(`
      create table noted (place serial, written text, waits text);
      create function note_commit() returns trigger language plpgsql as $$ begin
        insert into noted (written, waits) values (tg_table_name, current_setting('synchronous_commit'));
        return null;
      end $$;
      ${watched.join('\n')}`),
  )
})
afterAll(async () => {
  const dropped = tables.map((table) => `drop trigger note_commit on ${table};`)
  await fresh.db.raw((client) =>
    client.query(`${dropped.join('\n')} drop function note_commit(); drop table noted; truncate rate_window`),
  )
  await fresh.close()
  await peer.close()
})

/** What was written since the last call, and whether its commits wait. */
const noted = async () => {
  const rows = await fresh.db.pool.any(
    sql.type(z.object({ written: z.string(), waits: z.string() }))`delete from noted returning written, waits`,
  )
  return Object.fromEntries(
    [...Map.groupBy(rows, ({ written }) => written)].map(([table, of]) => [
      table,
      [...new Set(of.map((w) => w.waits))],
    ]),
  )
}

test('where nobody signs in', async () => {
  const house = await startConsole({ database: fresh.db })
  const agentId = await house.api.register(peer.cardUrl)
  await noted()
  expect((await house.api.get('/api/agents')).status).toBe(200)
  expect(await noted()).toEqual({ rate_window: ['off'] })
  const sent = await house.api.post(`/api/agents/${agentId}/commands`, { text: 'hello' }, { 'idempotency-key': 'one' })
  await house.finished(commandIn(sent).id)
  expect(await noted()).toEqual({ rate_window: ['off'], command: ['on'], audit: ['on'] })
  await house.close()
})

test('where people do: asked for at the door, and presumed', async () => {
  const house = await startOrganization({ database: fresh.db })
  const ada = await house.person('admin')
  const agentId = await ada.api.register(peer.cardUrl)
  await noted()
  expect((await ada.api.get('/api/agents')).status).toBe(200)
  expect(await noted()).toEqual({ rate_window: ['off'] })
  for (const key of ['first', 'second']) {
    const send = () => ada.api.post(`/api/agents/${agentId}/commands`, { text: 'hello' }, { 'idempotency-key': key })
    expect((await send()).status).toBe(202)
    // Once more, so that the first is over: what it wrote as it ended is not the next one's.
    await expect.poll(async () => (await send()).body).toMatchObject({ command: { status: 'succeeded' } })
    expect(await noted(), key).toEqual({ rate_window: ['off'], command: ['on'], audit: ['on'] })
  }
  await house.close()
})

test('the session of the database waits again for what comes after', async () => {
  const modes = await fresh.db.pool.transaction(async (tx) => {
    const mode = () =>
      tx.oneFirst(sql.type(z.object({ mode: z.string() }))`select current_setting('synchronous_commit') as mode`)
    const before = await mode()
    await takePlaces(tx, [{ bucket: 'read/nobody', wanted: 1, limit: 9 }])
    return [before, await mode()]
  })
  expect(modes).toEqual(['on', 'off'])
  const after = await fresh.db.pool.any(
    sql.type(z.object({ mode: z.string() }))`select current_setting('synchronous_commit') as mode`,
  )
  expect(after).toEqual([{ mode: 'on' }])
})
