/**
 * What goes into a batch and what comes out of it, as data: steps, what follows from them, and the work that may begin once
 * they are committed. Owns the shapes only (batch.ts moves actors, runtime.ts commits, worker.ts works).
 */
import type { EventObject } from 'xstate'
import type { Fact, ToldFact } from '../../domain/fact.ts'
import type { ActorRef } from '../../persistence/actors.ts'

/** One event for one actor. A step without an event only tells facts, under the lease. */
export interface Step {
  readonly ref: ActorRef
  readonly event: EventObject | null
  readonly told: readonly Fact[]
  /** Fences whoever does the work; null for people, time and reactions. */
  readonly lease: { readonly token: string; readonly work: string } | null
  /** For a timer: the instant by which it was found due, on the database's clock; that of the transaction where it is not said. */
  readonly dueBy?: string
  /** A person's id, `worker`, `timer` or `reaction`. */
  readonly cause: string
}

export interface Spawn {
  readonly ref: ActorRef
  /** Whose queue its work is in: the agent it will talk to. */
  readonly lane: string | null
  /** The id was made for it just now: there is no row to look for. Otherwise one may have lived and finished, for good. */
  readonly isNew: boolean
  readonly organizationId: string
  readonly cause: string
  /** What the spawner has in hand and the work would have to read: given to it if it begins with this very commit. */
  readonly carry?: unknown
}

/** What follows from a fact, or from an operation. A send to an actor that is no longer alive is dropped. */
export interface Effects {
  readonly spawns?: readonly Spawn[]
  readonly sends?: readonly { readonly ref: ActorRef; readonly event: EventObject }[]
  readonly told?: readonly ToldFact[]
}

/** Work that this process may begin once the batch is committed. */
export interface Launch {
  readonly ref: ActorRef
  readonly organizationId: string
  readonly context: Record<string, unknown>
  readonly work: string
  readonly token: string
  readonly lane: string | null
  /** Its last try failed or was slow (Kind.doubt). */
  readonly isDoubted: boolean
  /** Monotonic milliseconds before which the lease cannot have been granted. */
  readonly trustedFrom: number
  readonly carry?: unknown
  /** Room was taken for it; a launch that goes on under its step's lease has room already. */
  readonly reserved: boolean
}

/** What a place is asked for with: of which kind, in whose queue, and whether its last try failed or was slow (Kind.doubt). */
export interface Seat {
  readonly kind: string
  readonly lane: string | null
  readonly isDoubted: boolean
}

/** Lets a batch take leases for work it makes due, as far as this process has room. */
export interface Intake {
  readonly owner: string
  takeRoom(seat: Seat): boolean
  /** The commit failed: the work is not begun. */
  giveBack(launch: Launch): void
  newToken(): string
}

/** No live actor of that id: it never was, or it is finished and archived. */
export class ActorGone extends Error {
  override readonly name = 'ActorGone'
}
