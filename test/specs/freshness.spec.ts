/**
 * One change wakes everybody who waits for it, in every process, whatever order transactions begin, commit and are
 * acknowledged in; and nobody twice without a reason.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Changes, type Change } from '../../actors/changes.ts'
import { Freshness } from '../../actors/freshness.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { capturedLog } from '../support/system.ts'

const organizationId = randomUUID()
const insertFact = `insert into fact (organization_id, kind, subject_id, data, at, batch_id)
  values ($1, 'test', $2, '{}', now(), $2::uuid)`

interface Heard {
  readonly at: number
  readonly change: Change
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
  /** Until what was alive at the start has ended, looks are blurred. */
  const settle = async (): Promise<void> => {
    for (let looks = 0; looks < 200; looks++) {
      heard.length = 0
      await freshness.look()
      if (heard.length === 0) return
    }
    throw new Error('The looks never became clear.')
  }
  return { freshness, heard, acknowledge, settle }
}
type Process = Awaited<ReturnType<typeof openProcess>>

type Step =
  | { readonly does: 'begin'; readonly slot: number; readonly process: number }
  | { readonly does: 'commit' | 'rollback'; readonly slot: number }
  | { readonly does: 'acknowledge' }
  | { readonly does: 'look'; readonly process: number }

const processes = 2
/** Transactions open at once. The embedded database has one session, so there they follow each other. */
const slotsOf = { postgresql: 3, pglite: 1 }

const stepFor = (slots: number): fc.Arbitrary<Step> => {
  const slot = fc.nat({ max: slots - 1 })
  const process = fc.nat({ max: processes - 1 })
  return fc.oneof(
    { weight: 3, arbitrary: fc.record({ does: fc.constant('begin' as const), slot, process }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant('commit' as const), slot }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant('rollback' as const), slot }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constant('acknowledge' as const) }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constant('look' as const), process }) },
  )
}

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
  readonly #open = new Map<number, { batchId: string; process: number }>()
  readonly #clients: readonly Pick<pg.Client, 'query'>[]
  readonly #actors: readonly Process[]

  constructor(clients: readonly Pick<pg.Client, 'query'>[], actors: readonly Process[]) {
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
      const begun = { batchId: randomUUID(), process: step.process }
      this.#open.set(step.slot, begun)
      await client.query('begin')
      await client.query(insertFact, [organizationId, begun.batchId])
      return
    }
    if (!open) return
    this.#open.delete(step.slot)
    await client?.query(step.does)
    if (step.does === 'commit') this.committed.push({ ...open, at: this.now, acknowledgedAt: null })
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
    for (const slot of [...this.#open.keys()]) await this.step({ does: 'rollback', slot })
    for (let process = 0; process < processes; process++) await this.step({ does: 'look', process })
  }
}

const isWakeFor =
  (batchId: string) =>
  ({ change }: Heard): boolean =>
    change.organizationId === null || change.subjects.has(batchId)

describe.each(bothDatabases)('on %s', (kind) => {
  let fresh: FreshDatabase
  const clients: pg.Client[] = []
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    if (fresh.profile.kind !== 'postgresql') return
    for (let slot = 0; slot < slotsOf.postgresql; slot++) {
      const client = new pg.Client({ connectionString: fresh.profile.url })
      await client.connect()
      clients.push(client)
    }
  })
  afterAll(async () => {
    for (const client of clients) await client.end()
    await fresh.close()
  })

  /** The embedded database is reached through its one session, which is free between two steps of one slot only. */
  const withClients = <T>(work: (clients: readonly Pick<pg.Client, 'query'>[]) => Promise<T>): Promise<T> =>
    work(clients)

  test.runIf(kind === 'postgresql')('every commit is followed by a wake-up, in every process', async () => {
    await withClients((given) =>
      fc.assert(
        fc.asyncProperty(fc.array(stepFor(slotsOf[kind]), { minLength: 5, maxLength: 40 }), async (steps) => {
          let play: Play | null = null
          const opened = await Promise.all(
            Array.from({ length: processes }, () => openProcess(fresh, () => play?.now ?? 0)),
          )
          for (const each of opened) await each.settle()
          play = new Play(given, opened)
          for (const step of steps) await play.step(step)
          await play.end()
          for (const [process, { heard }] of opened.entries()) verify(play, process, heard)
          for (const { freshness } of opened) await freshness.close()
        }),
        { seed: 20_261_121, numRuns: 60 },
      ),
    )
  })
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
