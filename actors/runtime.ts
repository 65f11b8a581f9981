/**
 * The loop that moves actors: natural batching of steps and operations into commits. Does not know any noun
 * (actors/kinds.ts), what a step means (actors/batch.ts) or who does the work (actors/worker.ts).
 *
 * Batching has no timer: while a commit is under way, items wait, and the next commit takes all that wait. An idle system
 * keeps its latency, a busy one shares its commits.
 */
import { setTimeout } from 'node:timers/promises'
import type { EventObject } from 'xstate'
import { fateOf, type ActorRef, type Evidence, type Snapshot } from '../persistence/actors.ts'
import type { Database } from '../persistence/database.ts'
import { isOutage } from '../persistence/outage.ts'
import { isConflict, isRetryable, isStalePlan } from '../persistence/sqlstate.ts'
import { Batch } from './batch.ts'
import { seated, weightOf } from './flight-weight.ts'
import { type Effects, type Intake, type Launch, type Step } from './step.ts'
import type { Changes } from './changes.ts'
import type { BatchContext, Kinds } from './kinds.ts'
import type { Reactions } from './reactions.ts'
import type { Log } from './worker.ts'

/** Something the runtime does for many callers in one statement, such as accepting commands. */
export interface Operation<Input, Result> {
  readonly name: string
  /** Its effects are new actors and nothing else, so that nothing has to be locked for it. */
  readonly onlySpawns?: true
  /** Characters of agents' words that an input brings to the commit (flight-weight.ts). */
  readonly weigh?: (input: Input) => number
  /** One answer an input, in order: the result and what follows, or an expected no. */
  run(batch: BatchContext, inputs: readonly Input[]): Promise<readonly Answer<Result>[]>
}
export type Answer<Result> =
  | { readonly kind: 'done'; readonly result: Result; readonly effects: Effects }
  | { readonly kind: 'refused'; readonly refusal: Error }

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
  readonly onlySpawns: boolean
  readonly weight: number
  readonly input: unknown
  readonly run: (batch: BatchContext, inputs: readonly unknown[]) => Promise<readonly Answer<unknown>[]>
}

const batchLimit = 100
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
  readonly #queue: Item[] = []
  readonly #underWay = new Set<Promise<void>>()
  readonly #flightsLimit: number
  #boarding = false

  constructor(options: RuntimeOptions) {
    this.#o = options
    // The embedded database has one session: a second flight would only wait for the first.
    this.#flightsLimit = options.db.profile === 'pglite' ? 1 : 2
  }

  /** Items that wait for a commit. */
  get queued(): number {
    return this.#queue.length
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
    const { name, onlySpawns = false } = operation
    return this.#enqueue<Result>(null, {
      name,
      onlySpawns,
      weight: operation.weigh?.(input) ?? 0,
      input,
      run: (batch, inputs) => operation.run(batch, inputs as readonly Input[]),
    })
  }

  /** Resolves when nothing waits and nothing is being committed. */
  async idle(): Promise<void> {
    for (;;) {
      if (this.#boarding) await new Promise((resolve) => setImmediate(resolve))
      else if (this.#underWay.size > 0) await Promise.all(this.#underWay)
      else return
    }
  }

  #enqueue<T>(step: Step | null, operation: OperationCall | null): Promise<T> {
    // Only what is new is turned away: a report that finds no place would make a known outcome unknown.
    if (operation !== null && this.#queue.length >= queueLimit)
      return Promise.reject(new Overloaded('The database is not keeping up; nothing was accepted.'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const weight = weightOf(step) + (operation?.weight ?? 0)
    const item: Item = { step, operation, weight, resolve: resolve as (value: unknown) => void, reject }
    this.#queue.push(item)
    this.#board()
    return operation === null ? promise : this.#patiently(item, promise)
  }

  /**
   * With a database that hangs, a caller would wait for minutes and others behind it. Who has not left yet leaves the
   * queue; of who has, nobody can tell: what is asked for again with the same key is found or done, never done twice.
   */
  async #patiently<T>(item: Item, outcome: Promise<T>): Promise<T> {
    let timer = globalThis.setTimeout(() => {
      const at = this.#queue.indexOf(item)
      if (at >= 0) {
        this.#queue.splice(at, 1)
        return item.reject(new Overloaded('The database is not keeping up; nothing was accepted.'))
      }
      const undecided = new Overloaded('The database has not answered yet; ask again with the same idempotency key.')
      timer = globalThis.setTimeout(() => item.reject(undecided), outcomePatienceMs)
    }, boardingPatienceMs)
    try {
      return await outcome
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Leaves with everything that this turn of the event loop brings: requests that arrived together, and what follows from
   * one commit. Left to the first of them, a flight would carry one item and the next few would wait for it.
   */
  #board(): void {
    if (this.#boarding || this.#underWay.size >= this.#flightsLimit || this.#queue.length === 0) return
    this.#boarding = true
    setImmediate(() => {
      this.#boarding = false
      this.#takeOff()
    })
  }

  #takeOff(): void {
    while (this.#underWay.size < this.#flightsLimit && this.#queue.length > 0) {
      const flight: Promise<void> = this.#flush(this.#queue.splice(0, seated(this.#queue, batchLimit))).finally(() => {
        this.#underWay.delete(flight)
        this.#board()
      })
      this.#underWay.add(flight)
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

  /** One attempt. */
  async #fly(items: readonly Item[]): Promise<Flight> {
    const { db, kinds, reactions, intake, instruments } = this.#o
    const startedAt = instruments.monotonic()
    const settle: (() => void)[] = []
    let batch: Batch | null = null
    let evidence: Evidence | null = null
    try {
      await db.fly(async (tx) => {
        batch = new Batch({ tx, at: instruments.now(), startedAt, kinds, reactions, intake })
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
        if (fate !== 'committed') for (const launch of (batch as Batch | null)?.launches ?? []) intake.giveBack(launch)
      }
      if (fate !== 'committed') return { kind: 'failed', error, isUndone: fate === 'aborted' }
    }
    return batch === null
      ? { kind: 'failed', error: new Error('The transaction ran nothing.'), isUndone: true }
      : { kind: 'committed', batch, settle }
  }

  /** `unknown`: the database is away for longer than anybody here may wait; whoever asked is told, and has its own fence. */
  async #fateOf(evidence: Evidence): Promise<Fate> {
    for (let attempt = 0; attempt < fateQuestionsLimit; attempt++) {
      try {
        const fate = await fateOf(this.#o.db.pool, evidence)
        if (fate !== 'unknown') return fate
      } catch (error) {
        if (!isOutage(error)) throw error
      }
      await setTimeout(outagePauseMs * 2 ** attempt)
    }
    return 'unknown'
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
  const asked = {
    effects: operate(batch, calls, settle),
    onlySpawn: calls.every(({ operation }) => operation?.onlySpawns === true),
  }
  const stepping = items.flatMap((item) => (item.step === null ? [] : [{ item, step: item.step }]))
  const results = await batch.run(
    stepping.map(({ step }) => step),
    asked,
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
