/**
 * The loop that moves actors: steps and operations become commits, and each hears how it ended. Does not know any noun
 * (actors/loop/kinds.ts), what a step means (actors/loop/batch.ts), who waits for whom (actors/loop/departures.ts) or who does the work
 * (actors/loop/worker.ts).
 */
import { setTimeout } from 'node:timers/promises'
import type { EventObject } from 'xstate'
import { actorKey, type ActorRef, type Evidence, type Snapshot } from '../../persistence/actors.ts'
import type { Database } from '../../persistence/database.ts'
import type { Flight as Transaction } from '../../persistence/drivers/flight.ts'
import { isOutage } from '../../persistence/outage.ts'
import { isLockTimeout } from '../../persistence/drivers/sqlstate.ts'
import { Batch } from './batch.ts'
import { Departures } from './departures.ts'
import type { Changes } from './changes.ts'
import { findFate, findNewborn, isReportedUndone, isTransient, type Fate } from './fate.ts'
import { weightOf } from './flight-weight.ts'
import type { Kinds } from './kinds.ts'
import {
  fill,
  performAtOnce,
  refusalOf,
  Overloaded,
  Undecided,
  type Item,
  type Operation,
  type OperationCall,
} from './operation.ts'
import type { Intake, Launch, Step } from './step.ts'
import { Missed } from './missed.ts'
import type { Reactions } from './reaction.ts'
import type { Log } from '../log.ts'

/** Where the runtime gets time and names from; tests may bring their own. */
export interface Instruments {
  /** Wall clock. */
  now(): Date
  /** Milliseconds that never jump. */
  monotonic(): number
  newToken(): string
}

export interface RuntimeOptions {
  readonly db: Database
  readonly kinds: Kinds
  readonly reactions: Reactions
  readonly changes: Changes
  readonly instruments: Instruments
  readonly intake: Intake
  readonly log: Pick<Log, 'error' | 'warn'>
  /** Called after the commit is acknowledged: only now may the first byte leave. */
  readonly launch: (launch: Launch) => void
}

const transientRetriesLimit = 5
/** So many items in a row of which each met a lock: it is none of a row's, and those behind them would wait as long for nothing. */
const lockedLimit = 3
/** After an outage: 50 ms, doubled by each attempt. */
const outagePauseMs = 50
/** What may wait in memory; beyond it callers are told at once. */
const queueLimit = 20_000

/** How long something new waits for a flight, and then for the flight's outcome: nobody who asks waits for ever. */
const boardingPatienceMs = 15_000
const outcomePatienceMs = 15_000

/** A commit under way for longer is no ordinary one. */
const promptMs = 250

export class Runtime {
  readonly #o: RuntimeOptions
  readonly #departures: Departures<Item>
  /** Of what needs one exchange: it does not wait for what needs two. */
  readonly #express: Departures<Item>
  readonly #missed: Missed
  /** For commits that nobody acknowledged. */
  readonly #looks = new Set<Promise<void>>()
  /** What items were rejected with of which nothing was committed. */
  readonly #undoneBy = new WeakSet<Error>()
  /** From their beginning until it is known here what became of them. */
  readonly #undecided = new Set<Batch>()

  constructor(options: RuntimeOptions) {
    this.#o = options
    this.#missed = new Missed(options.log, () => options.instruments.monotonic())
    // The embedded database has one session: a second flight of a queue would only wait for the first.
    const most = options.db.profile === 'pglite' ? 1 : 2
    this.#departures = new Departures({ usual: 1, most }, async (items) => void (await this.#flush(items)))
    // Somebody waits for each of these: what leaves at once with few items is answered sooner.
    this.#express = new Departures({ usual: most, most }, (items) => this.#flushAtOnce(items))
  }

  /**
   * Tokens of leases that commits under way grant to this process, or may have granted: as good as held until it is known, for a
   * clock that jumps must not end them.
   */
  get unheard(): readonly string[] {
    return [...this.#undecided].flatMap(({ launches }) => launches.map(({ token }) => token))
  }

  /** Items that wait for a commit. */
  get queued(): number {
    return this.#departures.waiting + this.#express.waiting
  }

  /** Whether what is new is answered at once: who would otherwise be told sooner that the database hangs need not wait for it. */
  get isPrompt(): boolean {
    return this.#express.oldestMs < promptMs && this.queued < queueLimit
  }

  /** Moves an actor by one event; resolves with the committed snapshot. Rejects with ActorGone, a Refusal or an outage. */
  send(ref: ActorRef, event: EventObject, cause: string): Promise<Snapshot> {
    return this.step({ ref, event, told: [], lease: null, cause })
  }

  /** The whole form of `send`; with a lease it is the report of whoever does the work, and rejects with LeaseLost. */
  step(step: Step): Promise<Snapshot> {
    return this.#enqueue<Snapshot>(step, null)
  }

  /** Runs an operation together with whoever else asks for it in the same commit. */
  perform<Input, Result>(operation: Operation<Input, Result>, input: Input): Promise<Result> {
    const { name, atOnce, askAgain, refusal } = operation
    return this.#enqueue<Result>(null, {
      name,
      weight: operation.weigh?.(input) ?? 0,
      input,
      run: (batch, inputs) => operation.run(batch, inputs as readonly Input[]),
      atOnce: atOnce ? (batch, inputs) => atOnce(batch, inputs as readonly Input[]) : null,
      askAgain: askAgain ? (db, inputs) => askAgain(db, inputs as readonly Input[]) : null,
      refusal: refusal ? (known) => refusal(known as Input) : null,
    })
  }

  /** Of what a step was rejected with: whether nothing of it was committed, so that it may be done again. */
  isUndone = (error: unknown): boolean => error instanceof Error && this.#undoneBy.has(error)

  /** Resolves when nothing waits and nothing is being committed. */
  async idle(): Promise<void> {
    while (!(await this.#departures.isIdle()) || !(await this.#express.isIdle()) || this.#looks.size > 0)
      await Promise.all(this.#looks)
  }

  #enqueue<T>(step: Step | null, operation: OperationCall | null): Promise<T> {
    // Only what is new is turned away: a report that finds no place would make a known outcome unknown.
    if (operation !== null && this.queued >= queueLimit) return Promise.reject(new Overloaded())
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const weight = weightOf(step) + (operation?.weight ?? 0)
    const settle = { resolve: resolve as (value: unknown) => void, reject }
    const item: Item = { step, operation, weight, earlier: 'none', ...settle }
    const departures = operation?.atOnce ? this.#express : this.#departures
    departures.add(item)
    return operation === null ? promise : this.#patiently(item, promise)
  }

  /**
   * With a database that hangs, a caller would wait for minutes and others behind it. Who has not left yet leaves the
   * queue; of who has, nobody can tell: what is asked for again with the same key is found or done, never done twice.
   */
  async #patiently<T>(item: Item, outcome: Promise<T>): Promise<T> {
    let timer = globalThis.setTimeout(() => {
      const waits = this.#departures.takeBack(item) || this.#express.takeBack(item)
      if (waits) return item.reject(item.earlier === 'none' ? new Overloaded() : new Undecided())
      timer = globalThis.setTimeout(() => item.reject(new Undecided()), outcomePatienceMs)
    }, boardingPatienceMs)
    try {
      return await outcome
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves with whether somebody else's lock stood in the way. */
  async #flush(items: readonly Item[]): Promise<boolean> {
    for (let attempt = 0; ; attempt++) {
      // Who could not even ask whether it was committed must not do it again.
      const flight = await this.#fly(items).catch((error: unknown): Flight => ({
        kind: 'failed',
        error,
        isUndone: false,
      }))
      if (flight.kind === 'committed') {
        this.#committed(flight.batch)
        for (const done of flight.settle) done()
        return false
      }
      const { error } = flight
      if (flight.isUndone && error instanceof Error) this.#undoneBy.add(error)
      if (flight.isUndone && isLockTimeout(error)) return this.#apart(items, error)
      const outage = isOutage(error)
      if (flight.isUndone && (outage || isTransient(error)) && attempt < transientRetriesLimit) {
        if (outage) await setTimeout(outagePauseMs * 2 ** attempt)
        continue
      }
      // The database is away for everybody alike: a hundred items asked one by one would only wait a hundred times.
      if (items.length === 1 || outage || !flight.isUndone) {
        for (const item of items) item.reject(error)
        return false
      }
      // One item's fault must not become its neighbours': each goes again, alone.
      for (const item of items) await this.#flush([item])
      return false
    }
  }

  /**
   * A row that somebody keeps locked is one item's trouble: each goes again, alone, and that one is told. It waits no longer here, for
   * others stand behind it; who asked tries again.
   */
  async #apart(items: readonly Item[], error: unknown): Promise<true> {
    let inARow = 0
    for (const item of items) {
      if (items.length === 1 || inARow === lockedLimit) item.reject(error)
      else inARow = (await this.#flush([item])) ? inARow + 1 : 0
    }
    return true
  }

  /**
   * Items that need one exchange. What something stands in the way of goes the longer way, where it is found out what that is; so
   * does a commit that nobody acknowledged, for there it is found and not done again.
   */
  async #flushAtOnce(items: readonly Item[]): Promise<void> {
    for (const mine of Map.groupBy(items, ({ operation }) => operation?.name).values()) await this.#flyAtOnce(mine)
  }

  async #flyAtOnce(items: readonly Item[]): Promise<void> {
    const startedAt = this.#o.instruments.monotonic()
    const begun: Batch[] = []
    let results
    try {
      results = await this.#o.db.fly((tx) => {
        const batch = this.#newBatch(tx, startedAt)
        begun.push(batch)
        return performAtOnce(batch, items)
      })
    } catch (error) {
      return this.#unacknowledged(items, begun[0], error)
    }
    for (const batch of begun) this.#committed(batch)
    for (const [i, item] of items.entries()) {
      const performed = results[i]
      if (performed instanceof Error) item.reject(performed)
      else if (performed) item.resolve(performed.result)
      else this.#takeLongerWay(item)
    }
  }

  /** Its key may be another's, and that one may be under way: nobody is told any more that nothing was accepted. */
  #takeLongerWay(item: Item): void {
    item.earlier = 'hindered'
    this.#departures.add(item)
  }

  /**
   * An attempt at once that failed. It is known not to have been committed only where the database itself reports it as undone, or
   * where it had no line: then there is no batch, and nothing was sent.
   */
  async #unacknowledged(items: readonly Item[], batch: Batch | undefined, error: unknown): Promise<void> {
    const isUndone = !batch || isReportedUndone(error)
    if (isUndone) this.#undone(batch)
    if (!isTransient(error) && !isOutage(error))
      this.#o.log.error({ err: error }, 'a commit at once failed, and goes the longer way')
    let accepted = 0
    // Whatever was said of them already was said before the commit that nobody knows of, and they are not in it.
    const open = items.filter((item) => {
      const refusal = refusalOf(item)
      if (refusal) item.reject(refusal)
      return !refusal
    })
    if (!isUndone) for (const item of open) item.earlier = 'unheard'
    const again = open.map((item) => ({
      ...item,
      resolve: (value: unknown) => {
        accepted += 1
        item.resolve(value)
      },
    }))
    if (again.length > 0) {
      await this.#askAgain(again)
      await this.#flush(again)
    }
    if (isUndone) return
    // Beside the flights: it may take a while, and others are not to wait for it.
    const look: Promise<void> = this.#launchFound(batch, accepted === open.length).finally(() =>
      this.#looks.delete(look),
    )
    this.#looks.add(look)
  }

  /** Never rejects: what cannot be asked is not known on the longer way, which says so. */
  async #askAgain(items: readonly Item[]): Promise<void> {
    const { db, log } = this.#o
    const asking = items[0]?.operation?.askAgain
    const inputs = items.map(({ operation }) => operation?.input)
    const since = performance.now()
    for (let attempt = 0; asking; attempt++) {
      try {
        return await asking(db.direct, inputs)
      } catch (err) {
        const isOver = attempt === transientRetriesLimit || performance.now() - since > outcomePatienceMs
        if (!isOutage(err) || isOver)
          return log.warn({ err, items: items.length }, 'what an attempt at once asked could not be asked again')
        await setTimeout(outagePauseMs * 2 ** attempt)
      }
    }
  }

  /**
   * Of a commit that may or may not have been, begins the work of those actors that are there. `isDecided`: all its items were
   * accepted on the longer way, so what was still on its way to the database finds every key taken. Never rejects.
   */
  async #launchFound(batch: Batch, isDecided: boolean): Promise<void> {
    const { db, log } = this.#o
    const fields = { batchId: batch.id, actors: batch.moved.length }
    const born = await findNewborn(db, batch, isDecided).catch((err: unknown) => {
      log.error({ ...fields, err }, 'an unacknowledged commit could not be looked for')
      return null
    })
    // Nobody can tell: if it was, its leases run out, and the machines hear `interrupted`.
    log.warn({ ...fields, found: born?.length ?? null }, 'a commit at once was not acknowledged')
    batch.keepOnly(born ?? [])
    this.#committed(batch)
  }

  #newBatch(tx: Transaction, startedAt: number): Batch {
    const { kinds, reactions, intake, instruments } = this.#o
    const batch = new Batch({ tx, at: instruments.now(), startedAt, kinds, reactions, intake, missed: this.#missed })
    this.#undecided.add(batch)
    return batch
  }

  /** Nothing of it is there, as far as anybody here will ever know. */
  #undone(batch: Batch | null | undefined): void {
    if (!batch) return
    batch.keepOnly([])
    this.#undecided.delete(batch)
  }

  /** One attempt. */
  async #fly(items: readonly Item[]): Promise<Flight> {
    const startedAt = this.#o.instruments.monotonic()
    const settle: (() => void)[] = []
    let batch: Batch | null = null
    let evidence: Evidence | null = null
    try {
      await this.#o.db.fly(async (tx) => {
        batch = this.#newBatch(tx, startedAt)
        await fill(batch, items, settle)
        await batch.commit((proof) => {
          evidence = proof
        })
      })
    } catch (error) {
      // The commit may have happened and only its acknowledgement be lost: then doing it again would do it twice. A line can
      // break in more ways than have names, so everything is asked about but what the server itself reports as undone.
      let fate: Fate = 'unknown'
      try {
        fate = evidence !== null && !isReportedUndone(error) ? await findFate(this.#o.db, evidence) : 'aborted'
      } finally {
        if (fate !== 'committed') this.#undone(batch)
      }
      if (fate !== 'committed') return { kind: 'failed', error, isUndone: fate === 'aborted' }
    }
    return batch === null
      ? { kind: 'failed', error: new Error('The transaction ran nothing.'), isUndone: true }
      : { kind: 'committed', batch, settle }
  }

  /** Never throws: whoever asked is to hear that it was committed, whatever goes wrong with what begins now. */
  #committed(batch: Batch): void {
    this.#undecided.delete(batch)
    for (const launch of batch.launches.splice(0)) {
      try {
        this.#o.launch(launch)
      } catch (err) {
        // Its lease runs out by itself, and the machine hears `interrupted`.
        const fields = { err, actor: actorKey(launch.ref), work: launch.work }
        this.#o.log.error(fields, 'work could not be begun')
      }
    }
    const commit = { batchId: batch.id, leftDue: batch.leftDue, facts: batch.facts }
    for (const [organizationId, subjects] of batch.subjects)
      this.#o.changes.publish({ organizationId, subjects, commit })
  }
}

type Flight =
  | { readonly kind: 'committed'; readonly batch: Batch; readonly settle: readonly (() => void)[] }
  /** `isUndone`: nothing of it was committed, so that it may be done again. Otherwise nobody knows, and twice is worse than not. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly isUndone: boolean }
