/**
 * Several web replicas and several workers on one PostgreSQL, as processes: what one accepts another delivers and a third
 * shows, files included; each is replaced in turn while people go on sending. The witness is the agent's own receipt log.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { QueuesAnswer } from '../../domain/queue.ts'
import { StoredBytes, type TaskView } from '../../domain/task.ts'
import { Client, commandIn } from '../support/api.ts'
import { spawnConsole, type SpawnedConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { sized } from '../support/pass.ts'
import { runWorker, spawnWorker, type SpawnedWorker } from '../support/worker.ts'

const drainLimitMs = 15_000
const production = {
  NODE_ENV: 'production',
  A2A_AUTH_MODE: 'development',
  A2A_ALLOW_DEVELOPMENT_AUTH: 'true',
  A2A_COMMAND_WORKER_MODE: 'external',
}

test('a separate worker refuses, word for word', async () => {
  const url = { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }
  const refused = [
    [{}, 'The separate worker requires PostgreSQL; PGlite uses embedded dispatch.'],
    [url, 'The separate worker requires NODE_ENV=production.'],
    [{ ...production, A2A_COMMAND_WORKER_MODE: 'both' }, 'Invalid A2A_COMMAND_WORKER_MODE.'],
  ] as const
  const outcomes = await Promise.all(refused.map(([env]) => runWorker(env)))
  for (const [i, [, sentence]] of refused.entries())
    expect(outcomes[i]).toEqual({ code: 1, stdout: '', stderr: `signalbox worker: ${sentence}\n` })
})

test('a separate worker ends with one line on a schema that is not its own, and changes nothing', async () => {
  const drifts = [
    [
      sql.unsafe`delete from schema_migration where version = (select max(version) from schema_migration)`,
      /^signalbox worker: This database is at schema v\d+, but this version needs schema v\d+\. Run db:migrate\.\n$/,
    ],
    [
      sql.unsafe`insert into schema_migration (version, name, checksum) values (9000, 'of the future', 'x')`,
      /^signalbox worker: This database is at schema v9000, but this version only knows schema v\d+\.\n$/,
    ],
  ] as const
  await Promise.all(
    drifts.map(async ([drift, line]) => {
      const fresh = await freshDatabase('postgresql')
      if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
      await fresh.db.pool.query(drift)
      const versions = () => fresh.db.pool.anyFirst(sql.unsafe`select version from schema_migration order by 1`)
      const before = await versions()
      const env = { ...production, A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: fresh.profile.url }
      const { code, stderr } = await runWorker(env)
      expect(code).toBe(1)
      expect(stderr).toMatch(line)
      expect(await versions()).toEqual(before)
      await fresh.close()
    }),
  )
})

describe('two web replicas and two workers', () => {
  let directory: string
  let fresh: FreshDatabase
  let agent: ChildProcess
  let cardUrl: string
  let agentId: string
  let env: Record<string, string>
  const webs: SpawnedConsole[] = []
  const workers: SpawnedWorker[] = []

  const startWeb = (): Promise<SpawnedConsole> => {
    if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
    const root = 'test/support/crowd-console.ts'
    return spawnConsole({ dataDirectory: directory, database: fresh.profile, env: production, root })
  }
  const receipts = (): string[] =>
    readFileSync(join(directory, 'receipts.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { messageId: string }).messageId)

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'signalbox-replicas-'))
    fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
    env = {
      ...production,
      A2A_DATABASE_PROFILE: 'postgresql',
      A2A_DATABASE_URL: fresh.profile.url,
      A2A_DATA_DIR: directory,
    }
    const script = resolve(import.meta.dirname, '../support/peers/standalone.ts')
    agent = spawn(process.execPath, [script, '--kind', 'raw', '--receipts', join(directory, 'receipts.jsonl')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    ;[cardUrl] = (await once(createInterface(agent.stdout ?? process.stdin), 'line')) as [string]
    webs.push(...(await Promise.all([startWeb(), startWeb()])))
    agentId = await api(0).register(cardUrl)
  })
  afterAll(async () => {
    for (const each of [...webs, ...workers]) await each.stop()
    agent.kill('SIGTERM')
    await fresh.close()
    rmSync(directory, { recursive: true, force: true })
  })

  // What fails in a process is said by its log, and by nothing that a test waits for.
  afterEach(() => {
    const lines = [...webs, ...workers].flatMap((each) => each.output().split('\n'))
    expect(lines.filter((line) => /"level":(?:50|60),/.test(line))).toEqual([])
  })

  const api = (at: number): Client => new Client(webs[at % webs.length]?.url ?? '')
  const accept = (at: number, key: string, text: string) =>
    api(at).post(`/api/agents/${agentId}/commands`, { text, messageId: `m-${key}` }, { 'idempotency-key': key })

  /** The task as the second replica shows it, once it is so. */
  const until = async (localId: string, isSo: (view: TaskView) => boolean): Promise<TaskView> => {
    await expect.poll(async () => isSo(await api(1).task(localId)), { timeout: 20_000 }).toBe(true)
    return api(1).task(localId)
  }

  const processes = async (at: number) => {
    const { body } = await api(at).get('/api/queues')
    return QueuesAnswer.parse(body).processes.map(({ owner, told }) => ({ owner, works: told?.process.works }))
  }
  const working = (seen: Awaited<ReturnType<typeof processes>>): number => seen.filter(({ works }) => works).length

  test('without a worker a web accepts and serves, and delivers nothing', async () => {
    const signals = await api(0).stream('/api/tasks/events')
    expect(await signals.next()).toEqual({ event: 'ready', data: {} })
    const { id, status } = commandIn(await accept(1, 'early', 'direct'))
    expect(status).toBe('pending')
    // Accepted at one replica, told at the other.
    expect(await signals.next()).toEqual({ event: 'freshness', data: {} })
    expect(await api(0).command(id)).toMatchObject({ status: 'pending' })
    expect(receipts()).toEqual([])
    // Either replica knows both, and that neither works.
    await expect.poll(() => processes(0), { timeout: 20_000 }).toHaveLength(2)
    expect(await processes(1)).toEqual(await processes(0))
    expect(working(await processes(0))).toBe(0)
    workers.push(...(await Promise.all([spawnWorker(env), spawnWorker(env)])))
    await signals.until('freshness')
    await expect.poll(async () => (await api(0).command(id)).status, { timeout: 20_000 }).toBe('succeeded')
    await expect.poll(async () => working(await processes(1)), { timeout: 20_000 }).toBe(2)
    signals.cancel()
  })

  test('a stream at one replica follows what the other accepted and a worker delivers', async () => {
    const key = 'across'
    const { id } = commandIn(await accept(1, key, 'stream 5'))
    const body = { text: 'stream 5', messageId: `m-${key}` }
    const stream = await api(0).stream(`/api/agents/${agentId}/stream`, body, { 'idempotency-key': key })
    const events = await stream.rest()
    expect(events[0]).toEqual({ event: 'accepted', data: { commandId: id } })
    expect(events.findLast(({ event }) => event === 'snapshot')?.data).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
    expect(events.at(-1)?.event).toBe('end')
  })

  test('files that a worker stored are downloaded at either replica, whole, and never shown', async () => {
    const { localId } = await api(0).send(agentId, { text: 'files' })
    const view = await until(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    const sheet = view.artifacts.find(({ name }) => name === 'sheet')?.parts[0]
    const { digest, size } = StoredBytes.parse(sheet?.value)
    const bytes = Buffer.from('a,b\n1,2\n')
    expect({ digest, size }).toEqual({ digest: createHash('sha256').update(bytes).digest('hex'), size: bytes.length })
    for (const at of webs.keys()) {
      const answer = await api(at).fetch(`/api/artifacts/${digest}`)
      expect([answer.status, Buffer.from(await answer.arrayBuffer())]).toEqual([200, bytes])
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-disposition': 'attachment',
        'content-length': String(bytes.length),
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
      })
      const unknown = await api(at).fetch(`/api/artifacts/${'0'.repeat(64)}`)
      expect([unknown.status, await unknown.text()]).toEqual([404, 'Not found'])
    }
    // One directory, one file, whoever wrote it.
    expect(readdirSync(join(directory, 'artifacts', digest.slice(0, 2)))).toEqual([digest])
  })

  test(
    'each process is replaced under load: nothing lost, nothing twice, nothing uncertain, every exit 0',
    { timeout: 90_000 },
    async () => {
      // What the replacing takes is sent through: more senders make more of the same, which is the long pass's.
      const least = sized(100, 250)
      const promised = new Map<string, string>()
      let replacing = true
      let next = 0
      /** Sends until the last process is replaced; a replica that is gone is a reason to ask the other with the same key. */
      const sender = async (): Promise<void> => {
        while (replacing || next < least) {
          const number = next++
          const key = `load-${number}`
          for (let attempt = 0; !promised.has(key); attempt++) {
            if (attempt > 200) throw new Error(`Nobody accepted ${key}.`)
            const reply = await accept(number + attempt, key, number % 4 === 0 ? 'hello' : 'direct').catch(
              (error: unknown) => error,
            )
            if (reply instanceof Error) continue
            const accepted = reply as Awaited<ReturnType<typeof accept>>
            if (accepted.status !== 202) throw new Error(`HTTP ${accepted.status}: ${accepted.text}`)
            promised.set(key, commandIn(accepted).id)
          }
        }
      }
      const stopped = async (each: SpawnedConsole | SpawnedWorker): Promise<void> => {
        const before = performance.now()
        expect([await each.stop(), each.process.signalCode]).toEqual([0, null])
        expect(performance.now() - before).toBeLessThan(drainLimitMs)
      }
      /** A web is joined by its successor before it goes; a worker goes first, and the other does its work meanwhile. */
      const replaceWebs = async (): Promise<void> => {
        for (const [i, old] of webs.entries()) {
          webs[i] = await startWeb()
          await stopped(old)
        }
      }
      const replaceWorkers = async (): Promise<void> => {
        for (const [i, old] of workers.entries()) {
          await stopped(old)
          workers[i] = await spawnWorker(env)
        }
      }
      const replace = async (): Promise<void> => {
        await Promise.all([replaceWebs(), replaceWorkers()])
      }
      const before = await processes(0)
      const senders = Array.from({ length: sized(1, 2) }, sender)
      await Promise.all([replace().finally(() => (replacing = false)), ...senders])
      // Those that were replaced said so when they left: nobody is shown as silent.
      const after = await processes(0)
      expect([after.length, working(after)]).toEqual([4, 2])
      expect(after.filter(({ owner }) => before.some((old) => old.owner === owner))).toEqual([])

      const statuses = (): Promise<readonly { status: string; count: number }[]> =>
        fresh.db.pool.any(sql.type(z.object({ status: z.string(), count: z.number() }))`
        select status, count(*) from command where idempotency_key like 'load-%' group by status`)
      await expect.poll(statuses, { timeout: 30_000 }).toEqual([{ status: 'succeeded', count: promised.size }])
      const received = Map.groupBy(
        receipts().filter((id) => id.startsWith('m-load-')),
        (id) => id,
      )
      expect(received.size).toBe(promised.size)
      expect([...received.values()].filter((each) => each.length > 1)).toEqual([])
      expect(promised.size).toBeGreaterThanOrEqual(least)
    },
  )
})
