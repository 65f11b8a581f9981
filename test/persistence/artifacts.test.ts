/** The artifact directory: whole files or none, between processes, on a disk that is full, and beside any number of sweeps. */
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Refusal } from '../../domain/refusal.ts'
import { sweepShard } from '../../persistence/artifact-sweep.ts'
import { ArtifactsUnavailable, ArtifactStore, type NewBytes } from '../../persistence/artifacts.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { ensureLocalAdministrator } from '../../persistence/people.ts'
import { writeTasks } from '../../persistence/task-writes.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const hourMs = 3_600_000
const bytesOf = (text: string): NewBytes => {
  const bytes = Buffer.from(text)
  return { digest: createHash('sha256').update(bytes).digest('hex'), bytes }
}
const pathOf = (folder: string, digest: string): string => join(folder, digest.slice(0, 2), digest)
const filesIn = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder).flatMap((shard) => readdirSync(join(folder, shard))) : []
/** All of it; null where the store has none. */
async function get(store: ArtifactStore, digest: string): Promise<Buffer | null> {
  const file = await store.open(digest)
  return file && buffer(file.bytes)
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-artifacts-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const clock = { newName: randomUUID, now: () => new Date() }

/** Runs a script in a process of its own, with the store at hand; resolves to what it prints. */
function elsewhere(code: string, limits = ''): Promise<string> {
  const module = new URL('../../persistence/artifacts.ts', import.meta.url).href
  const script = `
    import { createHash, randomUUID } from 'node:crypto'
    import { ArtifactStore } from ${JSON.stringify(module)}
    const store = new ArtifactStore(${JSON.stringify(folder)}, { newName: randomUUID, now: () => new Date() })
    const bytesOf = (n, size) => {
      const bytes = Buffer.alloc(size, String(n))
      return { digest: createHash('sha256').update(bytes).digest('hex'), bytes }
    }
    ${code}`
  return new Promise((resolve, reject) => {
    const shell = `${limits} exec "$0" --input-type=module -e "$1"`
    execFile('/bin/sh', ['-c', shell, process.execPath, script], (error, out) => (error ? reject(error) : resolve(out)))
  })
}

describe('the store', () => {
  it('keeps the many files of one event with few open at a time', async () => {
    const many = 600
    const code = `
      const all = Array.from({ length: ${many} }, (_, n) => bytesOf(n, 8 + n))
      await store.putAll(all)
      const files = await Promise.all(all.slice(0, 8).map(({ digest }) => store.open(digest)))
      console.log(files.filter((file) => file !== null).length)`
    expect(await elsewhere(code, 'ulimit -n 96;')).toBe('8\n')
    expect(filesIn(folder)).toHaveLength(many)
  })

  it('begins with none of the others of an event once one has failed', async () => {
    const store = new ArtifactStore(folder, clock)
    const others = Array.from({ length: 200 }, (_, n) => bytesOf(`other ${n}`))
    await expect(store.putAll([{ digest: 'none', bytes: Buffer.alloc(1) }, ...others])).rejects.toThrow(Refusal)
    const kept = await Promise.all(others.map(({ digest }) => store.open(digest)))
    for (const file of kept) file?.bytes.destroy()
    expect(kept.filter((file) => file !== null).length).toBeLessThan(20)
  })

  it('gives back what it was given, and nothing that is damaged, missing or misnamed', async () => {
    const store = new ArtifactStore(folder, clock)
    const one = bytesOf('one')
    await store.put(one)
    await store.put(one)
    expect(await get(store, one.digest)).toEqual(one.bytes)
    expect(filesIn(folder)).toEqual([one.digest])
    expect(await get(store, bytesOf('two').digest)).toBeNull()
    for (const name of ['', 'short', '../../etc/passwd', one.digest.toUpperCase()]) {
      await expect(get(store, name)).rejects.toMatchObject({
        code: 'artifact.identity',
        message: 'Invalid artifact identity.',
      })
      await expect(store.put({ digest: name, bytes: one.bytes })).rejects.toThrow('Invalid artifact identity.')
    }
    writeFileSync(pathOf(folder, one.digest), 'two')
    expect(await get(store, one.digest)).toBeNull()
    // What a disk lost is written anew by whoever brings it again.
    await store.put(one)
    expect(await get(store, one.digest)).toEqual(one.bytes)
    truncateSync(pathOf(folder, one.digest), 1)
    await store.put(one)
    expect(await get(store, one.digest)).toEqual(one.bytes)
  })

  it('sees damage in the last byte of a file of many pieces, when it is brought again', async () => {
    const store = new ArtifactStore(folder, clock)
    const large = bytesOf('large '.repeat(600_000))
    await store.put(large)
    const damaged = Buffer.from(large.bytes)
    damaged[damaged.length - 1] = 0
    writeFileSync(pathOf(folder, large.digest), damaged)
    await store.put(large)
    // Byte by byte, the comparison of tests takes seconds.
    expect((await get(store, large.digest))?.equals(large.bytes)).toBe(true)
    const none = { digest: createHash('sha256').digest('hex'), bytes: new Uint8Array() }
    await store.put(none)
    await store.put(none)
    expect(await get(store, none.digest)).toEqual(Buffer.alloc(0))
  })

  it('shows a reader whole files only, while several processes write the same ones', async () => {
    const size = 1024 * 1024
    const write = `for (let n = 0; n < 40; n++) await store.put(bytesOf(n % 8, ${size}))`
    const store = new ArtifactStore(folder, clock)
    const wanted = Array.from({ length: 8 }, (_, n) =>
      createHash('sha256')
        .update(Buffer.alloc(size, String(n)))
        .digest('hex'),
    )
    let writing = true
    const writers = Promise.all([elsewhere(write), elsewhere(write), elsewhere(write)]).finally(() => (writing = false))
    const seen = new Set<string>()
    while (writing)
      for (const digest of wanted) {
        // A half file would not have its digest, and would be no file at all.
        const there = existsSync(pathOf(folder, digest))
        const bytes = await get(store, digest)
        expect(bytes !== null || !there).toBe(true)
        if (bytes) seen.add(digest)
      }
    await writers
    expect([...seen].toSorted()).toEqual(wanted.toSorted())
    expect(filesIn(folder).toSorted()).toEqual(wanted.toSorted())
  })

  it('keeps nothing of what a full disk refuses, goes on with what fits, and takes it when there is room', async () => {
    // A limit on the size of files (in blocks of 512 bytes) stands in for the disk: EFBIG is how it says ENOSPC.
    const attempt = `
      const outcomes = []
      for (const size of [3_000_000, 1_000])
        outcomes.push(await store.put(bytesOf(1, size)).then(() => 'kept', (error) => error.name + ' ' + error.code))
      console.log(JSON.stringify(outcomes))`
    expect(JSON.parse(await elsewhere(attempt, 'ulimit -f 2000;'))).toEqual(['ArtifactsUnavailable EFBIG', 'kept'])
    expect(filesIn(folder)).toHaveLength(1)
    expect(JSON.parse(await elsewhere(attempt))).toEqual(['kept', 'kept'])
    expect(filesIn(folder)).toHaveLength(2)
  })

  it('says that its directory failed, and works once it is mended', async () => {
    const blocked = join(folder, 'blocked')
    writeFileSync(blocked, '')
    const store = new ArtifactStore(blocked, clock)
    const one = bytesOf('one')
    await expect(store.put(one)).rejects.toThrow(ArtifactsUnavailable)
    await expect(get(store, one.digest)).rejects.toThrow(ArtifactsUnavailable)
    rmSync(blocked)
    await store.put(one)
    expect(await get(store, one.digest)).toEqual(one.bytes)
  })
})

describe.each(bothDatabases)('a sweep on %s', (kind) => {
  let fresh: FreshDatabase
  let db: Database
  let taskId: string
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
    const ids = { organizationId: uuidv7(), personId: uuidv7(), membershipId: uuidv7() }
    const { organizationId } = await ensureLocalAdministrator(db, 'local', 'Local', ids)
    taskId = uuidv7()
    const agentId = uuidv7()
    await db.pool.query(sql.unsafe`
      insert into agent (id, organization_id, card_url, source, name) values (${agentId}, ${organizationId}, 'http://a', 'managed', 'a')`)
    await db.pool.query(sql.unsafe`
      insert into task (id, organization_id, agent_id, tenant, kind, state, version, events, created_at, updated_at)
      values (${taskId}, ${organizationId}, ${agentId}, '', 'task', 'TASK_STATE_WORKING', 0, 0, now(), now())`)
  })
  afterAll(() => fresh.close())
  afterEach(async () => {
    await db.pool.query(sql.unsafe`delete from task_bytes`)
    await db.pool.query(sql.unsafe`delete from artifact`)
  })

  const nothing = { aside: 0, restored: 0, removed: 0, rows: 0 }
  /** One pass over everything. */
  async function sweep(now: Date, graceMs = 24 * hourMs, pool = db.pool): Promise<typeof nothing> {
    const sum = { ...nothing }
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      const shard = Number.parseInt(name, 16)
      const swept = await sweepShard(pool, folder, shard, { now, graceMs })
      for (const key of ['aside', 'restored', 'removed', 'rows'] as const) sum[key] += swept[key]
    }
    return sum
  }
  const later = (hours: number): Date => new Date(Date.now() + hours * hourMs)
  /** Has the task refer to bytes, by the statement that every report is written with. */
  const refer = (digest: string, at: Date, pool = db.pool) =>
    pool.transaction((tx) => {
      const state = { state: 'TASK_STATE_WORKING', stateAt: null, version: 1, eventCount: 0, changed: true }
      const rows = { events: [], messages: [], artifacts: new Map(), transitions: [], stored: new Map([[digest, 3]]) }
      return writeTasks(
        tx,
        [{ id: taskId, fresh: null, contextId: null, folded: { ...state, ...rows } }],
        at.toISOString(),
      )
    })
  const forget = (digest: string) => db.pool.query(sql.unsafe`delete from task_bytes where digest = ${digest}`)

  it('removes files that nothing refers to after the grace, and what a crash left, and nothing else', async () => {
    const store = new ArtifactStore(folder, clock)
    const [kept, lonely] = [bytesOf('kept'), bytesOf('lonely')]
    for (const bytes of [kept, lonely]) await store.put(bytes)
    await refer(kept.digest, new Date())
    const temporary = `${pathOf(folder, kept.digest)}.${randomUUID()}`
    writeFileSync(temporary, 'ke')
    writeFileSync(join(folder, kept.digest.slice(0, 2), 'README'), 'not ours')
    expect(await sweep(later(0))).toEqual(nothing)
    expect(await sweep(later(23))).toEqual(nothing)
    for (const path of [pathOf(folder, lonely.digest), temporary]) utimesSync(path, later(-25), later(-25))
    expect(await sweep(later(0))).toEqual({ ...nothing, aside: 1, removed: 1 })
    expect(existsSync(temporary)).toBe(false)
    // Aside it can be read still: a report that names it may be committed this very moment.
    expect(filesIn(folder)).toContain(`${lonely.digest}.swept`)
    expect(await get(store, lonely.digest)).toEqual(lonely.bytes)
    expect(await sweep(later(0))).toEqual(nothing)
    // And for as long again: the database may be an old one, that somebody only looks at.
    expect(await sweep(later(23))).toEqual(nothing)
    expect(await sweep(later(25))).toEqual({ ...nothing, removed: 1 })
    expect(filesIn(folder).toSorted()).toEqual(['README', kept.digest].toSorted())
    expect(await get(store, kept.digest)).toEqual(kept.bytes)
    expect(await get(store, lonely.digest)).toBeNull()
  })

  it('puts back what somebody came to refer to meanwhile, and what was touched', async () => {
    const store = new ArtifactStore(folder, clock)
    const [referred, touched, rewritten] = [bytesOf('referred'), bytesOf('touched'), bytesOf('rewritten')]
    for (const bytes of [referred, touched, rewritten]) {
      await store.put(bytes)
      utimesSync(pathOf(folder, bytes.digest), later(-25), later(-25))
    }
    expect(await sweep(later(0))).toEqual({ ...nothing, aside: 3 })
    await refer(referred.digest, new Date())
    // As soon as it is seen, and not when the others go.
    expect(await sweep(later(1))).toEqual({ ...nothing, restored: 1 })
    utimesSync(`${pathOf(folder, touched.digest)}.swept`, later(2), later(2))
    await store.put(rewritten)
    expect(await sweep(later(23))).toEqual({ ...nothing, restored: 1 })
    // What was written anew is nobody's either by then, and its own time aside begins.
    expect(await sweep(later(25))).toEqual({ ...nothing, removed: 1, aside: 1 })
    for (const bytes of [referred, touched, rewritten]) expect(await get(store, bytes.digest)).toEqual(bytes.bytes)
  })

  it('removes rows that no task refers to, and their files after them', async () => {
    const store = new ArtifactStore(folder, clock)
    const one = bytesOf('one')
    await store.put(one)
    await refer(one.digest, new Date())
    await forget(one.digest)
    expect(await sweep(later(23))).toEqual(nothing)
    expect(await sweep(later(25))).toEqual({ ...nothing, rows: 1, aside: 1 })
    expect(await sweep(later(26))).toEqual({ ...nothing, removed: 1 })
    expect(filesIn(folder)).toEqual([])
  })

  it.runIf(kind === 'postgresql')('lets a batch that is about to refer to a row finish first', async () => {
    const one = bytesOf('one')
    await refer(one.digest, later(-48))
    await forget(one.digest)
    let sweeping: Promise<unknown> | undefined
    await db.raw(async (client) => {
      await client.query('begin')
      await client.query('insert into artifact values ($1, 3, now()) on conflict (digest) do nothing', [one.digest])
      mkdirSync(join(folder, one.digest.slice(0, 2)))
      sweeping = sweep(later(0))
      // Waiting for its lock, or done with a row that it took from under this batch.
      const waits = () =>
        db.pool.oneFirst(sql.type(z.object({ n: z.number() }))`
        select count(*)::int as n from pg_locks where relation = 'artifact'::regclass and not granted`)
      const gone = sweeping.then(() => 1)
      await expect.poll(() => Promise.race([waits(), gone])).toBe(1)
      await client.query('insert into task_bytes (task_id, digest) values ($1, $2)', [taskId, one.digest])
      await client.query('commit')
    })
    expect(await sweeping).toEqual(nothing)
  })

  // With few bytes the next writer comes for those that are nearly old, and takes its time; with many it comes for those that
  // are being removed, rows and all.
  const races = [
    { digests: 4, stride: 1, rounds: 10, sweepsBetween: 6 },
    { digests: 12, stride: 4, rounds: 24, sweepsBetween: 0 },
  ]
  it.each(races)(
    'beside two others takes nothing from anybody who writes, refers and reads: $digests digests',
    async (race) => {
      // Time passes by hours with every sweep, unless somebody is on the way from bytes to their row for longer than the grace
      // allows for: then it stands still.
      let hours = 1
      const onTheWay = new Map<number, number>()
      const now = (): Date => later(hours)
      const pass = (): void => {
        hours = Math.max(hours, Math.min(...onTheWay.values(), hours) + 3)
      }
      const grace = 5 * hourMs
      // Temporary files have the kernel's time until they are whole, which this clock leaves far behind: names that are none of
      // the sweep's keep them out of it.
      const store = new ArtifactStore(folder, { newName: () => randomUUID().toUpperCase(), now })
      const other = kind === 'postgresql' ? await openDatabase(fresh.profile) : null
      const all = Array.from({ length: race.digests }, (_, n) => bytesOf(`bytes ${n}`))
      let writing = true
      let passes = 0
      const totals = { ...nothing }
      const sweeper = async (pool: Database['pool']): Promise<void> => {
        for (let n = 0; writing && n < sweepsLimit; n++) {
          pass()
          // There is nothing to sweep at first, and no turn for anybody else in that.
          await stat(folder)
          const swept = await sweep(now(), grace, pool)
          passes += 1
          for (const key of ['aside', 'restored', 'removed', 'rows'] as const) totals[key] += swept[key]
        }
      }
      const sweepsLimit = 5_000
      const writer = async (n: number): Promise<void> => {
        for (let round = 0; round < race.rounds; round++) {
          const bytes = all[(n * race.stride + round) % all.length]
          if (!bytes) throw new Error('no bytes')
          onTheWay.set(n, hours)
          await store.put(bytes)
          // Sweeps that come by before the row is there: enough to set a file aside and to remove it.
          for (const from = passes; passes < from + race.sweepsBetween && passes < sweepsLimit;) await stat(folder)
          expect(await get(store, bytes.digest)).toEqual(bytes.bytes)
          await refer(bytes.digest, now())
          onTheWay.delete(n)
          expect(await get(store, bytes.digest)).toEqual(bytes.bytes)
          // As if its task were deleted; then it is nobody's until the next writer comes.
          if (round % 4 !== n) await forget(bytes.digest)
        }
      }
      const sweepers = [sweeper(db.pool), sweeper(other?.pool ?? db.pool)]
      await Promise.all([0, 1, 2].map(writer)).finally(() => (writing = false))
      await Promise.all(sweepers)
      await other?.close()
      const rows = await db.pool.anyFirst(sql.unsafe`select digest from task_bytes`)
      for (const digest of rows) expect(await get(store, String(digest))).not.toBeNull()
      // It was no idle race: in between what nobody referred to was found.
      if (race.sweepsBetween === 0) expect(totals.aside + totals.rows).toBeGreaterThan(0)
      hours += 100
      for (let pass = 0; pass < 3; pass++) {
        hours += 1
        await sweep(now(), grace)
      }
      expect(filesIn(folder).toSorted()).toEqual(rows.map(String).toSorted())
    },
  )
})
