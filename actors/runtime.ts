/**
 * The loop that moves actors: steps and operations become commits, and each hears how it ended. Does not know any noun
 * (actors/kinds.ts), what a step means (actors/batch.ts), who waits for whom (actors/departures.ts) or who does the work
 * (actors/worker.ts).
 */
import { setTimeout } from 'node:timers/promises'
import type { EventObject } from 'xstate'
import {
  fateOf,
  findBorn,
  type ActorBatch,
  type ActorRef,
  type Evidence,
  type Snapshot,
} from '../persistence/actors.ts'
import type { Database } from '../persistence/database.ts'
import type { Flight as Transaction } from '../persistence/flight.ts'
import { isOutage } from '../persistence/outage.ts'
import { isConflict, isRetryable, isStalePlan } from '../persistence/sqlstate.ts'
import { Batch } from './batch.ts'
import { Departures } from './departures.ts'
import { weightOf } from './flight-weight.ts'
import { type Effects, type Intake, type Launch, type Step } from './step.ts'
import type { Changes } from './changes.ts'
import type { BatchContext, Kinds } from './kinds.ts'
import type { Reactions } from './reactions.ts'
import type { Log } from './worker.ts'

/** Something the runtime does for many callers in one statement, such as accepting commands. */
export interface Operation<Input, Result> {
  readonly name: string
  /** For one that only brings new actors and can be asked for again: the way it goes first, in one exchange. */
  readonly atOnce?: (batch: BatchContext, inputs: readonly Input[]) => AtOnce<Result>
  /** Characters of agents' words that an input brings to the commit (flight-weight.ts). */
  readonly weigh?: (input: Input) => number
  /** One answer an input, in order: the result and what follows, or an expected no. */
  run(batch: BatchContext, inputs: readonly Input[]): Promise<readonly Answer<Result>[]>
}
export type Answer<Result> = Performed<Result> | { readonly kind: 'refused'; readonly refusal: Error }
export interface Performed<Result> {
  readonly kind: 'done'
  readonly result: Result
  readonly effects: Effects
}

/** An operation that asks the database nothing before it writes: what stands in an input's way is found by writing. */
export interface AtOnce<Result> {
  /** What each input is answered, and what follows from it, if nothing stands in its way. Each spawns. */
  readonly answers: readonly Performed<Result>[]
  /**
   * One statement: the inputs and their actors, without those that something stands in the way of. Returns the ids of the
   * actors that were written; the others' inputs go the longer way, `run`.
   */
  readonly write: (actors: ActorBatch) => Promise<ReadonlySet<string>>
}

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
  readonly log: Pick<Log, 'error'>
  /** Called after the commit is acknowledged: only now may the first byte leave. */
  readonly launch: (launch: Launch) => void
}

interface Item {
  /** Puts itself into a batch's steps or operations. */
  readonly step: Step | null
  readonly operation: OperationCall | null
  /** Characters of what it brings to the commit. */
  readonly weight: number
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** An operation and its inputs, typed where it is called and run where the type is forgotten. */
interface OperationCall {
  readonly name: string
  readonly weight: number
  readonly input: unknown
  readonly run: (batch: BatchContext, inputs: readonly unknown[]) => Promise<readonly Answer<unknown>[]>
  readonly atOnce: ((batch: BatchContext, inputs: readonly unknown[]) => AtOnce<unknown>) | null
}

const transientRetriesLimit = 5
/** After an outage: 50 ms, doubled by each attempt. */
const outagePauseMs = 50
/** How often a transaction's fate is asked for: 50 ms to 6 s apart, some 13 s in all. */
const fateQuestionsLimit = 8
/** What may wait in memory; beyond it callers are told at once. */
const queueLimit = 20_000

/** How long something new waits for a flight, and then for the flight's outcome: nobody who asks waits for ever. */
const boardingPatienceMs = 15_000
const outcomePatienceMs = 15_000

/** The store is not keeping up. An outage: its sentence says what the caller may rely on. */
export class Overloaded extends Error {
  override readonly name = 'Overloaded'
}

export class Runtime {
  readonly #o: RuntimeOptions
  readonly #departures: Departures<Item>
  /** Of what needs one exchange: it does not wait for what needs two. */
  readonly #express: Departures<Item>

  constructor(options: RuntimeOptions) {
    this.#o = options
    // The embedded database has one session: a second flight would only wait for the first.
    const most = options.db.profile === 'pglite' ? 1 : 2
    this.#departures = new Departures({ usual: 1, most }, (items) => this.#flush(items))
    // Somebody waits for each of these: what leaves at once with few items is answered sooner.
    this.#express = new Departures({ usual: most, most }, (items) => this.#flushAtOnce(items))
  }

  /** Items that wait for a commit. */
  get queued(): number {
    return this.#departures.waiting + this.#express.waiting
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
    const { name, atOnce } = operation
    return this.#enqueue<Result>(null, {
      name,
      weight: operation.weigh?.(input) ?? 0,
      input,
      run: (batch, inputs) => operation.run(batch, inputs as readonly Input[]),
      atOnce: atOnce ? (batch, inputs) => atOnce(batch, inputs as readonly Input[]) : null,
    })
  }

  /** Resolves when nothing waits and nothing is being committed. */
  async idle(): Promise<void> {
    while (!(await this.#departures.isIdle()) || !(await this.#express.isIdle()));
  }

  #enqueue<T>(step: Step | null, operation: OperationCall | null): Promise<T> {
    // Only what is new is turned away: a report that finds no place would make a known outcome unknown.
    if (operation !== null && this.queued >= queueLimit)
      return Promise.reject(new Overloaded('The database is not keeping up; nothing was accepted.'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const weight = weightOf(step) + (operation?.weight ?? 0)
    const item: Item = { step, operation, weight, resolve: resolve as (value: unknown) => void, reject }
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
      if (this.#departures.takeBack(item) || this.#express.takeBack(item))
        return item.reject(new Overloaded('The database is not keeping up; nothing was accepted.'))
      const undecided = new Overloaded('The database has not answered yet; ask again with the same idempotency key.')
      timer = globalThis.setTimeout(() => item.reject(undecided), outcomePatienceMs)
    }, boardingPatienceMs)
    try {
      return await outcome
    } finally {
      clearTimeout(timer)
    }
  }

  async #flush(items: readonly Item[]): Promise<void> {
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
        return
      }
      const { error } = flight
      const outage = isOutage(error)
      if (flight.isUndone && (outage || isTransient(error)) && attempt < transientRetriesLimit) {
        if (outage) await setTimeout(outagePauseMs * 2 ** attempt)
        continue
      }
      // The database is away for everybody alike: a hundred items asked one by one would only wait a hundred times.
      if (items.length === 1 || outage || !flight.isUndone) {
        for (const item of items) item.reject(error)
        return
      }
      // One item's fault must not become its neighbours': each goes again, alone.
      for (const item of items) await this.#flush([item])
      return
    }
  }

  /**
   * Items of an operation that needs one exchange. Whatever did not go well goes the longer way, where it is found out what
   * stands in the way; so does a commit that nobody acknowledged, for there it is found and not done again.
   */
  async #flushAtOnce(items: readonly Item[]): Promise<void> {
    const startedAt = this.#o.instruments.monotonic()
    let batch: Batch | null = null
    try {
      const results = await this.#o.db.fly((tx) => {
        batch = this.#newBatch(tx, startedAt)
        return performAtOnce(batch, items)
      })
      if (batch !== null) this.#committed(batch)
      for (const [i, item] of items.entries()) {
        const performed = results[i]
        if (performed) item.resolve(performed.result)
        else this.#departures.add(item)
      }
    } catch (error) {
      const begun = batch as Batch | null
      if (isTransient(error)) begun?.giveBack()
      await this.#flush(items)
      if (begun && !isTransient(error)) await this.#launchFound(begun)
    }
  }

  /**
   * Of a commit that may or may not have been: begins the work of those actors that are there. Called when its items went the
   * longer way, and so all is decided: what was still on its way to the database finds every key taken.
   */
  async #launchFound(batch: Batch): Promise<void> {
    // The database is away, then nobody begins: the lease runs out, and the machine hears `interrupted`.
    const born = await this.#find(() => findBorn(this.#o.db.pool, batch.id, batch.moved)).catch((err: unknown) => {
      this.#o.log.error({ err }, 'an unacknowledged commit could not be looked for')
      return null
    })
    batch.keepOnly(born ?? [])
    this.#committed(batch)
  }

  #newBatch(tx: Transaction, startedAt: number): Batch {
    const { kinds, reactions, intake, instruments } = this.#o
    return new Batch({ tx, at: instruments.now(), startedAt, kinds, reactions, intake })
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
        fate = evidence !== null && !isTransient(error) ? await this.#fateOf(evidence) : 'aborted'
      } finally {
        if (fate !== 'committed') (batch as Batch | null)?.giveBack()
      }
      if (fate !== 'committed') return { kind: 'failed', error, isUndone: fate === 'aborted' }
    }
    return batch === null
      ? { kind: 'failed', error: new Error('The transaction ran nothing.'), isUndone: true }
      : { kind: 'committed', batch, settle }
  }

  /** `unknown`: the database is away for longer than anybody here may wait; whoever asked is told, and has its own fence. */
  async #fateOf(evidence: Evidence): Promise<Fate> {
    const fate = await this.#find(async () => {
      const found = await fateOf(this.#o.db.pool, evidence)
      return found === 'unknown' ? null : found
    })
    return fate ?? 'unknown'
  }

  /** What a question about a commit is answered; null when nobody can tell, or the database is away, for too long. */
  async #find<T>(ask: () => Promise<T | null>): Promise<T | null> {
    for (let attempt = 0; attempt < fateQuestionsLimit; attempt++) {
      try {
        const found = await ask()
        if (found !== null) return found
      } catch (error) {
        if (!isOutage(error)) throw error
      }
      await setTimeout(outagePauseMs * 2 ** attempt)
    }
    return null
  }

  /** Never throws: whoever asked is to hear that it was committed, whatever goes wrong with what begins now. */
  #committed(batch: Batch): void {
    for (const launch of batch.launches) {
      try {
        this.#o.launch(launch)
      } catch (err) {
        // Its lease runs out by itself, and the machine hears `interrupted`.
        const fields = { err, actor: `${launch.ref.kind}/${launch.ref.id}`, work: launch.work }
        this.#o.log.error(fields, 'work could not be begun')
      }
    }
    const commit = { batchId: batch.id, leftDue: batch.leftDue, facts: batch.facts }
    for (const [organizationId, subjects] of batch.subjects)
      this.#o.changes.publish({ organizationId, subjects, commit })
  }
}

type Fate = Awaited<ReturnType<typeof fateOf>>

type Flight =
  | { readonly kind: 'committed'; readonly batch: Batch; readonly settle: readonly (() => void)[] }
  /** `isUndone`: nothing of it was committed, so that it may be done again. Otherwise nobody knows, and twice is worse than not. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly isUndone: boolean }

/** The transaction did nothing, and run again it sees the row, the lock or the plan that stood in its way. */
const isTransient = (error: unknown): boolean => isRetryable(error) || isStalePlan(error) || isConflict(error)

/** Operations, each once for all its inputs, and every step; then whatever follows from either. */
async function fill(batch: Batch, items: readonly Item[], settle: (() => void)[]): Promise<void> {
  const calls = items.filter((item) => item.operation !== null)
  const stepping = items.flatMap((item) => (item.step === null ? [] : [{ item, step: item.step }]))
  const results = await batch.run(
    stepping.map(({ step }) => step),
    await operate(batch, calls, settle),
  )
  stepping.forEach(({ item }, i) => {
    const result = results[i]
    settle.push(() => (result instanceof Error ? item.reject(result) : item.resolve(result)))
  })
}

async function operate(batch: Batch, items: readonly Item[], settle: (() => void)[]): Promise<readonly Effects[]> {
  const effects: Effects[] = []
  for (const mine of Map.groupBy(items, (item) => item.operation?.name).values()) {
    const answers =
      (await mine[0]?.operation?.run(
        batch.context,
        mine.map((item) => item.operation?.input),
      )) ?? []
    mine.forEach((item, i) => {
      const answer = answers[i]
      if (!answer) throw new Error(`${item.operation?.name} answered ${answers.length} of ${mine.length} inputs.`)
      if (answer.kind === 'refused') settle.push(() => item.reject(answer.refusal))
      else {
        effects.push(answer.effects)
        settle.push(() => item.resolve(answer.result))
      }
    })
  }
  return effects
}

/** Per item what was performed; null for those that something stands in the way of. All are of one operation. */
async function performAtOnce(batch: Batch, items: readonly Item[]): Promise<readonly (Performed<unknown> | null)[]> {
  const inputs = items.map(({ operation }) => operation?.input)
  const asked = items[0]?.operation?.atOnce?.(batch.context, inputs)
  if (asked?.answers.length !== items.length) throw new Error('An operation did not answer all of its inputs at once.')
  const written = await batch.commitAtOnce(
    asked.answers.map(({ effects }) => effects),
    asked.write,
  )
  const isWritten = ({ effects: { spawns = [] } }: Performed<unknown>): boolean =>
    spawns.length > 0 && spawns.every(({ ref }) => written.has(ref.id))
  return asked.answers.map((answer) => (isWritten(answer) ? answer : null))
}
