/**
 * One change wakes everybody who waits for it, in every process, whatever order transactions begin, commit and are
 * acknowledged in; and nobody twice without a reason.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { sql } from 'slonik'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { anybody, Changes, concerns, type Change } from '../../actors/loop/changes.ts'
import { Freshness } from '../../actors/freshness.ts'
import { openDatabase } from '../../persistence/database.ts'
import { named } from '../support/changes.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { capturedLog, systemOn } from '../support/system.ts'

const seed = 20_261_121
const organizationId = randomUUID()
const insertFact = `insert into fact (organization_id, kind, subject_id, data, at, batch_id)
  values ($1, 'test', $2::uuid::text, '{}', now(), $2::uuid)`

interface Heard {
  readonly at: number
  readonly change: Change
}

/** A transaction that has its id and did nothing yet. */
async function begunOn({ profile }: FreshDatabase): Promise<pg.Client> {
  if (profile.kind !== 'postgresql') throw new Error('The embedded database has one session.')
  const client = new pg.Client({ connectionString: profile.url })
  await client.connect()
  await client.query('begin')
  await client.query('select pg_current_xact_id()')
  return client
}

/** A process, as far as freshness goes: it is looked with when the test says so, and never by itself. */
async function openProcess({ db }: FreshDatabase, tick: () => number) {
  const changes = new Changes()
  const heard: Heard[] = []
  const { log } = capturedLog()
  const freshness = new Freshness({ db, changes, log, works: false, kinds: [], nudge: () => undefined })
  await freshness.open()
  changes.subscribe((change) => heard.push({ at: tick(), change }))
  const acknowledge = (batchId: string): void =>
    changes.publish({ organizationId, subjects: new Set([batchId]), commit: { batchId, leftDue: new Set() } })
  await freshness.look()
  heard.length = 0
  return { freshness, heard, acknowledge }
}
type Process = Awaited<ReturnType<typeof openProcess>>

type Step =
  | { readonly does: 'begin'; readonly slot: number; readonly process: number }
  | { readonly does: 'tell' | 'commit' | 'rollback'; readonly slot: number }
  | { readonly does: 'acknowledge' }
  | { readonly does: 'look'; readonly process: number }

const processes = 2
/** Transactions open at once. */
const slots = 3
const slot = fc.nat({ max: slots - 1 })
const process = fc.nat({ max: processes - 1 })
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ does: fc.constant('begin' as const), slot, process }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('tell' as const), slot }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('commit' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('rollback' as const), slot }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('acknowledge' as const) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('look' as const), process }) },
)

interface Committed {
  readonly batchId: string
  readonly process: number
  readonly at: number
  acknowledgedAt: number | null
}

/** Plays the steps, those that make no sense left out, then lets both processes look until nothing is open. */
class Play {
  now = 0
  readonly committed: Committed[] = []
  readonly looks: { readonly process: number; readonly at: number }[] = []
  readonly #open = new Map<number, { batchId: string; process: number; facts: number }>()
  readonly #clients: readonly pg.Client[]
  readonly #actors: readonly Process[]

  constructor(clients: readonly pg.Client[], actors: readonly Process[]) {
    this.#clients = clients
    this.#actors = actors
  }

  async step(step: Step): Promise<void> {
    this.now += 1
    if (step.does === 'look') return this.look(step.process)
    if (step.does === 'acknowledge') return this.#acknowledge()
    const client = this.#clients[step.slot]
    const open = this.#open.get(step.slot)
    if (step.does === 'begin') {
      if (open || !client) return
      this.#open.set(step.slot, { batchId: randomUUID(), process: step.process, facts: 0 })
      // As our commits do: its id first, its numbers later, so that the two orders differ.
      await client.query('begin')
      await client.query('select pg_current_xact_id()')
      return
    }
    if (!open || !client) return
    if (step.does === 'tell') {
      open.facts += 1
      await client.query(insertFact, [organizationId, open.batchId])
      return
    }
    this.#open.delete(step.slot)
    await client.query(step.does)
    if (step.does === 'commit' && open.facts > 0) this.committed.push({ ...open, at: this.now, acknowledgedAt: null })
  }

  /** The oldest commit whose process does not know of it yet. */
  #acknowledge(): void {
    const next = this.committed.find(({ acknowledgedAt }) => acknowledgedAt === null)
    if (!next) return
    next.acknowledgedAt = this.now
    this.#actors[next.process]?.acknowledge(next.batchId)
  }

  async look(process: number): Promise<void> {
    this.looks.push({ process, at: this.now })
    await this.#actors[process]?.freshness.look()
  }

  async end(): Promise<void> {
    for (const slot of this.#open.keys()) await this.step({ does: 'rollback', slot })
    for (let process = 0; process < processes; process++) await this.step({ does: 'look', process })
  }
}

const isWakeFor =
  (batchId: string) =>
  ({ change }: Heard): boolean =>
    concerns(change.subjects, batchId)

test('postgresql: in every order of begin, commit, acknowledgement and look, every commit wakes every process once', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('The embedded database has one session.')
  const { url } = fresh.profile
  const clients = Array.from({ length: slots }, () => new pg.Client({ connectionString: url }))
  for (const client of clients) await client.connect()
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 40 }), async (steps) => {
      let play: Play | null = null
      const tick = (): number => play?.now ?? 0
      const opened = await Promise.all(Array.from({ length: processes }, () => openProcess(fresh, tick)))
      play = new Play(clients, opened)
      for (const step of steps) await play.step(step)
      await play.end()
      for (const [number, { heard }] of opened.entries()) verify(play, number, heard)
      for (const { freshness } of opened) await freshness.close()
    }),
    { seed, numRuns: 60 },
  )
  for (const client of clients) await client.end()
  await fresh.close()
})

function verify({ committed, looks }: Play, process: number, heard: readonly Heard[]): void {
  for (const { batchId, at, acknowledgedAt, ...commit } of committed) {
    const wakes = heard.filter(isWakeFor(batchId))
    expect(wakes.some((wake) => wake.at >= at)).toBe(true)
    const own = commit.process === process && acknowledgedAt !== null
    // A look that overtakes the acknowledgement is the one reason for being told twice.
    const overtaken = own && looks.some((look) => look.process === process && look.at > at && look.at < acknowledgedAt)
    expect(wakes.length).toBe(overtaken ? 2 : 1)
  }
}

test('postgresql: a late commit that fills more gaps than a look reads news is heard whole', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
  const late = new pg.Client({ connectionString: fresh.profile.url })
  await late.connect()
  const { freshness, heard } = await openProcess(fresh, () => 0)
  const factsCount = 3_000
  await late.query('begin')
  await late.query(
    `insert into fact (organization_id, kind, subject_id, data, at, batch_id)
     select $1, 'test', 'late-' || n, '{}', now(), $2 from generate_series(1, $3::int) n`,
    [organizationId, randomUUID(), factsCount],
  )
  await fresh.db.raw((client) => client.query(insertFact, [organizationId, randomUUID()]))
  await freshness.look()
  await late.query('commit')
  while (await freshness.look());
  const told = new Set(heard.flatMap(({ change }) => named(change)))
  const missed = Array.from({ length: factsCount }, (_, i) => `late-${i + 1}`).filter((id) => !told.has(id))
  expect(missed).toEqual([])
  await freshness.close()
  await late.end()
  await fresh.close()
})

test('postgresql: the newest transaction of all is waited for, though it took its number before an older one', async () => {
  const fresh = await freshDatabase('postgresql')
  const { freshness, heard } = await openProcess(fresh, () => 0)
  const older = await begunOn(fresh)
  const newest = await begunOn(fresh)
  const batches = [newest, older].map((client) => ({ client, batchId: randomUUID() }))
  for (const { client, batchId } of batches) await client.query(insertFact, [organizationId, batchId])
  await older.query('commit')
  // The snapshot's bounds are now the newest transaction itself.
  for (let n = 0; n < 3; n++) await freshness.look()
  await newest.query('commit')
  await freshness.look()
  expect(heard.map(({ change }) => named(change))).toEqual(batches.map(({ batchId }) => [batchId]).reverse())
  for (const client of [older, newest]) await client.end()
  await freshness.close()
  await fresh.close()
})

test('postgresql: a blur is told at each look, and that it goes on, but for the first and the last', async () => {
  const fresh = await freshDatabase('postgresql')
  const { freshness, heard } = await openProcess(fresh, () => 0)
  const older = await begunOn(fresh)
  const batchId = randomUUID()
  await fresh.db.raw(async (client) => {
    await client.query(`select setval(pg_get_serial_sequence('fact', 'number'), 20000)`)
    await client.query(insertFact, [organizationId, randomUUID()])
  })
  await freshness.look()
  await freshness.look()
  await fresh.db.raw((client) => client.query(insertFact, [organizationId, batchId]))
  await freshness.look()
  await older.query('rollback')
  await freshness.look()
  await freshness.look()
  const blur = { organizationId: null, subjects: anybody, commit: null }
  const known = { organizationId, subjects: new Set([batchId]), commit: null }
  const goesOn = { ...blur, goesOn: true }
  expect(heard.map(({ change }) => change)).toEqual([blur, goesOn, goesOn, known, blur])
  await older.end()
  await freshness.close()
  await fresh.close()
})

test('postgresql: what was under way when a process began to look is heard, and what never ends elsewhere wakes nobody', async () => {
  const fresh = await freshDatabase('postgresql')
  const neighbour = await freshDatabase('postgresql')
  const late = await begunOn(fresh)
  const endless = await begunOn(neighbour)
  const batchId = randomUUID()
  await late.query(insertFact, [organizationId, batchId])
  await fresh.db.raw((client) => client.query(insertFact, [organizationId, randomUUID()]))
  const { freshness, heard } = await openProcess(fresh, () => 0)
  for (let n = 0; n < 3; n++) await freshness.look()
  expect(heard).toEqual([])
  await late.query('commit')
  await freshness.look()
  expect(heard.map(({ change }) => named(change))).toEqual([[batchId]])
  for (let n = 0; n < 3; n++) await freshness.look()
  expect(heard).toHaveLength(1)
  await endless.query('rollback')
  for (const client of [late, endless]) await client.end()
  await freshness.close()
  await Promise.all([fresh.close(), neighbour.close()])
})

const Told = z.object({ subjectId: z.string() })

test.each(bothDatabases)('%s: whatever real systems commit at once is heard in each of them', async (kind) => {
  const fresh = await freshDatabase(kind)
  const others = kind === 'postgresql' ? [await openDatabase(fresh.profile)] : []
  const systems = await Promise.all([fresh.db, ...others].map((db) => systemOn(db)))
  const peer = await startRawPeer()
  const heard = systems.map(({ system }) => {
    const changes: Change[] = []
    system.changes.subscribe((change) => changes.push(change))
    return changes
  })
  const [first] = systems
  if (!first) throw new Error('There is no system.')
  const { id: agentId } = await first.system.agents.register(first.viewer, peer.cardUrl)
  const words = fc.sample(fc.constantFrom('direct', 'hello', 'agent'), { seed, numRuns: 40 })
  await Promise.all(
    words.map(async (word, i) => {
      const at = systems[i % systems.length] ?? first
      if (word === 'agent') {
        const { id } = await at.system.agents.register(at.viewer, `http://127.0.0.1:9/${i}/card.json`)
        return at.system.agents.remove(at.viewer, id)
      }
      const { id } = await at.send(agentId, { text: word }, `${kind}-${i}`)
      await at.finished(id)
    }),
  )
  const told = await fresh.db.pool.any(sql.type(Told)`
    select distinct subject_id as "subjectId" from fact`)
  expect(told.length).toBeGreaterThan(words.length)
  const wakesFor = (changes: readonly Change[], id: string) =>
    changes.filter((change) => concerns(change.subjects, id)).length
  for (const changes of heard) {
    const unheard = () => told.filter(({ subjectId }) => wakesFor(changes, subjectId) === 0)
    await expect.poll(unheard, { timeout: 5_000 }).toEqual([])
  }
  // One process publishes each of its commits once, and there is nobody to find them a second time.
  if (kind === 'pglite') {
    const published = (heard[0] ?? []).map(({ commit }) => commit?.batchId)
    expect(published).toEqual([...new Set(published)])
    expect(published).not.toContain(undefined)
  }
  for (const running of systems) await running.close()
  for (const db of others) await db.close()
  await peer.close()
  await fresh.close()
})
