/**
 * What `/api/actors` answers with: lists, one actor, its log, as schemas that the browser checks with. The shapes
 * themselves are domain/chart.ts. Does not own an actor's row (persistence/actors.ts) or what its context may show.
 */
import * as z from 'zod/mini'
import type { ActorDetail, ActorStep, ActorSummary, StateValue } from './chart.ts'

const StateValueSchema: z.ZodMiniType<StateValue> = z.lazy(() =>
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
  attention: z.boolean(),
  title: z.string(),
}

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

/** `GET /api/actors/{kind}/{id}`. */
export interface ActorAnswer {
  readonly actor: ActorDetail
}
export const ActorAnswer: z.ZodMiniType<ActorAnswer> = z.object({ actor: Detail })

/** A page of an actor's log; `next` is the revision to read on after, null where the log ends. */
export interface ActorLogPage {
  readonly steps: readonly ActorStep[]
  readonly next: number | null
}
export const ActorLogPage: z.ZodMiniType<ActorLogPage> = z.object({
  steps: z.array(Step),
  next: z.nullable(z.number()),
})

/** `GET /api/supervisor`: the live supervisor of the process that answers. It is never persisted, so it has no log. */
export interface SupervisorView {
  readonly value: StateValue
  readonly machineVersion: string
  /** Loops that failed and were started again, since the process began. */
  readonly restarts: number
  readonly lastFailure: string | null
}
export interface SupervisorAnswer {
  readonly supervisor: SupervisorView
}
export const SupervisorAnswer: z.ZodMiniType<SupervisorAnswer> = z.object({
  supervisor: z.object({
    value: StateValueSchema,
    machineVersion: z.string(),
    restarts: z.number(),
    lastFailure: z.nullable(z.string()),
  }),
})
