/**
 * A start that fails late: the workers are running when the last of it asks the database, and what they have begun by then is
 * waited for, as at any other end.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { sql } from 'slonik'
import { expect, test } from 'vitest'
import { bareEnvironment, childArgs } from '../support/child.ts'
import { freshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { systemOn } from '../support/system.ts'
import { watch } from './stage.ts'
import { freePort } from '../support/free-port.ts'

const root = resolve(import.meta.dirname, '../..')
const lock = 7_001

test('a delivery that is under way when the start fails ends with its real outcome', async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'signalbox-late-failure-'))
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
  const peer = await startRawPeer()
  // Something to do for whoever works first.
  const clerk = await systemOn(fresh.db, { works: false })
  const { id: agentId } = await clerk.system.agents.register(clerk.viewer, peer.cardUrl)
  peer.script.holdReplies()
  const { id, messageId } = await clerk.send(agentId, { text: 'direct' })
  await fresh.db.raw((client) =>
    client.query(`
      create function refuse() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(${lock}); raise exception 'no more organizations'; end $$;
      create trigger refuse before insert on organization for each row execute function refuse()`),
  )
  const child = await fresh.db.raw(async (holder) => {
    await holder.query(`select pg_advisory_lock(${lock})`)
    const started = watch(
      spawn(process.execPath, childArgs(join(root, 'bin/console.ts')), {
        cwd: root,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...bareEnvironment(),
          NODE_ENV: 'development',
          A2A_AUTH_MODE: 'development',
          A2A_DATA_DIR: dataDirectory,
          A2A_DATABASE_PROFILE: 'postgresql',
          A2A_DATABASE_URL: fresh.profile.kind === 'postgresql' ? fresh.profile.url : '',
          HOST: '127.0.0.1',
          PORT: String(await freePort()),
        },
      }),
    )
    await peer.received(1)
    return started
  })
  // The lock's holder is gone, and the start has failed when nobody waits for it any more.
  const waiting = sql.unsafe`select count(*)::int from pg_locks where locktype = 'advisory' and objid = ${lock}`
  await expect.poll(() => fresh.db.pool.oneFirst(waiting)).toBe(0)
  peer.script.release()
  const { code, stderr } = await child.outcome
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('no more organizations') as string })
  expect(await clerk.finished(id)).toMatchObject({ status: 'succeeded' })
  expect(peer.receiptsOf(messageId)).toBe(1)
  await clerk.close()
  await peer.close()
  await fresh.close()
  rmSync(dataDirectory, { recursive: true, force: true })
})
