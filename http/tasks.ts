/** Tasks for reading: rows, one view, pages of views. Does not own the queries (persistence/task-views.ts). */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { instruments } from '../actors/system.ts'
import { Refusal, refusals } from '../domain/refusal.ts'
import type { Viewer } from '../domain/access.ts'
import { taskFilters, type TaskView } from '../domain/task.ts'
import type { Connection } from '../persistence/connection.ts'
import { unsettledCommands } from '../persistence/commands.ts'
import { withEvidence } from '../persistence/evidence.ts'
import { followingOf } from '../persistence/following.ts'
import { findTask, listTasks, readPulse, readViewsPage, readViewUpTo } from '../persistence/task-views.ts'
import { TaskAnswer, TaskCommandsAnswer, TasksAnswer, TaskViewsAnswer } from './answers.ts'
import { localId, type Door } from './door.ts'
import { isUuid } from '../domain/uuid.ts'
import { viewerOf } from './guard.ts'
import { LargeViews } from './large-views.ts'

/** A whole number as an address writes it, with one sentence for everything that is not. */
const whole = (range: { readonly least: number; readonly most: number }, error: string) =>
  z.pipe(
    z.string({ error }).check(
      z.regex(/^\d{1,15}$/, { error }),
      z.refine((text) => Number(text) >= range.least && Number(text) <= range.most, { error }),
    ),
    z.transform(Number),
  )

const ListQuery = z.object({
  filter: z._default(z.enum(taskFilters, { error: refusals['task.filter'] }), 'all'),
  limit: z.prefault(whole({ least: 1, most: 100 }, refusals['task.limit']), '50'),
  offset: z.prefault(whole({ least: 0, most: Number.MAX_SAFE_INTEGER }, refusals['task.offset']), '0'),
})

const views = refusals['task.views.page']
const ViewsQuery = z.object({
  limit: z.prefault(whole({ least: 1, most: 100 }, views), '100'),
  after: z.optional(z.string({ error: views }).check(z.refine(isUuid, { error: views }))),
})
const OfTask = z.object({ taskId: z.string() })

const listing = {
  summary: 'Rows of tasks, newest first',
  querystring: ListQuery,
  response: { 200: TasksAnswer },
  refuses: ['task.filter', 'task.limit', 'task.offset'],
} as const
const looking = {
  summary: 'One task, by its local id',
  params: OfTask,
  response: { 200: TaskAnswer },
  refuses: ['task.unknown', 'task.views.room'],
} as const
const besides = {
  summary: 'What was said about a task and is not delivered, or may not be',
  params: OfTask,
  response: { 200: TaskCommandsAnswer },
  refuses: ['task.unknown'],
} as const
const paging = {
  summary: 'Tasks with all that is in them, a page at a time',
  querystring: ViewsQuery,
  response: { 200: TaskViewsAnswer },
  refuses: ['task.views.page', 'task.views.room'],
} as const

/** `taskId`: the agent's own name of the task; null of a direct reply, about which nothing more is said. */
async function commandsOf(
  db: Connection,
  viewer: Viewer,
  { agentId, tenant, taskId }: Pick<TaskView, 'agentId' | 'tenant' | 'taskId'>,
) {
  if (taskId === null) return []
  return withEvidence(db, viewer, await unsettledCommands(db, viewer, { agentId, tenant, remoteId: taskId }))
}

export const taskRoutes: FastifyPluginCallbackZod<Door> = (app, { db, damaged, drain }, done) => {
  const config = { permission: 'read' } as const
  const large = new LargeViews(drain)
  app.get('/api/tasks', { config, schema: listing }, async (request) => {
    const now = instruments.now().toISOString()
    return { tasks: await listTasks(db.pool, viewerOf(request), { ...request.query, now }) }
  })
  app.get('/api/tasks/:taskId', { config, schema: looking }, (request, reply) => {
    const id = localId(request.params.taskId, 'task.unknown')
    return large.read(request, reply, async (most, viewer) => {
      const task = await readViewUpTo(db.pool, viewer, { localId: id, most }, damaged)
      if (!task) throw new Refusal('task.unknown')
      if ('heavyBytes' in task) return task
      // Beyond the specification: what was said about this task and has not, or may not have, reached its agent.
      const commands = await commandsOf(db.pool, viewer, task)
      const following = await followingOf(db.pool, viewer.organizationId, task.localId)
      const operable = (await readPulse(db.pool, viewer, task.localId))?.isOperable ?? false
      return { task, commands, following, operable }
    })
  })
  app.get('/api/tasks/:taskId/commands', { config, schema: besides }, async (request) => {
    const viewer = viewerOf(request)
    const task = await findTask(db.pool, viewer, localId(request.params.taskId, 'task.unknown'))
    if (!task) throw new Refusal('task.unknown')
    return { commands: await commandsOf(db.pool, viewer, task) }
  })
  app.get('/api/task-views', { config, schema: paging }, (request, reply) => {
    const { limit, after = null } = request.query
    return large.read(request, reply, (most, viewer) => readViewsPage(db.pool, viewer, { after, limit, most }, damaged))
  })
  done()
}
