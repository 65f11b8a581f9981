/**
 * The table of what lives: one row a kind of actor, with its machine, its work and its rhythm. The runtime reads it and
 * knows no noun by name. Does not implement any work (actors/command.ts, actors/subscription.ts).
 */
import type { AnyStateMachine, EventObject } from 'xstate'
import type { Fact, Report } from '../../domain/fact.ts'
import type { JsonText } from '../../domain/json-text.ts'
import type { ActorRef, Snapshot } from '../../persistence/actors.ts'
import type { Transaction } from '../../persistence/connection.ts'
import type { LockedTask } from '../../persistence/tasks.ts'
import type { Bell } from './bell.ts'

/** An actor whose work is being done under a lease. */
export interface LeasedActor {
  readonly ref: ActorRef
  readonly organizationId: string
  readonly context: Readonly<Record<string, unknown>>
  /** It has one of the places for what failed or was slow last (Kind.doubt). */
  readonly isDoubted: boolean
  /** What the spawner had in hand (Spawn); absent when the work begins later, by a claim. */
  readonly carry?: unknown
  /** Monotonic milliseconds before which its lease cannot have been granted, nor anything been read that it carries. */
  readonly trustedFrom: number
}

/** What long work is given: it must stop when `signal` aborts, for then somebody else may hold the lease. */
export interface Held {
  readonly signal: AbortSignal
  /** Aborts when others have waited for the place long enough: for work that can be taken up again (Kind.turnMs). */
  readonly turn: AbortSignal
  /** Rings when somebody else committed what ended its subject, or may have: for work that waits for others (Worker.tell). */
  readonly news: Pick<Bell, 'wait'>
  /** Says that its agent is at it although there is nothing to record yet: who is quiet gives way first (turns.ts). */
  busy(): void
  /**
   * A wait before anything is done: meanwhile the work counts as not begun, and its row says so. Rejects with LeaseLost where it is not to
   * begin, for the lease is lost or the process drains: whoever waits hears that by the signal. To be asked before the first effect only.
   */
  beforehand(waiting: (signal: AbortSignal) => Promise<void>): Promise<void>
  /** Whether the lease is trusted at this instant: to be asked right before what cannot be undone. */
  isHeld(): boolean
  /** Commits observations under the lease; rejects with LeaseLost when it is no longer ours. */
  record(report: Report): Promise<void>
  /** Tells the actor's machine how far the work is, under the lease, which goes on. For people only: what cannot be told now is left out. */
  note(event: EventObject): Promise<void>
}

/** `output` reaches the machine as the work's outcome; `told` is committed with it. */
export interface Done {
  readonly output: { readonly kind: string }
  readonly told?: readonly Fact[]
}

export type WorkHandler = (actor: LeasedActor, held: Held) => Promise<Done>

/** What one batch shares: its transaction, its instant, and what reactions leave for projections. */
export interface BatchContext {
  readonly tx: Transaction
  readonly at: Date
  readonly newToken: () => string
  /** Whether an actor that the batch has locked is at such work, as far as its row says. */
  readonly isAtWork: (ref: ActorRef, work: string) => boolean
  /** Tasks that the batch's reports name, locked before any actor: `foresee` puts them here. */
  readonly tasks: Map<string, LockedTask>
  /** Statements that leave with the batch's last ones: each asks for all it has to write at once, and waits for nothing in between. */
  readonly writes: (() => Promise<unknown>)[]
  /** The reply that a command brought, by command id; `observe` puts it here, the command's projection stores it. `remark`: what is to be said of it. */
  readonly replies: Map<string, { readonly taskId: string; readonly reply: JsonText; readonly remark: string | null }>
}

export interface Projected {
  readonly ref: ActorRef
  readonly snapshot: Snapshot
  /** Spawned in this batch: whoever did so may have written its row already. */
  readonly fresh: boolean
}

export interface Kind {
  readonly machine: AnyStateMachine
  readonly pollMs: number
  readonly leaseMs: number
  /** Pieces of work under way at once, a process. */
  readonly concurrency: number
  /** How many of them in one lane at most: agents that hang must leave room for the others (domain/shares.ts). */
  readonly laneLimit: number
  /**
   * Work that failed or was slow last, by any of these counts in its machine's context, has at most so many of the places: waiting for
   * those that hang takes none of the others from those that answer.
   */
  readonly doubt?: { readonly counts: readonly string[]; readonly places: number }
  /** Rows claimed at once. */
  readonly claimLimit: number
  /** How long work may keep its place while others wait for one (turns.ts); for ever, where it is not said. */
  readonly turnMs?: number
  /** Work that ends by itself soon after its turn, so that others are asked in its stead. */
  readonly unhurried?: ReadonlySet<string>
  /** What of that which it is sent may be lost: others look after its subject and make up for it, or nothing depends on it. */
  readonly mayMiss?: 'anything' | ReadonlySet<string>
  /** Its timers are dates that people chose, not waits: a clock that is set back puts them off. */
  readonly byCalendar?: true
  readonly work: Readonly<Record<string, WorkHandler>>
  /** Work that may be done twice without harm: given back unbegun when the process drains, begun anew after an outage (outlast.ts). */
  readonly repeatable: ReadonlySet<string>
  /** Writes what people read of actors that moved; asks for all its statements at once, for COMMIT leaves with them. */
  readonly project?: (batch: BatchContext, moved: readonly Projected[]) => Promise<void>
}

/** Whether its last try failed or was slow, where that matters for its place; in the database's words persistence/leases.ts. */
export const isDoubted = ({ doubt }: Pick<Kind, 'doubt'>, context: Readonly<Record<string, unknown>>): boolean =>
  doubt?.counts.some((name) => {
    const count = context[name]
    return typeof count === 'number' && count > 0
  }) ?? false

export type Kinds = Readonly<Record<string, Kind>>
