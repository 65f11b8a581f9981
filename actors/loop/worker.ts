/**
 * Whoever does the work: claims what is due, begins it after the commit that says so, renews its lease, has its outcome
 * reported (outcomes.ts), and at the end gives back what may be repeated. One per process. Does not decide what an outcome means
 * (machines/) and never does work twice by itself: what follows from an interruption is the machine's word.
 */
import { hostname } from 'node:os'
import { actorKey } from '../../persistence/actors.ts'
import { AstrayLooks } from '../../persistence/astray.ts'
import type { Database } from '../../persistence/database.ts'
import {
  claimFor,
  postponeActor,
  releaseRepeatable,
  releaseUnbegun,
  type DueActor,
  type LeaseOf,
} from '../../persistence/leases.ts'
import { isOutage } from '../../persistence/outage.ts'
import type { Report } from '../../domain/fact.ts'
import { Beforehand } from './beforehand.ts'
import { Bell } from './bell.ts'
import { concerns, type Subjects } from './changes.ts'
import { workEnded, type WorkEnded } from '../diagnostics.ts'
import { PassedOver } from './passed-over.ts'
import { Postponements } from './postponements.ts'
import { Room } from './room.ts'
import { ActorGone, type Intake, type Launch, type Seat, type Step } from './step.ts'
import { isDoubted, type Done, type Held, type Kinds } from './kinds.ts'
import { isTrusted, LeaseLost, Leases, PutOff, type HeldLease } from './lease.ts'
import { Outcomes } from './outcomes.ts'
import { ifPossible, repeated, whileHeld } from './outlast.ts'
import type { Log } from '../log.ts'
import type { Instruments, Runtime } from './runtime.ts'
import { UnheardClaims } from './unheard-claims.ts'
import { endTurns, turnTaking } from './turns.ts'

export interface WorkerOptions {
  readonly db: Database
  readonly kinds: Kinds
  readonly instruments: Instruments
  readonly log: Log
}

/** How long a drain waits for work that must not be repeated. */
const drainMs = 10_000
const passesLimit = 50
/** Who brings what an agent said may hold up others meanwhile: large texts take turns (threads/heavy-turns.ts). */
const recordMs = 10_000

export class Worker implements Intake {
  /** Names this process in leases, for people: it decides nothing but who is alive on an embedded database. */
  readonly owner: string
  readonly leases: Leases
  readonly #o: WorkerOptions
  readonly #looks = new AstrayLooks()
  readonly #room: Room
  readonly #runtime: () => Runtime
  readonly #outcomes: Outcomes
  readonly #beforehand: Beforehand
  readonly #working = new Set<Promise<unknown>>()
  readonly #claiming = new Set<Promise<unknown>>()
  readonly #bells = new Map<string, Bell>()
  readonly #postponements = new Postponements()
  readonly #unheard = new UnheardClaims()
  readonly #passedOver = new PassedOver()
  /** Kinds of which something due may wait in its row for room here. */
  readonly #crowded = new Set<string>()
  #state: 'closed' | 'open' | 'draining' = 'closed'
  /** A drain has waited for as long as it does. */
  #isLate = false
  #unwatch: (() => void) | null = null

  /** `runtime` is asked for when it is needed: the two know each other. */
  constructor(options: WorkerOptions, runtime: () => Runtime) {
    this.#o = options
    this.leases = new Leases({ turnTaking: turnTaking(options.kinds), isAlone: options.db.profile === 'pglite' })
    this.#room = new Room(options.kinds, this.leases)
    this.#runtime = runtime
    this.#beforehand = new Beforehand(options.db)
    this.#outcomes = new Outcomes({
      isOurs: (lease) => this.leases.isOurs(lease, options.instruments.monotonic()),
      isGivenBack: (lease) => this.#isGivenBack(lease),
      step: (step) => runtime().step(step),
      log: options.log,
    })
    this.owner = `${hostname()}/${process.pid}/${options.instruments.newToken().slice(-8)}`
  }

  /** From now on work is taken; before, everything that becomes due waits in its row. */
  open(): void {
    if (this.#state !== 'closed') return
    this.#state = 'open'
    this.#unwatch = this.leases.watch(() => this.#o.instruments.monotonic())
  }

  /** Whether such work would begin here at once. */
  hasRoom(seat: Seat): boolean {
    return this.#state === 'open' && this.#room.has(seat)
  }

  takeRoom(seat: Seat): boolean {
    if (!this.hasRoom(seat)) {
      this.#crowded.add(seat.kind)
      return false
    }
    this.#room.reserve(seat, 1)
    return true
  }

  newToken(): string {
    return this.#o.instruments.newToken()
  }

  giveBack(launch: Launch): void {
    if (launch.reserved) this.#room.reserve({ ...launch, kind: launch.ref.kind }, -1)
  }

  // --- doing work -----------------------------------------------------------------------------------------------------

  /** Begins work whose commit was acknowledged; a process that drains gives it back instead. */
  launch(launch: Launch): void {
    this.giveBack(launch)
    this.#begin(launch)
  }

  /**
   * Nothing of it was done, so that nobody has to doubt it: it is as if it had never begun, here or for whoever comes. An outage is outlasted
   * for as long as the lease is trusted and a drain waits, for the row says until then that it has begun; by its token nobody else's is
   * given back. It keeps its place meanwhile.
   */
  async #giveUp(lease: HeldLease, pauseMs = 0): Promise<'given back'> {
    const { ref, work, abort } = lease
    lease.isGoingBack = true
    const isHeld = (): boolean => !this.#isLate && isTrusted(lease, this.#o.instruments.monotonic())
    try {
      const release = () => releaseUnbegun(this.#o.db.pool, [lease], pauseMs)
      await whileHeld({ signal: abort.signal, isHeld }, release)
    } catch (error) {
      // Then the lease runs out by itself, and the machine hears `interrupted`.
      const fields = { err: error, actor: actorKey(ref), work }
      if (isOutage(error)) this.#o.log.warn(fields, 'work could not be given back')
      else this.#o.log.error(fields, 'work could not be given back')
    }
    return 'given back'
  }

  #begin(launch: Launch): void {
    const { ref, token, work, lane, isDoubted, trustedFrom } = launch
    const { leaseMs } = this.#room.kind(ref.kind)
    const lease = this.leases.hold({ ref, token, work, lane, isDoubted, leaseMs, trustedFrom })
    const done: Promise<unknown> = this.#perform(launch, lease).finally(() => {
      this.leases.drop(lease, this.#o.instruments.monotonic())
      this.#working.delete(done)
      // Only where somebody was turned away: a claim for every piece of work that ends is a statement a command, for nothing.
      if (this.#crowded.has(ref.kind)) this.nudge(ref.kind)
    })
    this.#working.add(done)
  }

  async #perform(launch: Launch, lease: HeldLease): Promise<void> {
    const { instruments } = this.#o
    const startedAt = instruments.monotonic()
    const end = await this.#endOf(launch, lease)
    const { ref, work } = launch
    workEnded.publish({ kind: ref.kind, work, end, seconds: (instruments.monotonic() - startedAt) / 1000 })
  }

  async #endOf(launch: Launch, lease: HeldLease): Promise<WorkEnded['end']> {
    const { ref, work, token } = launch
    const { work: handlers, repeatable } = this.#room.kind(ref.kind)
    const [handler, isRepeatable] = [handlers[work], repeatable.has(work)]
    const fields = { actor: actorKey(ref), work }
    const isHeld = (): boolean => isTrusted(lease, this.#o.instruments.monotonic())
    const hold = { signal: lease.abort.signal, isHeld }
    // The process may have stood still between the commit and this line: then somebody else may hold the lease. A drain begins nothing.
    if (this.#state === 'draining' || !isHeld()) return this.#giveUp(lease)
    const under = { ref, lease: { token, work }, cause: 'worker' }
    const record = async (report: Report): Promise<void> => {
      lease.busyAt = this.#o.instruments.monotonic()
      const step = { ...under, event: null, told: [{ type: 'agent.reported' as const, report }] }
      // An agent says it once: what is known to be undone is written again, before anything is begun anew for it.
      const delays = (err: unknown): boolean =>
        isOutage(err) && this.#runtime().isUndone(err) && !lease.turn.signal.aborted
      const waits = (err: unknown): void =>
        this.#o.log.warn({ ...fields, err }, 'an outage puts off what an agent said')
      await whileHeld(hold, () => this.#runtime().step(step), { longestMs: recordMs, delays, waits })
      await this.leases.renewLocked(lease, this.#o.db, () => this.#o.instruments.monotonic())
    }
    let done: Done | Error
    try {
      if (!handler) throw new Error(`${ref.kind} has no work called "${work}".`)
      const busy = (): void => void (lease.busyAt = this.#o.instruments.monotonic())
      const beforehand: Held['beforehand'] = (waiting) => this.#beforehand.wait(lease, isHeld, waiting)
      const note: Held['note'] = (event) => ifPossible(this.#runtime().step({ ...under, event, told: [] }))
      const held: Held = { ...hold, turn: lease.turn.signal, news: lease.news, busy, beforehand, record, note }
      const begin = () => handler(launch, held)
      const met = (err: unknown): void => this.#o.log.warn({ ...fields, err }, 'an outage puts work off')
      done = await (isRepeatable ? repeated(ref, held, begin, met) : begin())
    } catch (error) {
      done = error instanceof Error ? error : new Error(String(error))
    }
    if (lease.abort.signal.aborted && isRepeatable) return 'given back'
    // Thrown by work that asked before its first byte and was told no: by its token it is given back, if it is still ours.
    if (done instanceof LeaseLost) return this.#giveUp(lease)
    if (done instanceof PutOff) return this.#giveUp(lease, done.pauseMs)
    return this.#outcomes.report(lease, done)
  }

  #isGivenBack({ ref, work, abort }: HeldLease): boolean {
    return this.#state === 'draining' && abort.signal.aborted && this.#room.kind(ref.kind).repeatable.has(work)
  }

  // --- claiming -------------------------------------------------------------------------------------------------------

  /** Wakes a kind's loop early. Polling is the truth; this only shortens the wait. */
  nudge(kind: string): void {
    this.#bells.get(kind)?.ring()
  }

  /** Claims what is due of one kind until the signal aborts. Rejects when the database fails: the supervisor restarts it. */
  async loop(kind: string, signal: AbortSignal): Promise<void> {
    const { pollMs } = this.#room.kind(kind)
    while (!signal.aborted) {
      for (let pass = 0; pass < passesLimit && !signal.aborted; pass++) {
        const claiming = this.#claim(kind)
        this.#claiming.add(claiming)
        const more = await claiming.finally(() => this.#claiming.delete(claiming))
        if (!more) break
      }
      await this.#bell(kind).wait(pollMs, signal)
    }
  }

  /** There is news of these agents: what is held of them for long is taken up again, by what is known of them now. */
  reconsider(agents: ReadonlySet<string>): void {
    for (const { lane, turn } of this.leases.list()) if (lane !== null && agents.has(lane)) turn.abort()
  }

  /** Of the agents for which something is held. */
  get lanes(): ReadonlySet<string> {
    return new Set(this.leases.list().flatMap(({ lane }) => lane ?? []))
  }

  /** Others may have ended these: who works at one of them looks. */
  tell(subjects: Subjects): void {
    for (const { ref, news } of this.leases.list()) if (concerns(subjects, ref.id)) news.ring()
  }

  #bell(name: string): Bell {
    const bell = this.#bells.get(name) ?? new Bell()
    this.#bells.set(name, bell)
    return bell
  }

  /** One pass. True when there may be more. */
  async #claim(name: string): Promise<boolean> {
    const kind = this.#room.kind(name)
    const { limit, fullLanes, isFullOfDoubt } = this.#room.opening(name)
    if (limit <= 0) this.#crowded.add(name)
    if (limit <= 0 || this.#state !== 'open') return false
    const promised = { kind: name, lane: null, isDoubted: false }
    this.#room.reserve(promised, limit)
    const isCrowded = this.#crowded.delete(name)
    try {
      const before = this.#o.instruments.monotonic()
      const leftOut = isFullOfDoubt ? [...fullLanes, 'doubted'] : fullLanes
      const reach = this.#passedOver.reach(name, leftOut, before)
      const claim = {
        kind: name,
        limit,
        leaseMs: kind.leaseMs,
        fullLanes,
        turns: isCrowded ? this.#room.turnsOf(name, before) : null,
        tokens: Array.from({ length: limit }, () => this.newToken()),
        unheard: this.#unheard.tokens(name, before),
        ...(kind.byCalendar ? { byCalendar: kind.byCalendar } : {}),
        ...(reach === undefined ? {} : { reachMs: reach }),
        ...(isFullOfDoubt && kind.doubt ? { exceptDoubted: kind.doubt.counts } : {}),
      }
      const held = (): string[] => [...this.leases.list().map((lease) => lease.token), ...this.#runtime().unheard]
      const due = await claimFor(this.#o.db, claim, { owner: this.owner, held, looks: this.#looks }).catch(
        (error: unknown) => {
          this.#crowded.add(name)
          this.#unheard.lost(name, claim.tokens, this.#o.instruments.monotonic() + kind.leaseMs)
          throw error
        },
      )
      const mayBeMore = due.length === limit
      if (mayBeMore || leftOut.length > 0) this.#crowded.add(name)
      const lastDueMs = mayBeMore ? Math.min(...due.map(({ dueMs }) => dueMs)) : null
      // Where lanes take turns, the last that was taken is not the one that fell due last.
      const isLastLatest = lastDueMs === null || claim.turns === null
      if (isLastLatest) this.#passedOver.note({ kind: name, leftOut, reach, at: before, lastDueMs })
      await Promise.all(due.map((actor) => this.#takeOrPostpone(actor, before)))
      return mayBeMore
    } finally {
      this.#room.reserve(promised, -limit)
    }
  }

  /** One row that cannot be moved must not stop its kind: it is logged and left alone for a while. */
  async #takeOrPostpone(actor: DueActor, claimedAt: number): Promise<void> {
    const key = actorKey(actor)
    try {
      await this.#take(actor, claimedAt)
      this.#postponements.forget(key)
    } catch (error) {
      if (isOutage(error)) throw error
      const pauseMs = this.#postponements.next(key)
      this.#o.log.error({ err: error, actor: key, pauseMs }, 'an actor cannot be moved and is left alone')
      await postponeActor(this.#o.db.pool, actor, pauseMs)
    }
  }

  async #take(actor: DueActor, trustedFrom: number): Promise<void> {
    const ref = { kind: actor.kind, id: actor.id }
    if (actor.claimed && actor.work !== null && actor.leaseToken !== null) {
      const { organizationId, work, lane, leaseToken: token } = actor
      const context = actor.snapshot.context
      if (!actor.begun) {
        const seat = { lane, isDoubted: isDoubted(this.#room.kind(ref.kind), context), reserved: false }
        return this.#begin({ ref, organizationId, context, work, token, trustedFrom, ...seat })
      }
      await this.#move({ ref, event: { type: 'interrupted' }, told: [], lease: { token, work }, cause: 'worker' })
    }
    // Due by the database's clock, which put the row here; the process's own may be behind.
    for (const [id, timer] of Object.entries(actor.timers))
      if (timer.dueAt <= actor.seenAt)
        await this.#move({ ref, event: { type: id }, told: [], lease: null, cause: 'timer', dueBy: actor.seenAt })
  }

  async #move(step: Step): Promise<void> {
    try {
      await this.#runtime().step(step)
    } catch (error) {
      // Somebody else moved it first.
      if (!(error instanceof LeaseLost) && !(error instanceof ActorGone)) throw error
    }
  }

  /** Renews leases until the signal aborts. */
  async keepLeases(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.leases.renewDue(this.#o.db, () => this.#o.instruments.monotonic())
      await endTurns(this.#o.db, this.#o.kinds, this.leases, this.#o.instruments.monotonic())
      await this.#bell('leases').wait(1000, signal)
    }
  }

  // --- ending ---------------------------------------------------------------------------------------------------------

  /**
   * Takes no more work, gives back what may be repeated, and waits for the rest: a delivery that is under way ends with its
   * real outcome, or as `uncertain` when it takes longer than 10 s. What is given back ends at once, whatever it waits for or has read,
   * but for a commit that is under way: nothing uses the threads or the database after this.
   */
  async drain(): Promise<void> {
    this.#state = 'draining'
    this.#beforehand.end()
    await Promise.allSettled(this.#claiming)
    const repeatable = this.leases.list().filter(({ ref, work }) => this.#room.kind(ref.kind).repeatable.has(work))
    for (const lease of repeatable) lease.abort.abort(new LeaseLost(lease.ref))
    // From now: a database that is slow to take leases back takes nothing from what is left of an orchestrator's patience.
    const late = setTimeout(() => {
      this.#isLate = true
      for (const lease of this.leases.list()) lease.abort.abort(new LeaseLost(lease.ref))
    }, drainMs)
    let isLeft: boolean
    try {
      isLeft = await this.#giveBack(repeatable)
      while (this.#working.size > 0) await Promise.all(this.#working)
      await this.#runtime().idle()
      // What the last commits would have begun is on its way back.
      await Promise.all(this.#working)
    } finally {
      clearTimeout(late)
    }
    this.#unwatch?.()
    // A commit of theirs that was under way had its row locked, and is over now.
    if (isLeft) await this.#giveBack(repeatable)
  }

  /** Resolves with whether something is left that another try may give back. */
  async #giveBack(repeatable: readonly LeaseOf[]): Promise<boolean> {
    try {
      return (await releaseRepeatable(this.#o.db.pool, repeatable)) < repeatable.length
    } catch (error) {
      // Then these leases run out by themselves; deliveries that are under way are waited for all the same.
      if (!isOutage(error)) throw error
      this.#o.log.warn({ err: error }, 'the database is away while draining')
      return false
    }
  }
}
