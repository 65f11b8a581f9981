/**
 * Damaged tasks in the log, for whoever can rebuild them. Does not own what readers see in their place (persistence/part-rows.ts).
 */
import type { FastifyBaseLogger } from 'fastify'
import type { OnDamage } from '../persistence/task-views.ts'

/** Tasks that were told are remembered so far; more than these at once is one trouble, and the log is full of it. */
const rememberedTasks = 1_000

/** Tells of each task once, as long as it remembers it: open pages read a task again and again. */
export function damageLog(log: Pick<FastifyBaseLogger, 'error'>): OnDamage {
  const told = new Set<string>()
  return ({ organizationId, taskId, parts }) => {
    if (told.has(taskId)) return
    const [oldest] = told
    if (told.size >= rememberedTasks && oldest !== undefined) told.delete(oldest)
    told.add(taskId)
    log.error(
      { organizationId, taskId, parts },
      'a task has parts that cannot be read: rebuild it (db:projections:rebuild)',
    )
  }
}
