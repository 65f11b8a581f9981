/**
 * Whoever does the work: claims what is due, begins it after the commit that says so, renews its lease, reports its
 * outcome, and at the end gives back what may be repeated. One per process. Does not decide what an outcome means
 * (machines/) and never retries work by itself: what follows from an interruption is the machine's word.
 */
import { hostname } from 'node:os'
import { claimActors, releaseUnbegun, type DueActor } from '../persistence/actors.ts'
import type { Database } from '../persistence/database.ts'
import type { Report } from '../domain/fact.ts'
import { Bell } from './bell.ts'
import { ActorGone, type Intake, type Launch } from './batch.ts'
import type { Done, Kind, Kinds } from './kinds.ts'
import { LeaseLost, Leases, type HeldLease } from './lease.ts'
import type { Instruments, Runtime } from './runtime.ts'

/** Warnings and errors of the background; never with payloads or secrets. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

export interface WorkerOptions {
  readonly db: Database
  readonly kinds: Kinds
  readonly instruments: Instruments
  readonly log: Log
}

/** How long a drain waits for work that must not be repeated. */
const drainMs = 10_000
const passesLimit = 50

export class Worker implements Intake {
  /** Names this process in leases, for people: it decides nothing but who is alive on an embedded database. */
  readonly owner: string
  readonly leases = new Leases()
  readonly #o: WorkerOptions
  readonly #runtime: () => Runtime
  readonly #working = new Map<string, Promise<void>>()
  readonly #reserved = new Map<string, number>()
  readonly #bells = new Map<string, Bell>()
  /** Kinds of which something due may wait in its row for room here. */
  readonly #crowded = new Set<string>()
  #open = false

  /** `runtime` is asked for when it is needed: the two know each other. */
  constructor(options: WorkerOptions, runtime: () => Runtime) {
    this.#o = options
    this.#runtime = runtime
    this.owner = `${hostname()}/${process.pid}/${options.instruments.newToken().slice(-8)}`
  }

  /** From now on work is taken; before, everything that becomes due waits in its row. */
  open(): void {
    this.#open = true
  }

  // --- Intake: leases taken in the same commit that makes work due --------------------------------------------------------

  /** Whether work of this kind would begin here at once. */
  hasRoom(kind: string): boolean {
    return this.#open && this.#room(kind) > 0
  }

  takeRoom(kind: string): boolean {
    if (!this.hasRoom(kind)) {
      this.#crowded.add(kind)
      return false
    }
    this.#reserved.set(kind, (this.#reserved.get(kind) ?? 0) + 1)
    return true
  }

  newToken(): string {
    return this.#o.instruments.newToken()
  }

  giveBack(launch: Launch): void {
    if (launch.reserved) this.#reserved.set(launch.ref.kind, (this.#reserved.get(launch.ref.kind) ?? 1) - 1)
  }

  #room(kind: string): number {
    return this.#kind(kind).concurrency - this.leases.count(kind) - (this.#reserved.get(kind) ?? 0)
  }

  #kind(name: string): Kind {
    const kind = this.#o.kinds[name]
    if (!kind) throw new Error(`There is no kind of actor called "${name}".`)
    return kind
  }

  // --- doing work ---------------------------------------------------------------------------------------------------------

  /** Begins work whose commit was acknowledged. */
  launch(launch: Launch): void {
    this.giveBack(launch)
    this.#begin(launch, this.#o.instruments.monotonic())
  }

  #begin(launch: Omit<Launch, 'reserved'>, trustedFrom: number): void {
    const { ref, token, work } = launch
    const lease = this.leases.hold({ ref, token, work, leaseMs: this.#kind(ref.kind).leaseMs, trustedFrom })
    const done = this.#perform(launch, lease).finally(() => {
      if (this.#working.get(token) === done) this.#working.delete(token)
      // Only where somebody was turned away: a claim for every piece of work that ends is a statement a command, for nothing.
      if (this.#crowded.has(ref.kind)) this.nudge(ref.kind)
    })
    this.#working.set(token, done)
  }

  async #perform(launch: Omit<Launch, 'reserved'>, lease: HeldLease): Promise<void> {
    const { ref, work, token } = launch
    const handler = this.#kind(ref.kind).work[work]
    const record = async (report: Report): Promise<void> => {
      await this.#runtime().step({
        ref,
        event: null,
        told: [{ type: 'agent.reported', report }],
        lease: { token, work },
        cause: 'worker',
      })
    }
    let done: Done | Error
    try {
      if (!handler) throw new Error(`${ref.kind} has no work called "${work}".`)
      done = await handler(launch, { signal: lease.abort.signal, record })
    } catch (error) {
      done = error instanceof Error ? error : new Error(String(error))
    }
    // The lease is dropped before the report: the report may begin the next work under the same token.
    this.leases.drop(token)
    if (lease.abort.signal.aborted && this.#kind(ref.kind).repeatable.has(work)) return
    if (done instanceof LeaseLost) return
    await this.#report(lease, done)
  }

  async #report(lease: HeldLease, done: Done | Error): Promise<void> {
    const { ref, work, token } = lease
    if (done instanceof Error) this.#o.log.error({ err: done, actor: `${ref.kind}/${ref.id}`, work }, 'work failed')
    const event =
      done instanceof Error
        ? { type: `xstate.error.actor.${work}`, error: done.message }
        : { type: `xstate.done.actor.${work}`, output: done.output }
    const told = done instanceof Error ? [] : (done.told ?? [])
    try {
      await this.#runtime().step({ ref, event, told, lease: { token, work }, cause: 'worker' })
    } catch (error) {
      // The outcome could not be recorded: the lease runs out and the machine hears `interrupted`, which is the truth.
      const fields = { err: error, actor: `${ref.kind}/${ref.id}`, work }
      if (error instanceof LeaseLost) this.#o.log.warn(fields, 'a late result was discarded')
      else this.#o.log.error(fields, 'an outcome could not be recorded')
    }
  }

  // --- claiming -------------------------------------------------------------------------------------------------------------

  /** Wakes a kind's loop early. Polling is the truth; this only shortens the wait. */
  nudge(kind: string): void {
    this.#bells.get(kind)?.ring()
  }

  nudgeAll(): void {
    for (const bell of this.#bells.values()) bell.ring()
  }

  /** Claims what is due of one kind until the signal aborts. Rejects when the database fails: the supervisor restarts it. */
  async loop(kind: string, signal: AbortSignal): Promise<void> {
    const { pollMs } = this.#kind(kind)
    while (!signal.aborted) {
      for (let pass = 0; pass < passesLimit && !signal.aborted; pass++) if (!(await this.#claim(kind))) break
      await this.#bell(kind).wait(pollMs, signal)
    }
  }

  #bell(name: string): Bell {
    const bell = this.#bells.get(name) ?? new Bell()
    this.#bells.set(name, bell)
    return bell
  }

  /** One pass. True when there may be more. */
  async #claim(name: string): Promise<boolean> {
    const kind = this.#kind(name)
    const room = Math.min(kind.claimLimit, this.#room(name))
    if (room <= 0) return false
    this.#crowded.delete(name)
    const before = this.#o.instruments.monotonic()
    const exclusive = this.#o.db.profile === 'pglite'
    const claim = { kind: name, limit: room, leaseMs: kind.leaseMs }
    const held = this.leases.list().map((lease) => lease.token)
    const due = await claimActors(this.#o.db.pool, claim, { owner: this.owner, exclusive, held })
    if (due.length === room) this.#crowded.add(name)
    await Promise.all(due.map((actor) => this.#take(actor, before)))
    return due.length === room
  }

  async #take(actor: DueActor, claimedAt: number): Promise<void> {
    const ref = { kind: actor.kind, id: actor.id }
    const now = this.#o.instruments.now().toISOString()
    if (actor.claimed && actor.work !== null && actor.leaseToken !== null) {
      const { organizationId, work, leaseToken: token } = actor
      const launch = { ref, organizationId, context: actor.snapshot.context, work, token }
      if (!actor.begun) return this.#begin(launch, claimedAt)
      await this.#move({ ref, event: { type: 'interrupted' }, told: [], lease: { token, work }, cause: 'worker' })
    }
    for (const [id, timer] of Object.entries(actor.timers))
      if (timer.dueAt <= now) await this.#move({ ref, event: { type: id }, told: [], lease: null, cause: 'timer' })
  }

  async #move(step: Parameters<Runtime['step']>[0]): Promise<void> {
    try {
      await this.#runtime().step(step)
    } catch (error) {
      // Somebody else moved it first. Anything worse is the loop's to fail on.
      if (!(error instanceof LeaseLost) && !(error instanceof ActorGone)) throw error
    }
  }

  /** Renews and distrusts leases until the signal aborts. */
  async keepLeases(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.leases.renewDue(this.#o.db, () => this.#o.instruments.monotonic())
      await this.#bell('leases').wait(1000, signal)
    }
  }

  // --- ending ---------------------------------------------------------------------------------------------------------------

  /**
   * Takes no more work, gives back what may be repeated, and waits for the rest: a delivery that is under way ends with its
   * real outcome, or as `uncertain` when it takes longer than 10 s.
   */
  async drain(): Promise<void> {
    this.#open = false
    const repeatable = this.leases.list().filter(({ ref, work }) => this.#kind(ref.kind).repeatable.has(work))
    for (const lease of repeatable) lease.abort.abort(new LeaseLost(lease.ref))
    await releaseUnbegun(this.#o.db.pool, repeatable)
    const late = setTimeout(() => {
      for (const lease of this.leases.list()) lease.abort.abort(new LeaseLost(lease.ref))
    }, drainMs)
    try {
      while (this.#working.size > 0) await Promise.all(this.#working.values())
    } finally {
      clearTimeout(late)
    }
    await this.#runtime().idle()
  }
}
