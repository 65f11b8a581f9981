/** Rebuilding: from the stored events alone, every projected row comes back byte for byte, whatever had become of it. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { suiteSeed } from '../chaos/seed.ts'
import { rebuildAll, rebuildTask, type Rebuilt, type Unreadable } from '../../actors/rebuild.ts'
import { instruments } from '../../actors/system.ts'
import { DirectoryLocked, lockDataDirectory } from '../../bin/directory-lock.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { listTaskIds, type RebuildMark } from '../../persistence/rebuild.ts'
import { bothDatabases, freshDatabase } from '../support/databases.ts'
import { migratedDump } from '../support/migrated-dump.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { freshSystem, systemOn, type RunningSystem } from '../support/system.ts'
import { damage, harm, histories, live, rowsOf, type History } from './histories.ts'
import { runScript, type Outcome } from '../support/scripts.ts'
import { readView } from '../support/views.ts'
import { isLong, sized } from '../support/pass.ts'

const never = new AbortController().signal

describe.each(bothDatabases)('a rebuild on %s', (kind) => {
  let running: RunningSystem
  let agentId: string
  let organizationId: string
  let nowMs = Date.parse('2026-11-21T08:00:00Z')
  const tasks = () => listTaskIds(running.db.pool, organizationId, null, 10_000)

  beforeAll(async () => {
    // Every commit has an instant of its own.
    const clock = { ...instruments, now: () => new Date((nowMs += 7)) }
    running = await freshSystem(kind, { works: false, instruments: clock })
    organizationId = running.viewer.organizationId
    agentId = (await running.system.agents.register(running.viewer, 'http://agent.example/card.json')).id
  })
  afterAll(() => running.close())

  const run = (tell: (task: Rebuilt) => void, resumed: (mark: RebuildMark) => void, signal: AbortSignal) => {
    const told = (task: Rebuilt | Unreadable): void => {
      if ('reason' in task) throw new Error(task.reason)
      tell(task)
    }
    const index = { waiting: () => undefined, left: () => expect.unreachable() }
    return rebuildAll(running.db, { organizationId, now: new Date(nowMs), told, resumed, signal, ...index })
  }

  it('brings back every row of random histories after random damage', async () => {
    const story = fc.uuid().chain(histories)
    await fc.assert(
      fc.asyncProperty(fc.array(story, { minLength: 1, maxLength: 3 }), harm, async (told, harms) => {
        const before = new Set(await tasks())
        await Promise.all(told.map((history) => live(running, agentId, history)))
        const rows = await rowsOf(running.db.pool)
        const made = (await tasks()).filter((id) => !before.has(id))
        expect(made).toHaveLength(told.length)
        for (const id of made) await damage(running.db.pool, id, harms)
        for (const id of made) await rebuildTask(running.db.pool, organizationId, id)
        expect(await rowsOf(running.db.pool)).toEqual(rows)
      }),
      // A history is told once: another run with its names would go on with the same tasks.
      { numRuns: sized(6, 150), seed: suiteSeed, endOnFailure: true },
    )
  })

  // Pages are cut and read in one way on both; what comes after it rebuilds it thrice more. On the embedded database in the long pass.
  it.runIf(isLong || kind === 'postgresql')('brings back a stream of a thousand chunks, page by page', async () => {
    const chunk = (i: number) => ({
      artifactUpdate: {
        taskId: 'long',
        contextId: 'c',
        // Large enough together for several pages; once in a while the artifact begins anew, shorter.
        artifact: { artifactId: 'a', parts: [{ text: `${i} `.padEnd(i % 100 === 0 ? 200_000 : 900, '.') }] },
        append: i % 400 !== 399,
      },
    })
    const later = Array.from({ length: 10 }, (_, n) => [
      { source: 'stream' as const, dialect: 0, events: Array.from({ length: 100 }, (_each, i) => chunk(n * 100 + i)) },
    ])
    const reply = { task: { id: 'long', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }
    const history: History = { id: 'long', body: { text: 'long' }, reply, later }
    await live(running, agentId, history)
    const rows = await rowsOf(running.db.pool)
    const id = await running.db.pool.oneFirst(sql.type(z.object({ id: z.string() }))`
      select id from task where remote_id = 'long'`)
    await damage(running.db.pool, id, ['lost parts', 'forged artifacts', 'a forged head'])
    expect(await rebuildTask(running.db.pool, organizationId, id)).toEqual({ taskId: id, events: 1002, repaired: true })
    expect(await rowsOf(running.db.pool)).toEqual(rows)
  })

  it('of everything goes on where it was interrupted, and says what was damaged', async () => {
    const ids = await tasks()
    const rows = await rowsOf(running.db.pool)
    const [first = '', , third = ''] = ids
    const last = ids.at(-1) ?? ''
    for (const id of [first, third, last]) await damage(running.db.pool, id, ['a forged head', 'a message too many'])
    const stop = new AbortController()
    const done: Rebuilt[] = []
    const marks: RebuildMark[] = []
    const tell = (task: Rebuilt): void => {
      done.push(task)
      if (done.length === 3) stop.abort(new Error('interrupted'))
    }
    await expect(run(tell, (mark) => marks.push(mark), stop.signal)).rejects.toThrow('interrupted')
    expect(done.map(({ taskId }) => taskId)).toEqual(ids.slice(0, 3))
    await run(tell, (mark) => marks.push(mark), never)
    expect(marks).toMatchObject([{ afterTaskId: third, tasks: 3 }])
    expect(done.map(({ taskId }) => taskId)).toEqual(ids)
    expect(done.filter(({ repaired }) => repaired).map(({ taskId }) => taskId)).toEqual([first, third, last])
    expect(await rowsOf(running.db.pool)).toEqual(rows)
    // It came to its end, so the next one begins anew, and finds nothing.
    const again: Rebuilt[] = []
    await run(
      (task) => again.push(task),
      (mark) => marks.push(mark),
      never,
    )
    expect(again.map(({ taskId, repaired }) => [taskId, repaired])).toEqual(ids.map((id) => [id, false]))
    expect(marks).toHaveLength(1)
  })

  it('waits for whoever tells, and whoever tells waits for it: nothing is lost in between', async () => {
    const story = fc.sample(histories('contested'), { numRuns: 1, seed: 7 })[0]
    if (!story) throw new Error('no story')
    const events = Array.from({ length: 40 }, (_, i) => ({
      artifactUpdate: {
        taskId: 'contested',
        contextId: 'c',
        artifact: { artifactId: 'z', parts: [{ text: `${i}` }] },
        append: true,
      },
    }))
    const reply = { task: { id: 'contested', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }
    await live(running, agentId, { ...story, reply, later: [] })
    const id = await running.db.pool.oneFirst(sql.type(z.object({ id: z.string() }))`
      select id from task where remote_id = 'contested'`)
    const later = events.map((event) => [{ source: 'stream' as const, dialect: 0, events: [event] }])
    let telling = true
    const told = live(running, agentId, { ...story, id: 'contested', reply, later }).finally(() => (telling = false))
    let rebuilds = 0
    do {
      expect(await rebuildTask(running.db.pool, organizationId, id)).toMatchObject({ repaired: false })
      rebuilds += 1
    } while (telling)
    await told
    expect(rebuilds).toBeGreaterThan(1)
    const view = await readView(running.db.pool, running.viewer, id)
    expect(view?.artifacts.find(({ artifactId }) => artifactId === 'z')?.parts.map(({ value }) => value)).toEqual(
      events.map((_, i) => `${i}`),
    )
    const rows = await rowsOf(running.db.pool)
    await damage(running.db.pool, id, ['lost parts', 'lost messages'])
    await rebuildTask(running.db.pool, organizationId, id)
    expect(await rowsOf(running.db.pool)).toEqual(rows)
  })

  it('knows no task of another organization', async () => {
    const [id = ''] = await tasks()
    expect(await rebuildTask(running.db.pool, '00000000-0000-4000-8000-000000000000', id)).toBeNull()
  })
})

describe('a rebuild of what a real agent said', () => {
  it('brings back every row', async () => {
    const fresh = await freshDatabase('postgresql')
    const { pool } = fresh.db
    const running = await systemOn(fresh.db)
    const peer = await startRawPeer()
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const ends = {
      files: 'TASK_STATE_COMPLETED',
      ask: 'TASK_STATE_INPUT_REQUIRED',
      hold: 'TASK_STATE_WORKING',
      direct: 'MESSAGE_ONLY',
    }
    for (const [text, state] of Object.entries(ends)) {
      const { result } = await running.finished((await running.send(agentId, { text })).id)
      if (!result) throw new Error(`${text} was not answered.`)
      await running.task(result.localId, (view) => view.state === state)
    }
    await running.close()
    const { organizationId } = running.viewer
    const rows = await rowsOf(pool)
    for (const id of await listTaskIds(pool, organizationId, null, 100)) {
      await damage(pool, id, ['a forged head', 'forged words', 'lost artifacts', 'lost parts', 'lost bytes'])
      expect(await rebuildTask(pool, organizationId, id)).toMatchObject({ repaired: true })
    }
    expect(await rowsOf(pool)).toEqual(rows)
    await fresh.close()
    await peer.close()
  })
})

const script = fileURLToPath(new URL('../../bin/projections.ts', import.meta.url))

const scripted = (variables: Record<string, string>, ...args: string[]): Promise<Outcome> =>
  runScript(script, variables, ...args)

describe('the script', () => {
  it('rebuilds all of the local organization, or one task, a line each and a total', async () => {
    const fresh = await freshDatabase('postgresql')
    const running = await systemOn(fresh.db, { works: false })
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    const env = { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    for (const id of ['one', 'two']) {
      const reply = { task: { id, status: { state: 'TASK_STATE_WORKING' } } }
      await live(running, agentId, { id, body: { text: id }, reply, later: [] })
    }
    const { organizationId } = running.viewer
    const [one = '', two = ''] = await listTaskIds(running.db.pool, organizationId, null, 10)
    await damage(running.db.pool, two, ['a forged head'])
    const total = 'Rebuilt 2 tasks from 4 events; 1 repaired.\n'
    const lines = `${one} 2 events, unchanged\n${two} 2 events, repaired\n${total}`
    const unknown = '00000000-0000-4000-8000-000000000000'
    expect(await scripted(env)).toEqual({ code: 0, out: lines, err: '' })
    const [single, noTask, noOrganization] = await Promise.all([
      scripted(env, '--organization', organizationId, '--task', one),
      scripted(env, '--task', unknown),
      scripted(env, '--organization', unknown),
    ])
    const oneLine = `${one} 2 events, unchanged\nRebuilt 1 task from 2 events; 0 repaired.\n`
    expect(single).toEqual({ code: 0, out: oneLine, err: '' })
    expect(noTask).toEqual({ code: 1, out: '', err: `There is no task ${unknown} in this organization.\n` })
    expect(noOrganization).toEqual({ code: 1, out: '', err: `There is no organization ${unknown}.\n` })
    await running.close()
    await fresh.close()
  })

  it('leaves a task as it is of which an event is damaged, names both, and goes on', async () => {
    const fresh = await freshDatabase('postgresql')
    const running = await systemOn(fresh.db, { works: false })
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    const env = { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    for (const id of ['one', 'two', 'three']) {
      const reply = { task: { id, status: { state: 'TASK_STATE_WORKING' } } }
      await live(running, agentId, { id, body: { text: id }, reply, later: [] })
    }
    const ids = await listTaskIds(running.db.pool, running.viewer.organizationId, null, 10)
    const [one = '', two = '', three = ''] = ids
    await damage(running.db.pool, three, ['a forged head'])
    // As a disk damages it: no statement of ours could.
    await running.db.pool.query(sql.unsafe`alter table task_event disable trigger user`)
    await running.db.pool.query(sql.unsafe`
      update task_event set event = left(event, 20) where task_id = ${two} and position = 1`)
    const before = await rowsOf(running.db.pool)
    const { code, out, err } = await scripted(env)
    expect(out.split('\n')).toEqual([
      `${one} 2 events, unchanged`,
      expect.stringMatching(new RegExp(`^${two} left as it is\\. Event 1 cannot be read: `)),
      `${three} 2 events, repaired`,
      'Rebuilt 2 tasks from 4 events; 1 repaired.',
      '',
    ])
    expect({ code, err }).toEqual({
      code: 1,
      err: '1 task could not be rebuilt, and its view stays as before; see above.\n',
    })
    const alone = await scripted(env, '--task', two)
    expect([alone.code, alone.err]).toEqual([1, err])
    const after = await rowsOf(running.db.pool)
    expect(JSON.stringify(after)).not.toBe(JSON.stringify(before))
    await running.close()
    await fresh.close()
  })

  /** A run that waits in its midst for whoever holds the task; `others` do something meanwhile. */
  async function midway(others: (pool: Database['pool'], again: () => ReturnType<typeof scripted>) => Promise<void>) {
    const fresh = await freshDatabase('postgresql')
    const running = await systemOn(fresh.db, { works: false })
    const { pool } = running.db
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    const again = () => scripted({ A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url })
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    for (const id of ['one', 'two']) {
      const reply = { task: { id, status: { state: 'TASK_STATE_WORKING' } } }
      await live(running, agentId, { id, body: { text: id }, reply, later: [] })
    }
    const waiting = () =>
      pool.oneFirst(sql.type(z.object({ waiting: z.number() }))`
        select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%for update%'`)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: begun, resolve: began } = Promise.withResolvers<void>()
    const held = running.db.raw(async (client) => {
      await client.query('begin; select from task for update')
      began()
      await released
      await client.query('rollback')
    })
    await begun
    const first = again()
    await expect.poll(waiting).toBe(1)
    await others(pool, again)
    release()
    await held
    const ended = await first
    const next = await again()
    const left = await pool.anyFirst(sql.type(z.object({ name: z.string() }))`
      select indexname as name from pg_indexes where indexname = 'command_of_task_rebuild'`)
    await running.close()
    await fresh.close()
    // And then it is the next one's turn, who leaves nothing behind.
    expect(next).toMatchObject({ code: 0, err: '' })
    expect(left).toEqual([])
    return ended
  }

  it('refuses to run beside another, which goes on undisturbed', async () => {
    const words = 'Another rebuild of this database is under way; start this one when it has ended.\n'
    const first = await midway(async (_pool, again) => {
      expect(await again()).toEqual({ code: 1, out: '', err: words })
    })
    expect(first).toMatchObject({ code: 0, err: '' })
  })

  it('stops behind its task, with one line, when the connection that keeps others away is cut', async () => {
    const { code, out, err } = await midway(async (pool) => {
      const cut = await pool.anyFirst(sql.type(z.object({ cut: z.boolean() }))`
        select pg_terminate_backend(pid) as cut from pg_stat_activity where datname = current_database()
          and state = 'idle in transaction' and query like '%pg_try_advisory_xact_lock%'`)
      expect(cut).toEqual([true])
    })
    expect(code).toBe(1)
    expect(err).toBe('The connection that kept other rebuilds away was lost; the next run goes on from here.\n')
    expect(out).toMatch(/^[0-9a-f-]{36} 2 events, unchanged\n$/)
  })

  it('rebuilds an embedded database once its console is stopped, all of it or one task', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-rebuild-'))
    const dataDir = join(folder, 'pglite')
    const db = await openDatabase({ kind: 'pglite', dataDir, template: await migratedDump() })
    const running = await systemOn(db, { works: false })
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    for (const id of ['one', 'two']) {
      const reply = { task: { id, status: { state: 'TASK_STATE_WORKING' } } }
      await live(running, agentId, { id, body: { text: id }, reply, later: [] })
    }
    const { organizationId } = running.viewer
    const [one = '', two = ''] = await listTaskIds(db.pool, organizationId, null, 10)
    await damage(db.pool, one, ['a forged head'])
    const rebuild = (...args: string[]) => scripted({ A2A_DATA_DIR: folder }, '--offline-pglite', ...args)
    await running.close()
    await db.close()
    // As by its console.
    const lock = lockDataDirectory(dataDir)
    expect(await rebuild()).toEqual({ code: 1, out: '', err: `${new DirectoryLocked(dataDir, process.pid).message}\n` })
    lock.release()
    const all = `${one} 2 events, repaired\n${two} 2 events, unchanged\nRebuilt 2 tasks from 4 events; 1 repaired.\n`
    expect(await rebuild()).toEqual({ code: 0, out: all, err: '' })
    const again = `${two} 2 events, unchanged\nRebuilt 1 task from 2 events; 0 repaired.\n`
    const single = await rebuild('--organization', organizationId, '--task', two)
    expect(single).toEqual({ code: 0, out: again, err: '' })
    rmSync(folder, { recursive: true })
  })

  it('refuses in words, before it opens anything', async () => {
    const folder = join(tmpdir(), 'signalbox-never-made')
    const [online, notUuid, stranger] = await Promise.all([
      scripted({ A2A_DATA_DIR: folder }),
      scripted({ A2A_DATA_DIR: folder }, '--offline-pglite', '--task', 'mine'),
      scripted({ A2A_DATA_DIR: folder }, '--everything'),
    ])
    const stop = 'The embedded database is rebuilt offline: stop the console and pass --offline-pglite.\n'
    expect(online).toEqual({ code: 1, out: '', err: stop })
    expect(notUuid).toEqual({ code: 1, out: '', err: '--task must be a UUID.\n' })
    const usage = 'Usage: projections [--offline-pglite] [--organization <uuid>] [--task <uuid>]\n'
    expect(stranger).toEqual({ code: 1, out: '', err: usage })
    expect(existsSync(folder)).toBe(false)
  })
})
