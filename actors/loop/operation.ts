/**
 * What callers ask of a commit: steps, and operations that the runtime does for many of them at once. Owns their shapes and how a
 * batch is filled with them; not who waits for whom (departures.ts), and not what becomes of a commit (runtime.ts).
 */
import type { ActorBatch } from '../../persistence/actors.ts'
import type { Connection } from '../../persistence/connection.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { Outage } from '../../persistence/outage.ts'
import type { Batch } from './batch.ts'
import type { BatchContext } from './kinds.ts'
import type { Effects, Step } from './step.ts'

/** Something the runtime does for many callers in one statement, such as accepting commands. */
export interface Operation<Input, Result> {
  readonly name: string
  /** For one that only brings new actors and can be asked for again: the way it goes first, in one exchange. */
  readonly atOnce?: (batch: BatchContext, inputs: readonly Input[]) => AtOnce<Result>
  /**
   * After an attempt at once of which not everything was heard, before the longer way: what has to be asked again, in a transaction of
   * its own. What it cannot learn, `run` does without.
   */
  readonly askAgain?: (db: Pick<Connection, 'any'>, inputs: readonly Input[]) => Promise<void>
  /** Of an input that an attempt at once did not write: an expected no that is known by now; null: it goes the longer way. */
  readonly refusal?: (input: Input) => Error | null
  /** Characters that an input has the commit write, whoever said them; absent: never many (flight-weight.ts). */
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

/** An operation that waits for no answer before it writes: what stands in an input's way is found by writing. */
export interface AtOnce<Result> {
  /** What each input is answered, and what follows from it, if nothing stands in its way. Each spawns. */
  readonly answers: readonly Performed<Result>[]
  /**
   * One exchange: the inputs and their actors, without those that something stands in the way of. Returns the ids of the
   * actors that were written; the others' inputs go the longer way, `run`.
   */
  readonly write: (actors: ActorBatch, tx: Flight) => Promise<ReadonlySet<string>>
}

/** The store is not keeping up: its sentence says what the caller may rely on. */
export class Overloaded extends Outage {
  override readonly name = 'Overloaded'
  constructor(message = 'The database is not keeping up; nothing was accepted.') {
    super(message)
  }
}

/** Nobody can tell whether it was accepted. */
export class Undecided extends Overloaded {
  constructor() {
    super('The database has not answered yet; ask again with the same idempotency key.')
  }
}

/** What somebody waits for: a step, or an input of an operation. */
export interface Item {
  /** Puts itself into a batch's steps or operations. */
  readonly step: Step | null
  readonly operation: OperationCall | null
  /** Characters that it has the commit write. */
  readonly weight: number
  /**
   * What came of an attempt at once: nothing yet; something stood in its way, such as its key, which may be under way elsewhere;
   * nobody acknowledged it, so it may be there.
   */
  earlier: 'none' | 'hindered' | 'unheard'
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** An operation and an input, typed where it is called and run where the type is forgotten. */
export interface OperationCall {
  readonly name: string
  readonly weight: number
  readonly input: unknown
  readonly run: (batch: BatchContext, inputs: readonly unknown[]) => Promise<readonly Answer<unknown>[]>
  readonly atOnce: ((batch: BatchContext, inputs: readonly unknown[]) => AtOnce<unknown>) | null
  readonly askAgain: ((db: Pick<Connection, 'any'>, inputs: readonly unknown[]) => Promise<void>) | null
  readonly refusal: ((input: unknown) => Error | null) | null
}

/** Operations, each once for all its inputs, and every step; then whatever follows from either. */
export async function fill(batch: Batch, items: readonly Item[], settle: (() => void)[]): Promise<void> {
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
      // The attempt before may still be under way, and what it finds is not what this one found.
      if (answer.kind === 'refused')
        settle.push(() => item.reject(item.earlier === 'unheard' ? new Undecided() : answer.refusal))
      else {
        effects.push(answer.effects)
        settle.push(() => item.resolve(answer.result))
      }
    })
  }
  return effects
}

/** Per item what was performed, or an expected no; null for those that go the longer way. All are of the same operation. */
export async function performAtOnce(
  batch: Batch,
  items: readonly Item[],
): Promise<readonly (Performed<unknown> | Error | null)[]> {
  const inputs = items.map(({ operation }) => operation?.input)
  const asked = items[0]?.operation?.atOnce?.(batch.context, inputs)
  if (asked?.answers.length !== items.length) throw new Error('An operation did not answer all of its inputs at once.')
  const written = await batch.commitAtOnce(
    asked.answers.map(({ effects }) => effects),
    asked.write,
  )
  const isWritten = ({ effects: { spawns = [] } }: Performed<unknown>): boolean =>
    spawns.length > 0 && spawns.every(({ ref }) => written.has(ref.id))
  return asked.answers.map((answer, i) => (isWritten(answer) ? answer : refusalOf(items[i])))
}

/** What is known to be refused of an item, without its longer way. */
export const refusalOf = (item: Item | undefined): Error | null =>
  item?.operation?.refusal?.(item.operation.input) ?? null
