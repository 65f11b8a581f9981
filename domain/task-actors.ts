/**
 * Who looks after a task: its actors, and by which ways its news came. Shapes that the browser checks with. Does not say
 * what they mean (domain/explanation.ts).
 */
import * as z from 'zod/mini'
import { ActorAnswer } from './actor.ts'
import type { ActorDetail } from './chart.ts'

/** Ways in which something about a task reached us, besides what was sent and its reply. */
export const heardWays = ['stream', 'push', 'poll'] as const

export const Heard = z.object({ way: z.enum(heardWays), at: z.string() })
export type Heard = z.infer<typeof Heard>

/**
 * `GET /api/task-actors/{localId}`: the actors in the order in which a person asks for them, those that are there; and when
 * each way last brought anything, among the task's latest events.
 */
export const TaskActorsAnswer = z.object({
  at: z.string(),
  actors: z.array(ActorAnswer),
  heard: z.array(Heard),
})
export type TaskActorsAnswer = z.infer<typeof TaskActorsAnswer>

/** A pass over an agent's tasks is over in these states of reconciliation. */
const passed: ReadonlySet<string> = new Set(['pausing', 'listing'])

/**
 * When a task's agent was last asked for what was missed: its reconciliation's last step, where that ended a pass. It need not have asked for
 * this one, of which it may have heard just before. Null where it ended none, and where it ended before the task was (`begunAt`).
 */
export const lookedAt = (
  { kind, value, updatedAt }: Pick<ActorDetail, 'kind' | 'value' | 'updatedAt'>,
  begunAt: string,
): string | null =>
  kind === 'reconciliation' &&
  typeof value === 'string' &&
  passed.has(value) &&
  Date.parse(updatedAt) >= Date.parse(begunAt)
    ? updatedAt
    : null
