/**
 * What `/api/actors` answers with: lists, one actor, its log, as schemas that the browser checks with. The shapes
 * themselves are domain/chart.ts. Does not own an actor's row (persistence/actors.ts) or what its context may show.
 */
import * as z from 'zod/mini'
import { CommandEvidence } from './evidence.ts'
import { Reopening, Settlement } from './settlement.ts'
import { Untaken } from './untaken.ts'
import type { ActorDetail, ActorStep, ActorSummary, StateValue } from './chart.ts'

export const StateValueSchema: z.ZodMiniType<StateValue> = z.lazy(() =>
  z.union([z.string(), z.record(z.string(), StateValueSchema)]),
)

const summary = {
  kind: z.string(),
  id: z.string(),
  value: StateValueSchema,
  status: z.enum(['active', 'done']),
  revision: z.number(),
  machineVersion: z.string(),
  updatedAt: z.string(),
  movedAt: z.string(),
  attention: z.boolean(),
  silent: z.boolean(),
  /** The release before tells none. */
  waits: z._default(z.boolean(), false),
  title: z.string(),
}

/** `event` and `guard`: as the chart names them. `label`: the same in words. */
const Next = z.pipe(
  z.object({ event: z.string(), label: z.string(), guard: z.optional(z.string()) }),
  // An absent guard is an absent key: the wire model has no undefined.
  z.transform(({ event, label, guard }) => (guard === undefined ? { event, label } : { event, label, guard })),
)

const Detail = z.object({
  ...summary,
  createdAt: z.string(),
  context: z.record(z.string(), z.unknown()),
  work: z.nullable(z.object({ id: z.string(), startedAt: z.nullable(z.string()) })),
  timers: z.array(z.object({ id: z.string(), dueAt: z.string() })),
  lease: z.nullable(z.object({ owner: z.string(), until: z.string() })),
  next: z.array(Next),
  agentId: z.nullable(z.string()),
  /** The release before tells none. */
  agentName: z._default(z.nullable(z.string()), null),
  taskId: z.nullable(z.string()),
})

const Step = z.object({
  revision: z.number(),
  at: z.string(),
  event: z.looseObject({ type: z.string() }),
  cause: z.string(),
  value: StateValueSchema,
  facts: z.array(z.string()),
  edges: z.array(z.string()),
  machineVersion: z.string(),
})

/** A page of `GET /api/actors`; `next` is the cursor of the following page, null on the last. */
export interface ActorPage {
  readonly actors: readonly ActorSummary[]
  readonly next: string | null
}
export const ActorPage: z.ZodMiniType<ActorPage> = z.object({
  actors: z.array(z.object(summary)),
  next: z.nullable(z.string()),
})

/** Why work that is due is not done: whose places are taken, and how many wait before it. */
export const ActorWait = z.object({
  dueAt: z.string(),
  /** Of its kind, due before it and not held; counted up to a limit (domain/queue.ts). */
  ahead: z.number(),
  /** By process, for whichever organization. `ofLane`: of these, for the same agent. `ofDoubted`: of these, for whom the last try failed or was slow. */
  taken: z.array(
    z.object({ owner: z.string(), taken: z.number(), ofLane: z.number(), ofDoubted: z.optional(z.number()) }),
  ),
  /** Processes that tell of themselves and do such work; absent where nobody tells. */
  working: z.optional(z.number()),
  /** Places of one process for this kind, and how many of them one agent may take (shares.ts). */
  places: z.number(),
  perAgent: z.number(),
  /** Its own last try failed or was slow, and all for whom that is so may take so many of them; absent where that is not so, or no matter. */
  perDoubted: z.optional(z.number()),
  /** Since when the oldest request to the same agent is on its way; null where there is none. */
  requestSince: z.nullable(z.string()),
})
export type ActorWait = z.infer<typeof ActorWait>

/** What the console recorded of one delivery. Times are ISO 8601. */
export const DeliveryRecord = z.object({
  action: z.enum(['send', 'cancelTask']),
  /** The task that it continued or was to cancel, where that is known here. */
  localId: z.nullable(z.string()),
  acceptedAt: z.string(),
  /** The commit after which the first byte may have left; null when nothing was sent. */
  leftAt: z.nullable(z.string()),
  endedAt: z.nullable(z.string()),
  /** The worker's own word, or `interrupted` when it never gave one. Null while it is under way. */
  ended: z.nullable(z.enum(['replied', 'refused', 'unsent', 'crossed', 'unknown', 'interrupted', 'undelivered'])),
  /**
   * What came instead of an answer, of `unknown`; what is to be said of the answer, of `replied`; what the last try to find the agent came to, of
   * `undelivered`, where it was looked for in vain. One sentence or two.
   */
  cause: z.nullable(z.string()),
})
export type DeliveryRecord = z.infer<typeof DeliveryRecord>

/** `GET /api/actors/{kind}/{id}`. */
export interface ActorAnswer {
  /** The server's clock, by which leases and timers are to be read. */
  readonly at: string
  readonly actor: ActorDetail
  /** Null unless its work is due and nobody does it, or its timer is over for long; and to whoever is no administrator. */
  readonly wait: ActorWait | null
  /** The same for everybody, in a word; null also where that is not so for longer than a worker needs. */
  readonly untaken: Untaken | null
  /** Since about when it does not go well, as its log tells; null while it does, and where the log does not go back so far. */
  readonly since: string | null
  /** When the process that holds it was last heard of; null where nobody does, or processes do not tell of themselves. */
  readonly holderSeenAt: string | null
  /** Commands only. */
  readonly delivery: DeliveryRecord | null
  /** Commands whose outcome is uncertain. */
  readonly evidence: CommandEvidence | null
  /** Commands that a person settled. */
  readonly settlement: Settlement | null
  /** Decisions about a command that were taken back, the newest first. */
  readonly reopenings: readonly Reopening[]
  /** Commands that were sent in the place of an earlier one: its id. */
  readonly replaces: string | null
}
export const ActorAnswer: z.ZodMiniType<ActorAnswer> = z.object({
  at: z.string(),
  actor: Detail,
  wait: z.nullable(ActorWait),
  /** The release before tells none. */
  untaken: z._default(z.nullable(Untaken), null),
  since: z.nullable(z.string()),
  holderSeenAt: z.nullable(z.string()),
  delivery: z.nullable(DeliveryRecord),
  evidence: z.nullable(CommandEvidence),
  settlement: z.nullable(Settlement),
  reopenings: z.readonly(z.array(Reopening)),
  replaces: z.nullable(z.string()),
})

/**
 * A page of an actor's log, oldest first; `next` is the revision to go on from in the direction that was asked for, null where the
 * log ends there. Routine rounds are not kept: revisions have gaps.
 */
export interface ActorLogPage {
  readonly steps: readonly ActorStep[]
  readonly next: number | null
}
export const ActorLogPage: z.ZodMiniType<ActorLogPage> = z.object({
  steps: z.array(Step),
  next: z.nullable(z.number()),
})
