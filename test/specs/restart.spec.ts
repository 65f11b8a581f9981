/** A console process that ends, politely or not, and its successor on the same data: nothing that was promised is lost. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'slonik'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { commandErrors } from '../../domain/command.ts'
import { Client, commandIn } from '../support/api.ts'
import { spawnConsole, type SpawnOptions } from '../support/console.ts'
import { bothDatabases, freshDatabase } from '../support/databases.ts'
import { placeDatabase } from '../support/migrated-dump.ts'
import { startRawPeer } from '../support/peers/raw.ts'

test.each(bothDatabases)('%s: stopped politely and started again', { timeout: 120_000 }, async (kind) => {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'signalbox-restart-'))
  const fresh = kind === 'postgresql' ? await freshDatabase(kind) : null
  const profile = fresh?.profile.kind === 'postgresql' ? fresh.profile : null
  // A first start that makes its database is test/bin/console.test.ts's.
  if (kind === 'pglite') await placeDatabase(dataDirectory)
  const options: SpawnOptions = { dataDirectory, database: profile ?? 'pglite' }
  const peer = await startRawPeer()

  const first = await spawnConsole(options)
  const before = new Client(first.url)
  const agentId = await before.register(peer.cardUrl)
  const told = await before.send(agentId, { text: 'ask' })
  const stream = await before.stream('/api/tasks/events')
  expect((await stream.next()).event).toBe('ready')
  expect(await first.stop()).toBe(0)
  // The stream was ended, not cut: reading it to its end is no error.
  await stream.rest()
  // Whoever ends politely leaves no lease that a successor would have to wait for, whatever was just being committed.
  const left = sql.type(z.object({ kind: z.string() }))`select kind from actor where lease_token is not null`
  if (fresh) expect(await fresh.db.pool.any(left)).toEqual([])

  const second = await spawnConsole(options)
  const after = new Client(second.url)
  expect(await after.command(told.commandId)).toMatchObject({ status: 'succeeded' })
  const { taskId, title } = await after.task(told.localId)
  expect(title).toBe('ask')
  await after.send(agentId, { text: 'red', taskId })
  await expect.poll(async () => (await after.task(told.localId)).state).toBe('TASK_STATE_COMPLETED')
  expect(await second.stop()).toBe(0)
  await peer.close()
  await fresh?.close()
  rmSync(dataDirectory, { recursive: true, force: true })
})

// On PostgreSQL the successor waits for the lease of 60 s, because the holder may be alive elsewhere: test/chaos has that.
test(
  'pglite: killed in mid-dispatch; the successor says uncertain at once and sends nothing',
  { timeout: 120_000 },
  async () => {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'signalbox-restart-'))
    await placeDatabase(dataDirectory)
    const peer = await startRawPeer()
    const first = await spawnConsole({ dataDirectory, database: 'pglite' })
    const agentId = await new Client(first.url).register(peer.cardUrl)
    peer.script.holdReplies()
    const messageId = randomUUID()
    const ask = (url: string) =>
      new Client(url).post(
        `/api/agents/${agentId}/commands`,
        { text: 'hello', messageId },
        { 'idempotency-key': messageId },
      )
    const { id } = commandIn(await ask(first.url))
    await peer.received(1)
    await first.kill()
    peer.script.release()

    const second = await spawnConsole({ dataDirectory, database: 'pglite' })
    const command = async () => commandIn(await ask(second.url))
    await expect.poll(async () => (await command()).status, { timeout: 10_000 }).toBe('uncertain')
    expect(await command()).toMatchObject({ id, error: commandErrors.leaseExpired, result: null })
    expect(peer.receiptsOf(messageId)).toBe(1)
    expect(await second.stop()).toBe(0)
    await peer.close()
    rmSync(dataDirectory, { recursive: true, force: true })
  },
)
