/**
 * `kill -9` of the console in mid-dispatch and under load, on both databases. The witness is the agent's own receipt log,
 * written by another process before it answers. What must hold of every accepted command: it ends, its key gives it
 * back, it was received at most once, and its status says what the log says.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Command } from '../../domain/command.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { spawnConsole, type SpawnedConsole } from '../support/console.ts'

const rounds = Number(process.env['SIGNALBOX_CHAOS_ROUNDS'] ?? 3)
const sendersCount = 12
const sendsPerRound = 60
const seed = 20_261_121

/** A small seeded generator (mulberry32), so that a failing run can be run again. */
function seeded(state: number): () => number {
  let a = state
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Agent {
  readonly process: ChildProcess
  readonly cardUrl: string
  receipts(): string[]
}

async function startAgent(directory: string): Promise<Agent> {
  const file = join(directory, 'receipts.jsonl')
  const script = resolve(import.meta.dirname, '../support/peers/standalone.ts')
  const child = spawn(process.execPath, [script, '--kind', 'raw', '--receipts', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [cardUrl] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    process: child,
    cardUrl,
    receipts: () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { messageId: string }).messageId),
  }
}

describe.each(bothDatabases)('kill -9 under load on %s', (kind) => {
  let directory: string
  let fresh: FreshDatabase | null = null
  let agent: Agent
  let running: SpawnedConsole | null = null
  let agentId = ''

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'signalbox-chaos-'))
    agent = await startAgent(directory)
    if (kind === 'postgresql') fresh = await freshDatabase(kind)
  })
  afterAll(async () => {
    await running?.stop()
    agent.process.kill('SIGTERM')
    await fresh?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const start = async (): Promise<SpawnedConsole> => {
    const profile = fresh?.profile.kind === 'postgresql' ? fresh.profile : null
    running = await spawnConsole({ dataDirectory: directory, database: profile ?? 'pglite' })
    const registered = await post(running.url, '/api/agents', { cardUrl: agent.cardUrl })
    agentId = ((await registered.json()) as { agent: { id: string } }).agent.id
    return running
  }

  const post = (url: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })

  const bodyOf = (key: string) => ({ text: 'direct', messageId: `message-${key}` })

  it(`loses nothing and delivers nothing twice, killed ${rounds} times`, async () => {
    const random = seeded(seed)
    /** Keys whose acceptance was answered, with the id that was promised. */
    const promised = new Map<string, string>()
    const asked: string[] = []
    for (let round = 0; round < rounds; round++) {
      const console_ = await start()
      const dieAfter = 1 + Math.floor(random() * sendsPerRound)
      let answered = 0
      let next = 0
      const sender = async (): Promise<void> => {
        while (next < sendsPerRound && console_.process.signalCode === null) {
          const key = `${round}-${next++}`
          asked.push(key)
          try {
            const response = await post(console_.url, `/api/agents/${agentId}/commands`, bodyOf(key), {
              'idempotency-key': key,
            })
            if (response.status !== 202) throw new Error(`HTTP ${response.status}: ${await response.text()}`)
            promised.set(key, ((await response.json()) as { command: Command }).command.id)
          } catch (error) {
            // The console died under this request; whether it was accepted is found out below, by its key.
            if (console_.process.signalCode === null && !console_.process.killed) throw error
            return
          }
          if (++answered === dieAfter) console_.process.kill('SIGKILL')
        }
      }
      await Promise.all(Array.from({ length: sendersCount }, sender))
      await console_.kill()
    }

    const last = await start()
    // A dead process keeps its leases for a minute; the database is told that the minute is over.
    if (fresh)
      await fresh.db.pool.query(
        sql.unsafe`update actor set lease_until = now(), wake_at = now() where lease_owner is not null`,
      )
    for (const key of asked) {
      const settled = await post(last.url, `/api/agents/${agentId}/messages`, bodyOf(key), { 'idempotency-key': key })
      expect([200, 409]).toContain(settled.status)
    }
    const counts = Map.groupBy(agent.receipts(), (id) => id)
    const statuses = new Map<string, number>()
    for (const key of asked) {
      const again = await post(last.url, `/api/agents/${agentId}/commands`, bodyOf(key), { 'idempotency-key': key })
      const { command } = (await again.json()) as { command: Command }
      const received = counts.get(command.messageId)?.length ?? 0
      if (promised.has(key)) expect(command.id).toBe(promised.get(key))
      expect(received).toBeLessThanOrEqual(1)
      if (command.status === 'succeeded') expect(received).toBe(1)
      if (command.status === 'failed') expect(received).toBe(0)
      expect(['succeeded', 'failed', 'uncertain']).toContain(command.status)
      statuses.set(command.status, (statuses.get(command.status) ?? 0) + 1)
    }
    // Most were not in flight when the process died; a run where nothing succeeds proves nothing.
    expect(statuses.get('succeeded') ?? 0).toBeGreaterThan(asked.length / 2)
    expect(await last.stop()).toBe(0)
  })
})
