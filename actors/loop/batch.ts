/**
 * Many steps as one commit. The meaning of a step is in `Batch.#move`, which reads as if it were alone: lock, transition,
 * plan. This file only lets N of them share one lock statement, one write statement and one commit, because a naive
 * transaction a transition is thirteen times slower (docs/adr/0001). Does not decide when to flush (actors/loop/runtime.ts).
 */
import { isDeepStrictEqual } from 'node:util'
import type { AnyMachineSnapshot, EventObject } from 'xstate'
import type {
  ActorBatch,
  ActorRef,
  ActorWrite,
  Evidence,
  LogEntry,
  OutboxEntry,
  Snapshot,
} from '../../persistence/actors.ts'
import { actorKey, findArchived, lockActors, writeActors } from '../../persistence/actors.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { outboxData, type Fact, type ToldFact } from '../../domain/fact.ts'
import type { StateValue } from '../../domain/chart.ts'
import type { BatchContext, Kind, Kinds } from './kinds.ts'
import { LeaseLost } from './lease.ts'
import { leaseForWork, livingOf, newborn, rowOf, type Living } from './living.ts'
import { foresee } from '../observe.ts'
import type { Missed } from './missed.ts'
import { planFrom, type Plan } from './plan.ts'
import { birthOf, moveOf, UnknownState } from './transition.ts'
import { ActorGone, type Effects, type Intake, type Launch, type Spawn, type Step } from './step.ts'
import type { Reactions } from './reaction.ts'
import { isRoutine } from './routine.ts'

const wavesLimit = 8

export class Batch {
  readonly context: BatchContext
  readonly launches: Launch[] = []
  /** Names this batch in the outbox and in the log. */
  readonly id: string
  /** Kinds of which something due stays in its row, for there is no room here. */
  readonly leftDue = new Set<string>()
  readonly #tx: Flight
  readonly #kinds: Kinds
  readonly #reactions: Reactions
  readonly #intake: Intake
  readonly #missed: Missed
  readonly #startedAt: number
  readonly #living = new Map<string, Living>()
  readonly #finished = new Set<string>()
  readonly #log: LogEntry[] = []
  readonly #outbox: OutboxEntry[] = []
  /**
   * When the transaction began, by the database's clock. Timers are set by it and ring by it, as leases are granted and taken
   * over by it: the clocks of machines differ, and one that is ahead would have its own timers rung late by all others.
   */
  #clock = new Date(0)

  /** `startedAt`: monotonic milliseconds before the transaction began. */
  constructor(options: {
    tx: Flight
    at: Date
    startedAt: number
    kinds: Kinds
    reactions: Reactions
    intake: Intake
    missed: Missed
  }) {
    this.#startedAt = options.startedAt
    const { tx, at, intake } = options
    this.id = intake.newToken()
    this.#tx = tx
    const isAtWork = (ref: ActorRef, work: string): boolean => {
      const actor = this.#living.get(actorKey(ref))
      return actor?.work === work && actor.lease.kind !== 'none'
    }
    const own = { tasks: new Map(), writes: [], replies: new Map() }
    this.context = { tx, at, newToken: () => intake.newToken(), isAtWork, ...own }
    this.#kinds = options.kinds
    this.#reactions = options.reactions
    this.#intake = options.intake
    this.#missed = options.missed
  }

  /** Runs a wave of steps and whatever follows from their facts. Returns each step's snapshot, or why it did nothing. */
  async run(steps: readonly Step[], effects: readonly Effects[]): Promise<readonly (Snapshot | Error)[]> {
    await this.#lockFor(steps, effects)
    // Answered with the locks. Where nothing follows, nothing was asked of the database, and no transaction is begun for it.
    if (steps.length + effects.length > 0) this.#clock = new Date(await this.#tx.now())
    const told: ToldFact[] = []
    const results = steps.map((step) => this.#attempt(step, told))
    for (const effect of effects) this.#apply(effect, told)
    await this.#settle(told)
    return results
  }

  /** Whatever follows from facts, until nothing does. */
  async #settle(told: ToldFact[]): Promise<void> {
    let news = told
    for (let wave = 0; news.length > 0; wave++) {
      if (wave === wavesLimit) throw new Error(`Reactions did not come to rest after ${wavesLimit} waves.`)
      news = await this.#react(news)
    }
  }

  /**
   * Tasks before actors, actors in one order, all of a batch at once: everybody who locks both does so, and nobody waits in
   * a circle.
   */
  async #lockFor(steps: readonly Step[], effects: readonly Effects[]): Promise<void> {
    const reported = effects.flatMap(({ told = [] }) => told.map(({ fact }) => fact))
    const foreseen = await foresee(this.context, [...steps.flatMap((step) => step.told), ...reported])
    await this.#lock([...steps.map((s) => s.ref), ...effects.flatMap(refsOf), ...foreseen])
  }

  /**
   * Spawns, writes and commits in one exchange: `write` leaves out whatever something stands in the way of. Returns the ids of
   * the actors that were written; only their work is launched.
   */
  async commitAtOnce(
    effects: readonly Effects[],
    write: (actors: ActorBatch, tx: Flight) => Promise<ReadonlySet<string>>,
  ): Promise<ReadonlySet<string>> {
    // The database's clock is not known before all is over, and whoever would set a timer by this one fails.
    this.#clock = new Date(Number.NaN)
    this.#tx.unnamed()
    const told: ToldFact[] = []
    for (const effect of effects) this.#apply(effect, told)
    await this.#settle(told)
    const moved = this.#moved()
    const born = new Set(moved.map(({ ref }) => ref.id))
    // What is written here is what `write` knows by the ids of those that are born.
    const others = moved.some(({ fresh }) => !fresh) || this.#outbox.some(({ subjectId }) => !born.has(subjectId))
    if (others || this.context.writes.length > 0)
      throw new Error('An operation at once did more than bring new actors.')
    for (const actor of moved) this.#beginWork(actor)
    const [written] = await Promise.all([write(this.#rows(), this.#tx), this.#tx.commit()])
    this.keepOnly([...written])
    return written
  }

  /** Only these actors of it are there, or none: nothing is launched for the others, and nobody is told of them. */
  keepOnly(ids: readonly string[]): void {
    const kept = new Set(ids)
    for (const launch of this.launches.splice(0))
      if (kept.has(launch.ref.id)) this.launches.push(launch)
      else this.#intake.giveBack(launch)
    this.#outbox.splice(0, Infinity, ...this.#outbox.filter(({ subjectId }) => kept.has(subjectId)))
    if (kept.size === 0) this.leftDue.clear()
  }

  /** Of whom there is news, by organization. */
  get subjects(): ReadonlyMap<string, ReadonlySet<string>> {
    const told = Map.groupBy(this.#outbox, ({ organizationId }) => organizationId)
    return new Map([...told].map(([id, entries]) => [id, new Set(entries.map(({ subjectId }) => subjectId))]))
  }

  /** How many facts of each kind are in its outbox. */
  get facts(): ReadonlyMap<string, number> {
    return new Map([...Map.groupBy(this.#outbox, ({ kind }) => kind)].map(([kind, { length }]) => [kind, length]))
  }

  /** Whom it moved. */
  get moved(): readonly ActorRef[] {
    return this.#moved().map(({ ref }) => ref)
  }

  /** Writes everything, once, and commits. `prove` learns what the commit is known by before COMMIT is sent. */
  async commit(prove: (evidence: Evidence) => void): Promise<void> {
    const moved = this.#moved()
    for (const actor of moved) this.#beginWork(actor)
    const projecting = Object.entries(this.#kinds).flatMap(([name, { project }]) => {
      const mine = project ? moved.filter((actor) => actor.ref.kind === name) : []
      return project && mine.length > 0 ? [project(this.context, mine)] : []
    })
    const others = Promise.all([...this.context.writes.map((write) => write()), ...projecting])
    others.catch(() => undefined) // Awaited below, unless something else fails first.
    const [entry = null] = this.#log
    if (moved.length + this.#log.length + this.#outbox.length === 0)
      return void (await Promise.all([others, this.#tx.commit()]))
    const xid = await this.#tx.xid()
    const [first] = moved
    const known = { batchId: this.id, xid, entry, moved: first ? { ...first.ref, revision: first.revision } : null }
    prove({ ...known, number: null })
    const writing = writeActors(this.context.tx, this.#rows())
    // Where nothing was logged, a fact's number is the proof that lasts, and it must be known before COMMIT leaves.
    if (entry === null && this.#outbox.length > 0) prove({ ...known, number: await writing })
    await Promise.all([others, writing, this.#tx.commit()])
  }

  #moved(): readonly Living[] {
    return [...this.#living.values()].filter((actor) => actor.moved)
  }

  #rows(): ActorBatch {
    return {
      writes: this.#moved().map((actor) => rowOf(actor, this.#machine(actor.ref).version ?? '0')),
      log: this.#log,
      outbox: this.#outbox,
      batchId: this.id,
      at: this.context.at.toISOString(),
    }
  }

  async #lock(refs: readonly ActorRef[]): Promise<void> {
    const missing = new Map(refs.filter((ref) => !this.#living.has(actorKey(ref))).map((ref) => [actorKey(ref), ref]))
    for (const row of await lockActors(this.context.tx, [...missing.values()]))
      this.#living.set(actorKey(row), livingOf(row))
  }

  /** An expected no of one step must not fail its neighbours, so it is a value here. */
  #attempt(step: Step, told: ToldFact[]): Snapshot | Error {
    try {
      return this.#move(step, told)
    } catch (error) {
      if (error instanceof Error) return error
      throw error
    }
  }

  /** Moves one actor by one event. */
  #move(step: Step, told: ToldFact[]): Snapshot {
    const actor = this.#living.get(actorKey(step.ref))
    if (!actor || actor.snapshot.status === 'done') {
      if (step.lease) throw new LeaseLost(step.ref)
      throw new ActorGone(`${actorKey(step.ref)} is not alive.`)
    }
    const { lease } = step
    // A result that comes late, or twice, finds another token or other work: it is discarded.
    if (lease && (actor.lease.kind === 'none' || actor.lease.token !== lease.token || actor.work !== lease.work))
      throw new LeaseLost(step.ref)
    if (step.event) {
      const machine = this.#machine(step.ref)
      if (step.cause === 'timer' && !this.#rings(actor, step)) return actor.snapshot
      const { before, after, actions } = moveOf(machine, actor.snapshot, step.event)
      // What the state does not hear leaves no trace, so that a repeated signal is not a step.
      const heard =
        actions.length > 0 || after.context !== before.context || !isDeepStrictEqual(after.value, before.value)
      if (!heard && step.cause !== 'timer') {
        this.#tell(actor, step.told, told)
        return actor.snapshot
      }
      const fired = withoutTimer(actor.timers, step.event.type)
      const plan = planFrom(actions, { work: actor.work, timers: fired }, this.#clock)
      const logged = !isRoutine(before, after, plan, step.cause)
      this.#advance(actor, snapshotOf(after), plan, { ...step, logged })
      if (lease && plan.work !== null && plan.workChanged) actor.continuing = { token: lease.token }
      this.#tell(actor, plan.facts, told)
    }
    this.#tell(actor, step.told, told)
    return actor.snapshot
  }

  /** A timer that was cancelled or set anew since it was seen to be due does not ring. */
  #rings(actor: Living, { event, dueBy }: Step): boolean {
    const timer = event ? actor.timers[event.type] : undefined
    return timer !== undefined && timer.dueAt <= (dueBy ?? this.#clock.toISOString())
  }

  #spawn(spawn: Spawn, told: ToldFact[]): void {
    if (this.#living.has(actorKey(spawn.ref)) || this.#finished.has(actorKey(spawn.ref))) return
    const [first, actions] = birthOf(this.#machine(spawn.ref))
    const plan = planFrom(actions, { work: null, timers: {} }, this.#clock)
    const actor = newborn(spawn, snapshotOf(first), this.context.at.toISOString())
    this.#living.set(actorKey(spawn.ref), actor)
    this.#advance(actor, actor.snapshot, plan, { event: { type: 'xstate.init' }, cause: spawn.cause, logged: true })
    this.#tell(actor, plan.facts, told)
  }

  #advance(
    actor: Living,
    after: Snapshot,
    plan: Plan,
    step: { readonly event: EventObject | null; readonly cause: string; readonly logged: boolean },
  ): void {
    actor.snapshot = after
    actor.revision += 1
    actor.timers = after.status === 'done' ? {} : plan.timers
    actor.work = after.status === 'done' ? null : plan.work
    if (plan.workChanged || actor.work === null) {
      actor.workStartedAt = null
      actor.lease = { kind: 'none' }
      actor.continuing = null
    }
    actor.moved = true
    if (!step.logged) return
    this.#log.push({
      ...actor.ref,
      revision: actor.revision,
      machineVersion: this.#machine(actor.ref).version ?? '0',
      event: JSON.stringify(step.event),
      value: after.value,
      facts: plan.facts.map((fact) => fact.type),
      cause: step.cause,
    })
  }

  /** An actor that lived and finished is known as such, so that nothing spawns it again. */
  async #forgetFinished(effects: Effects): Promise<void> {
    const old = (effects.spawns ?? []).filter(({ ref, isNew }) => !isNew && !this.#living.has(actorKey(ref)))
    for (const ref of await findArchived(
      this.context.tx,
      old.map(({ ref }) => ref),
    ))
      this.#finished.add(actorKey(ref))
  }

  #tell(actor: Living, facts: readonly Fact[], told: ToldFact[]): void {
    for (const fact of facts) told.push({ organizationId: actor.organizationId, subjectId: actor.ref.id, fact })
  }

  #apply(effects: Effects, told: ToldFact[]): void {
    for (const spawn of effects.spawns ?? []) this.#spawn(spawn, told)
    for (const { ref, event } of effects.sends ?? []) {
      const result = this.#attempt({ ref, event, told: [], lease: null, cause: 'reaction' }, told)
      // What an agent has answered is not lost for a row that only another release can move.
      if (result instanceof UnknownState && mayMiss(this.#kinds[ref.kind], event)) this.#missed.tell(ref, event, result)
      else if (result instanceof Error && !(result instanceof ActorGone)) throw result
    }
    told.push(...(effects.told ?? []))
  }

  async #react(news: readonly ToldFact[]): Promise<ToldFact[]> {
    for (const { organizationId, subjectId, fact } of news) {
      const data = outboxData(fact)
      if (data === null) continue
      this.#outbox.push({ organizationId, subjectId, kind: fact.type, data })
    }
    const next: ToldFact[] = []
    for (const [type, reactions] of this.#reactions) {
      const mine = news.filter(({ fact }) => fact.type === type)
      if (mine.length === 0) continue
      for (const reaction of reactions) {
        const effects = await reaction(this.context, mine)
        await this.#lock(refsOf(effects))
        await this.#forgetFinished(effects)
        this.#apply(effects, next)
      }
    }
    return next
  }

  #beginWork(actor: Living): void {
    const kind = this.#kinds[actor.ref.kind]
    if (!kind) return
    const launch = leaseForWork(actor, kind, this.#intake, { at: this.context.at, startedAt: this.#startedAt })
    if (launch === 'leftDue') this.leftDue.add(actor.ref.kind)
    else if (launch !== null) this.launches.push(launch)
  }

  #machine(ref: ActorRef) {
    const kind = this.#kinds[ref.kind]
    if (!kind) throw new Error(`There is no kind of actor called "${ref.kind}".`)
    return kind.machine
  }
}

const mayMiss = (kind: Kind | undefined, { type }: EventObject): boolean =>
  kind?.mayMiss === 'anything' || (kind?.mayMiss?.has(type) ?? false)

/** Whose rows must be locked before the effects are applied. */
function refsOf({ spawns = [], sends = [] }: Effects): ActorRef[] {
  const unborn = new Set(spawns.filter((s) => s.isNew).map((s) => actorKey(s.ref)))
  return [...spawns, ...sends].map((each) => each.ref).filter((ref) => !unborn.has(actorKey(ref)))
}

function snapshotOf(state: AnyMachineSnapshot): Snapshot {
  // XState fails a machine that does not handle its work's error: a defect of the machine, which must not be stored.
  if (state.status === 'error') throw state.error
  return {
    value: state.value as StateValue,
    context: state.context as Record<string, unknown>,
    status: state.status === 'done' ? 'done' : 'active',
  }
}

/** A timer that rang is gone, whether or not its event moved the machine. */
function withoutTimer(timers: ActorWrite['timers'], eventType: string): ActorWrite['timers'] {
  if (!Object.hasOwn(timers, eventType)) return timers
  const { [eventType]: _, ...rest } = timers
  return rest
}
