/** Who could decide about a task: the people an approval may be given to. The rule is persistence/visibility.ts'. */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { Refusal } from '../domain/refusal.ts'
import { listReviewers } from '../persistence/access.ts'
import { findTask } from '../persistence/task-views.ts'
import { ReviewersAnswer } from './answers.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const error = 'taskId is required.'
const Query = z.strictObject({ taskId: z.string({ error }) })

const schema = {
  summary: 'Who could decide about a task',
  querystring: Query,
  response: { 200: ReviewersAnswer },
  refuses: ['task.unknown'],
} as const

export const reviewerRoutes: FastifyPluginCallbackZod<Door> = (app, { db }, done) => {
  const config = { permission: 'operate' } as const
  app.get('/api/reviewers', { config, schema }, async (request) => {
    const viewer = viewerOf(request)
    const task = await findTask(db.pool, viewer, localId(request.query.taskId, 'task.unknown'))
    if (!task) throw new Refusal('task.unknown')
    const { isOperable, agentId, skillId } = task
    if (!isOperable) throw new Refusal('action.forbidden')
    return { reviewers: await listReviewers(db.pool, viewer, { agentId, skillId }) }
  })
  done()
}
