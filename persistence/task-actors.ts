/** What the column beside a task asks for besides the task: its scope, and by which ways its latest news came. Reads only. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { Heard } from '../domain/task-actors.ts'
import type { Connection } from './connection.ts'
import { taskHeld } from './task-views.ts'

const Scope = z.object({ agentId: z.string(), tenant: z.string() })

/** Null for a task that the viewer may not read. */
export const readScope = (db: Connection, viewer: Viewer, taskId: string) =>
  db.maybeOne(sql.type(Scope)`
    select t.agent_id as "agentId", t.tenant from task t
    where t.id = ${taskId} and t.organization_id = ${viewer.organizationId} and ${taskHeld(viewer, 'read')}`)

/** A stream of ten thousand chunks is not read to learn what came last. */
const latestEvents = 200

export const readHeard = (db: Connection, taskId: string): Promise<readonly Heard[]> =>
  db.any(sql.type(z.custom<Heard>())`
    select source as way, max(received_at) as at from (
      select source, received_at from task_event where task_id = ${taskId} order by position desc limit ${latestEvents}) latest
    where source in ('stream', 'push', 'poll') group by source order by max(received_at) desc`)
