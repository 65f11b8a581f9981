/**
 * Behind a pooler in transaction mode: a web replica and a worker, the whole journey, with nothing but polling between
 * them; and no session on the server remembers that we were there.
 */
import pg from 'pg'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { migrateDown, migrateUp, requireSchema } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { RebuildUnderWay } from '../../persistence/rebuild.ts'
import { indexName } from '../../persistence/rebuild-index.ts'
import { damage } from '../persistence/histories.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { bouncerCarriesNames, pgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { startPooler, type Pooler } from '../support/pooler.ts'
import { runScript, type Outcome } from '../support/scripts.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

const serversCount = 3
/** Half a second between two polls, and what a busy machine adds; with polls some times slower the second change is not heard in it. */
const heardWithin = { timeout: 3_000, interval: 20 }

/** One that is not ours tells nothing of what it did. */
type Started = Omit<Pooler, 'seen'> & Partial<Pick<Pooler, 'seen'>>
interface Choice {
  readonly name: string
  readonly carriesNames: boolean
  readonly start: (url: string) => Promise<Started>
}
const ours = (carriesNames: boolean): Choice => ({
  name: `that carries ${carriesNames ? '' : 'no '}prepared statements`,
  carriesNames,
  start: (url) => startPooler(url, serversCount, { carriesNames }),
})
const theirs = (program: string): Choice => ({
  name: 'that is a PgBouncer',
  carriesNames: bouncerCarriesNames(program),
  start: (url) => startPgBouncer(program, url, serversCount),
})

describe.each([ours(false), ours(true), ...(pgBouncer === null ? [] : [theirs(pgBouncer)])])(
  'behind a pooler in transaction mode, one $name',
  ({ carriesNames, start }) => {
    let fresh: FreshDatabase
    let pooler: Started
    const databases: Database[] = []
    let web: TestConsole
    let worker: RunningSystem
    let peer: RawPeer
    let agentId: string
    const open = async (): Promise<Database> => {
      const db = await openDatabase({ kind: 'postgresql', url: pooler.url })
      databases.push(db)
      return db
    }
    beforeAll(async () => {
      fresh = await freshDatabase('postgresql')
      if (fresh.profile.kind !== 'postgresql') throw new Error('There is no pooler for an embedded database.')
      pooler = await start(fresh.profile.url)
      web = await startConsole({ database: await open(), system: { works: false } })
      worker = await systemOn(await open())
      peer = await startRawPeer()
      agentId = await web.api.register(peer.cardUrl)
    })
    afterAll(async () => {
      await worker.close()
      await web.close()
      for (const db of databases) await db.close()
      await pooler.close()
      await peer.close()
      await fresh.close()
    })

    /** As an operator does it: `npm run db:projections:rebuild`, by way of the pooler. */
    const rebuild = (): Promise<Outcome> =>
      runScript('bin/projections.ts', { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: pooler.url })

    test('it is noticed, and said: other processes are not heard', () => {
      expect(databases.map(({ hearsOthers }) => hearsOthers)).toEqual([false, false])
      expect(worker.lines.filter(({ message }) => message.startsWith('behind a pooler'))).toHaveLength(1)
    })

    test('sent, asked back, answered, streamed and shown, across two processes', async () => {
      const signals = await web.api.stream('/api/tasks/events')
      await signals.next()
      const asked = await web.api.send(agentId, { text: 'ask' })
      await signals.until('freshness')
      signals.cancel()
      const { taskId } = await web.task(asked.localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
      await web.api.send(agentId, { text: 'red', taskId })
      await web.task(asked.localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
      const stream = await web.api.stream(`/api/agents/${agentId}/stream`, { text: 'stream 5' })
      const names = (await stream.rest()).map(({ event }) => event)
      expect(names.slice(0, 3)).toEqual(['accepted', 'persisted', 'snapshot'])
      expect(names.at(-1)).toBe('end')
    })

    test('each change is heard in the other process within seconds, by polling alone', async () => {
      const signals = await web.api.stream('/api/tasks/events')
      await signals.next()
      for (let n = 0; n < 3; n++) {
        let isHeard = false
        const heard = signals.until('freshness').then(() => (isHeard = true))
        await worker.system.agents.register(worker.viewer, `http://127.0.0.1:9/${n}/card.json`)
        await expect.poll(() => isHeard, heardWithin).toBe(true)
        await heard
      }
      signals.cancel()
    })

    test('each command that one process accepts is done by the other within seconds, by polling alone', async () => {
      for (let n = 0; n < 3; n++) {
        const { id } = await web.send(agentId, { text: 'direct' })
        const status = async () => (await web.api.command(id)).status
        await expect.poll(status, heardWithin).toBe('succeeded')
      }
    })

    test('sixty commands at once are delivered once each', async () => {
      const sent = await Promise.all(
        Array.from({ length: 60 }, (_, i) => web.send(agentId, { text: 'direct' }, `pooled-${i}`)),
      )
      const done = await Promise.all(sent.map(({ id }) => web.finished(id)))
      expect(new Set(done.map(({ status }) => status))).toEqual(new Set(['succeeded']))
      expect(new Set(sent.map(({ messageId }) => peer.receiptsOf(messageId)))).toEqual(new Set([1]))
      expect(web.log.errors()).toEqual([])
      expect([...web.lines, ...worker.lines].filter(({ level }) => level !== 'info')).toEqual([])
    })

    test('transactions have their limits, and migrations their lock, without a session', async () => {
      const [db] = databases
      const limits = await db?.fly(async (tx) => {
        return tx.one(sql.unsafe`select current_setting('statement_timeout') as statement,
        current_setting('idle_in_transaction_session_timeout') as idle`)
      })
      expect(limits).toEqual({ statement: '30s', idle: '30s' })
      const [last] = migrations.slice(-1)
      if (!db || !last) throw new Error('There is nothing to migrate.')
      expect(await db.raw((client) => migrateDown(client, migrations))).toEqual([last])
      const applied = await Promise.all([1, 2, 3].map(() => db.raw((client) => migrateUp(client, migrations))))
      expect(applied.flat()).toEqual([last])
      await db.raw((client) => requireSchema(client, migrations))
    })

    test('a rebuild repairs what is damaged and keeps another out, while both processes run', async () => {
      const { localId } = await web.api.send(agentId, { text: 'ask' })
      await web.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
      await damage(fresh.db.pool, localId, ['a forged head'])
      const tasks = await fresh.db.pool.oneFirst(sql.type(z.object({ tasks: z.number() }))`
      select count(*)::int as tasks from task`)
      const ends = await Promise.all([rebuild(), rebuild()])
      const whole = ends.find(({ out }) => out.includes('; 1 repaired.'))
      const other = ends.find((each) => each !== whole)
      expect(whole).toMatchObject({ code: 0, err: '' })
      expect(whole?.out).toMatch(new RegExp(`^${localId} \\d events, repaired$`, 'm'))
      expect(whole?.out).toMatch(new RegExp(`^Rebuilt ${tasks} tasks from \\d+ events; 1 repaired\\.$`, 'm'))
      // Unless one was over before the other began: then there was nothing left to repair.
      const refused = { code: 1, out: '', err: `${new RebuildUnderWay().message}\n` }
      const nothingLeft = { code: 0, out: expect.stringContaining('; 0 repaired.') as string, err: '' }
      expect(other).toEqual(other?.code === 0 ? nothingLeft : refused)
      expect((await web.api.get(`/api/tasks/${localId}`)).body).toMatchObject({
        task: { state: 'TASK_STATE_INPUT_REQUIRED' },
      })
      expect((await fresh.db.pool.any(sql.unsafe`select from pg_class where relname = ${indexName}`)).length).toBe(0)
    })

    test('no session was told anything that outlives its exchange, but for the ids of who stood in one', async () => {
      // The pooler did what it is feared for.
      if (pooler.seen) expect(pooler.seen.moved).toBeGreaterThan(50)
      expect(pooler.seen?.refusedStarts ?? 0).toBe(0)
      const clients = Array.from({ length: serversCount }, () => new pg.Client({ connectionString: pooler.url }))
      for (const client of clients) {
        await client.connect()
        // In a transaction each, so that they meet one server each.
        await client.query('begin')
      }
      const sessions = await Promise.all(
        clients.map(async (client) => {
          const { rows } = await client.query(`
          select (select count(*) > 0 from pg_prepared_statements) as "hasPrepared",
            (select count(*)::int from pg_listening_channels()) as channels,
            (select count(*)::int from pg_locks where locktype = 'advisory') as locks,
            current_setting('statement_timeout') as timeout,
            coalesce(current_setting('signalbox.standing', true), '') ~ '^[-0-9a-f ]*$' as ids`)
          return rows[0] as unknown
        }),
      )
      for (const client of clients) {
        await client.query('rollback')
        await client.end()
      }
      expect(sessions).toEqual(
        // What is prepared there is the pooler's own, which no client can name.
        Array.from({ length: serversCount }, () => ({
          hasPrepared: carriesNames,
          channels: 0,
          locks: 0,
          timeout: '0',
          ids: true,
        })),
      )
    })
  },
)
