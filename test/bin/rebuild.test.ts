/**
 * `db:projections:rebuild` as a process that an operator stops: it ends behind the task that it is at, says so, and the next run goes on
 * there. What a rebuild brings back: test/persistence/rebuild.test.ts.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { sql } from 'slonik'
import { z } from 'zod'
import { listTaskIds } from '../../persistence/rebuild.ts'
import { live } from '../persistence/histories.ts'
import { bareEnvironment, childArgs } from '../support/child.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { isLong } from '../support/pass.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { watch, type Running } from './stage.ts'

const Waiting = z.object({ waiting: z.number() })

describe('a rebuild that is stopped', () => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let ids: readonly string[]
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    running = await systemOn(fresh.db, { works: false })
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    for (const id of ['one', 'two', 'three']) {
      const reply = { task: { id, status: { state: 'TASK_STATE_WORKING' } } }
      await live(running, agentId, { id, body: { text: id }, reply, later: [] })
    }
    ids = await listTaskIds(fresh.db.pool, running.viewer.organizationId, null, 10)
  })
  afterAll(async () => {
    await running.close()
    await fresh.close()
  })

  function rebuild(): Running {
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    const env = { ...bareEnvironment(), A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
    return watch(spawn(process.execPath, childArgs('bin/projections.ts'), { env }))
  }

  /** Somebody holds the task until the returned function is called: the run that comes to it waits there. */
  async function held(taskId: string): Promise<() => Promise<void>> {
    const [locked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = fresh.db.raw(async (client) => {
      // In one exchange, after which nothing is being read: the index that a run makes for itself waits for readers.
      await client.query(`begin; select from task where id = '${taskId}' for update`)
      locked.resolve()
      await over.promise
      await client.query('rollback')
    })
    await locked.promise
    return () => {
      over.resolve()
      return holding
    }
  }
  const waiting = () =>
    fresh.db.pool.oneFirst(sql.type(Waiting)`
      select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%for update%'`)
  const line = (id: string | undefined): string => `${id} 2 events, unchanged\n`

  // Both signals are heard in one place: the short pass sends one here, and the other to a run that waits for others.
  it.each(isLong ? (['SIGTERM', 'SIGINT'] as const) : (['SIGTERM'] as const))(
    'by %s goes on behind its last task, and the run after that begins anew',
    async (signal) => {
      const [one, two = '', three] = ids
      const release = await held(two)
      const stopped = rebuild()
      await stopped.says(line(one))
      await expect.poll(waiting).toBe(1)
      stopped.process.kill(signal)
      await release()
      expect(await stopped.outcome).toEqual({
        code: 1,
        stdout: line(one) + line(two),
        stderr: 'Interrupted; the next run goes on from here.\n',
      })

      const next = await rebuild().outcome
      const [resumed = '', ...lines] = next.stdout.split(/(?<=\n)/)
      expect(resumed).toMatch(new RegExp(`^Going on behind ${two}: 2 tasks done by the run of \\d{4}-\\S+Z\\.\n$`))
      expect(lines).toEqual([line(three), 'Rebuilt 1 task from 2 events; 0 repaired.\n'])
      expect(next).toMatchObject({ code: 0, stderr: '' })

      const anew = await rebuild().outcome
      expect(anew.stdout).toBe(`${ids.map(line).join('')}Rebuilt 3 tasks from 6 events; 0 repaired.\n`)
    },
  )
})

/** Each on a database of its own, and beside the others: the most of each is a wait of the command's. */
describe.concurrent('the index of a rebuild', () => {
  const done = 'Rebuilt 0 tasks from 0 events; 0 repaired.\n'
  const interrupted = 'Interrupted; the next run goes on from here.\n'

  async function stand({ onTestFinished }: TestContext) {
    const fresh = await freshDatabase('postgresql')
    onTestFinished(() => fresh.close())
    const ownUrl = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    await (await systemOn(fresh.db, { works: false })).close()

    function rebuild(url = ownUrl): Running {
      const env = { ...bareEnvironment(), A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
      return watch(spawn(process.execPath, childArgs('bin/projections.ts'), { env }))
    }

    /** Somebody's session with a snapshot that stays open, as a backup's, of what they have read. */
    async function backup(table: string): Promise<{ readonly words: string; readonly over: () => Promise<void> }> {
      const client = new pg.Client({ connectionString: ownUrl, application_name: 'a backup' })
      await client.connect()
      await client.query('begin isolation level repeatable read')
      const { rows } = await client.query<{ pid: number }>(`select pg_backend_pid() as pid, count(*) from ${table}`)
      return {
        words: `The run waits for session ${rows[0]?.pid} (a backup, in a transaction since 2`,
        over: () => client.end(),
      }
    }

    /** Sessions at the index, and what is there of it. */
    const builders = () =>
      fresh.db.pool.anyFirst(sql.type(z.object({ pid: z.number() }))`
        select pid from pg_stat_activity where datname = current_database() and state = 'active'
          and query like 'create index concurrently command_of_task_rebuild%'`)
    const left = () =>
      fresh.db.pool.anyFirst(sql.type(z.object({ name: z.string() }))`
        select relname as name from pg_class where relname = 'command_of_task_rebuild'`)
    return { db: fresh.db, url: ownUrl, rebuild, backup, builders, left }
  }

  it.for(['repeatable read', 'serializable'])(
    'does not wait for itself where %s is what a database does',
    async (level, context) => {
      const { db, url, rebuild, left } = await stand(context)
      await db.raw((client) =>
        client.query(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = '${level}'`),
      )
      expect(await rebuild().outcome).toEqual({ code: 0, stdout: done, stderr: '' })
      expect(await left()).toEqual([])
    },
  )

  it('says whom it waits for, and is ended, where who signs in acts under another name', async (context) => {
    const { db, url, rebuild, backup, builders, left } = await stand(context)
    const suffix = randomUUID().slice(0, 8)
    const [owner, lent] = [`owner_${suffix}`, `lent_${suffix}`]
    await db.raw((client) =>
      client.query(`
        create role ${owner}; create role ${lent} login password 'secret' in role ${owner}; alter role ${lent} set role = '${owner}';
        alter schema public owner to ${owner};
        do $$ declare name text; begin
          for name in select tablename from pg_tables where schemaname = 'public' loop
            execute format('alter table public.%I owner to ${owner}', name);
          end loop;
        end $$`),
    )
    const { words, over } = await backup('organization')
    const target = new URL(url)
    Object.assign(target, { username: lent, password: 'secret' })
    const waiting = rebuild(target.href)
    // Whose session it is, is told to who may know; that it is waited for, to everybody.
    await waiting.says(words.slice(0, words.indexOf(' (')))
    waiting.process.kill('SIGTERM')
    expect(await waiting.outcome).toMatchObject({ code: 1, stderr: interrupted })
    expect([await builders(), await left()]).toEqual([[], []])
    await over()
    await db.raw((client) =>
      client.query(`reassign owned by ${owner} to current_user; drop role ${lent}; drop role ${owner}`),
    )
  })

  it.for(isLong ? (['SIGTERM', 'SIGINT'] as const) : (['SIGINT'] as const))(
    'says whom it waits for, and %s ends that',
    async (signal, context) => {
      const { rebuild, backup, builders, left } = await stand(context)
      const { words, over } = await backup('organization')
      const waiting = rebuild()
      await waiting.says(words)
      waiting.process.kill(signal)
      expect(await waiting.outcome).toMatchObject({ code: 1, stderr: interrupted })
      expect([await builders(), await left()]).toEqual([[], []])
      await over()
    },
  )

  it('says that it is left behind where somebody’s transaction keeps it, and the next run removes it', async (context) => {
    const { rebuild, backup, left } = await stand(context)
    const { words, over } = await backup('command')
    const waiting = rebuild()
    await waiting.says(words)
    waiting.process.kill('SIGTERM')
    const { stdout, ...outcome } = await waiting.outcome
    expect(outcome).toEqual({ code: 1, stderr: interrupted })
    expect(stdout.split('\n').at(-2)).toBe(
      "The index command_of_task_rebuild is left behind: others' transactions did not let it go. The next run removes it.",
    )
    expect(await left()).toHaveLength(1)
    await over()
    expect(await rebuild().outcome).toEqual({ code: 0, stdout: done, stderr: '' })
    expect(await left()).toEqual([])
  })

  it('is taken over from a run that was killed, and made when the others have ended', async (context) => {
    const { rebuild, backup, builders, left } = await stand(context)
    const { words, over } = await backup('organization')
    const killed = rebuild()
    await killed.says(words)
    const before = await builders()
    killed.process.kill('SIGKILL')
    await killed.outcome
    const next = rebuild()
    await next.says(words)
    expect(before).toHaveLength(1)
    expect(await builders()).not.toEqual(before)
    await over()
    expect(await next.outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`${done}$`)) })
    expect(await left()).toEqual([])
  })

  it('is removed when its session was ended, which is one line', async (context) => {
    const { db, rebuild, backup, builders, left } = await stand(context)
    const { words, over } = await backup('organization')
    const cut = rebuild()
    await cut.says(words)
    const [pid = 0] = await builders()
    await db.pool.query(sql.unsafe`select pg_terminate_backend(${pid})`)
    const why = 'The database cannot be reached: terminating connection due to administrator command\n'
    expect(await cut.outcome).toMatchObject({ code: 1, stderr: why })
    expect(await left()).toEqual([])
    await over()
  })
})
