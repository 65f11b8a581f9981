/**
 * A task's stored events for somebody who reads them, a page at a time: an event may be 25 MiB, and two hundred of them more than a
 * process holds. Does not write them (task-writes.ts) or fold them into views (task-views.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { Connection } from './connection.ts'
import { taskHeld } from './task-views.ts'

export interface StoredEvent {
  readonly position: number
  readonly source: string
  /** JSON text of the event in its 1.0 shape; null of what a person sent, and where it alone is more than a page, to be read by itself. */
  readonly event: string | null
  readonly bytes: number
  readonly receivedAt: string
  /** There may be others behind it. */
  readonly more: boolean
}

/** Bytes of events on one page; the first is there whatever it weighs. */
export const eventPageBytes = 1024 * 1024

const readable = (viewer: Viewer, localId: string): FragmentSqlToken => sql.fragment`exists (
  select 1 from task t where t.id = ${localId} and t.organization_id = ${viewer.organizationId} and ${taskHeld(viewer, 'read')})`

/**
 * Stored events of a task from a position on, oldest first, as many as asked for or as a page may hold; none of a task that the viewer
 * may not read. What a person sent is in the view and not read again: it is no event of the agent.
 */
export async function readEvents(
  db: Connection,
  viewer: Viewer,
  { localId, position, limit }: { readonly localId: string; readonly position: number; readonly limit: number },
): Promise<readonly StoredEvent[]> {
  return db.any(sql.type(z.custom<StoredEvent>())`
    select position, source, case when source <> 'sent' and upto <= ${eventPageBytes} then event end as event, bytes, received_at as "receivedAt",
      looked > nth or looked = ${limit} as more
    from (
      select p.*, sum(bytes) over (order by position) as upto, row_number() over (order by position) as nth, count(*) over () as looked
      from (
        select *, case when source = 'sent' then 0 else octet_length(event) end as bytes from task_event
        where task_id = ${localId} and position >= ${position} and ${readable(viewer, localId)}
        order by position limit ${limit}) p) q
    where nth = 1 or upto <= ${eventPageBytes} order by position`)
}

/** The text of one event; null of a task that the viewer may not read. */
export async function readEvent(
  db: Connection,
  viewer: Viewer,
  { localId, position }: { readonly localId: string; readonly position: number },
): Promise<string | null> {
  return db.maybeOneFirst(sql.type(z.object({ event: z.string() }))`
    select event from task_event where task_id = ${localId} and position = ${position} and ${readable(viewer, localId)}`)
}
