/** A console process that ends, politely or not, and its successor on the same data: nothing that was promised is lost. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Client, commandIn } from '../support/api.ts'
import { spawnConsole, type SpawnOptions } from '../support/console.ts'
import { bothDatabases, freshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'

test.each(bothDatabases)('%s: stopped, killed, started again', { timeout: 120_000 }, async (kind) => {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'signalbox-restart-'))
  const fresh = kind === 'postgresql' ? await freshDatabase(kind) : null
  const profile = fresh?.profile.kind === 'postgresql' ? fresh.profile : null
  const options: SpawnOptions = { dataDirectory, database: profile ?? 'pglite' }
  const peer = await startRawPeer()

  const first = await spawnConsole(options)
  const api = new Client(first.url)
  const agentId = await api.register(peer.cardUrl)
  const told = await api.send(agentId, { text: 'ask' })
  expect(await first.stop()).toBe(0)
  await expect(fetch(first.url)).rejects.toThrow()

  const second = await spawnConsole(options)
  const later = new Client(second.url)
  expect(await later.command(told.commandId)).toMatchObject({ status: 'succeeded' })
  // The card cannot be had, so the command is durable and not yet delivered when the process dies.
  peer.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
  const messageId = randomUUID()
  const key = { 'idempotency-key': messageId }
  const body = { text: 'hello', messageId }
  const accepted = commandIn(await later.post(`/api/agents/${agentId}/commands`, body, key))
  await second.kill()
  expect(peer.receiptsOf(messageId)).toBe(0)

  peer.script.heal()
  const t0 = performance.now(); const third = await spawnConsole(options); console.log('TIMING start', performance.now() - t0)
  const last = new Client(third.url)
  expect(commandIn(await last.post(`/api/agents/${agentId}/commands`, body, key)).id).toBe(accepted.id)
  const settled = async (): Promise<string> => (await last.command(accepted.id)).status
  await expect.poll(settled, { timeout: 90_000, interval: 200 }).toBe('succeeded')
  console.log('TIMING done', performance.now() - t0)
  expect(peer.receiptsOf(messageId)).toBe(1)
  expect((await last.task(told.localId)).title).toBe('ask')
  expect(await third.stop()).toBe(0)
  await peer.close()
  await fresh?.close()
  rmSync(dataDirectory, { recursive: true, force: true })
})
