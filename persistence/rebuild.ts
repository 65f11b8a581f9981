/**
 * What rebuilding a task's projections needs of the rows: lock the task, read its events a bounded page at a time, clear
 * what was projected, restore what its commands said of it, and remember how far a run came. Does not fold
 * (actors/rebuild.ts) and writes what was folded as everything is (task-writes.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { CommandBody } from '../domain/command-body.ts'
import type { Source } from '../domain/fact.ts'
import type { Database } from './database.ts'
import type { Connection, Transaction } from './connection.ts'
import { beginReadCommitted } from './drivers/session-settings.ts'
import { withIndex, type IndexWait } from './rebuild-index.ts'

/** What only the row itself knows; everything else of it is rebuilt. */
export interface TaskIdentity {
  readonly kind: 'task' | 'message'
  readonly createdAt: string
}

/** Locks one task until the transaction ends, as every batch that observes it does; null when it is unknown. */
export async function lockForRebuild(
  tx: Transaction,
  organizationId: string,
  taskId: string,
): Promise<TaskIdentity | null> {
  return tx.maybeOne(sql.type(z.custom<TaskIdentity>())`
    select kind, created_at as "createdAt" from task
    where organization_id = ${organizationId} and id = ${taskId} for update`)
}

/** A command whose delivery was told to this task: when our own words were said, and the title of what it opened. */
export interface ToldCommand {
  readonly id: string
  readonly messageId: string
  readonly createdAt: string
  /** When its reply was committed: the instant of the events that it brought. */
  readonly repliedAt: string
  readonly title: string | null
}

/** Commands that this task answered, in the order of their replies. */
export async function readToldCommands(tx: Connection, taskId: string): Promise<readonly ToldCommand[]> {
  return tx.any(sql.type(z.custom<ToldCommand>())`
    select id, message_id as "messageId", created_at as "createdAt", updated_at as "repliedAt", title from command
    where task_id = ${taskId} and status = 'succeeded' order by updated_at, created_at, id`)
}

/** What a command asked of the task that it opened. Read alone: a body may be 16 MiB. */
export async function readAsked(
  tx: Connection,
  commandId: string,
): Promise<{ readonly skillId: string | null; readonly references: readonly string[] }> {
  const { body, skillId } = await tx.one(
    sql.type(z.object({ body: z.string(), skillId: z.string().nullable() }))`
      select body, skill_id as "skillId" from command where id = ${commandId}`,
  )
  const { config } = JSON.parse(body) as CommandBody
  return { skillId, references: config?.referenceTaskIds ?? [] }
}

export interface StoredEvent {
  readonly position: number
  readonly source: Source
  /** JSON text of the event in its 1.0 shape. */
  readonly event: string
  readonly isPresent: boolean
  /** JSON text of a PassedOver (domain/overtaken.ts); null where all of it counted, as it was told. */
  readonly passedOver: string | null
  readonly receivedAt: string
}

/** Ids of an organization's tasks after one, in order: all of them, for the rebuild acts as the system. */
export async function listTaskIds(
  db: Connection,
  organizationId: string,
  after: string | null,
  limit: number,
): Promise<readonly string[]> {
  const from = after === null ? sql.fragment`true` : sql.fragment`id > ${after}`
  return db.anyFirst(sql.type(z.object({ id: z.string() }))`
    select id from task where organization_id = ${organizationId} and ${from} order by id limit ${limit}`)
}

/** An event may be 25 MiB of text; a page is the first one and whatever else fits. */
const pageBytes = 8 * 1024 * 1024
const pageEvents = 500

/** Events from a position on, oldest first; empty after the last one. */
export async function readEventPage(tx: Connection, taskId: string, from: number): Promise<readonly StoredEvent[]> {
  return tx.any(sql.type(z.custom<StoredEvent>())`
    select position, source, event, is_present as "isPresent", passed_over as "passedOver", received_at as "receivedAt" from (
      select *, sum(octet_length(event)) over (order by position) as bytes, row_number() over (order by position) as nth
      from (select * from task_event where task_id = ${taskId} and position >= ${from} order by position limit ${pageEvents}) p
    ) q where nth = 1 or bytes <= ${pageBytes} order by position`)
}

/** Removes everything that is projected from a task's events, except its own row. */
export async function clearProjections(tx: Transaction, taskId: string): Promise<void> {
  await tx.query(sql.unsafe`
    with m as (delete from task_message where task_id = ${taskId}),
      a as (delete from task_artifact where task_id = ${taskId}),
      p as (delete from task_artifact_part where task_id = ${taskId}),
      t as (delete from task_transition where task_id = ${taskId}),
      r as (delete from task_reference where task_id = ${taskId})
    delete from task_bytes where task_id = ${taskId}`)
}

export interface TaskHead {
  readonly id: string
  readonly title: string | null
  readonly skillId: string | null
  readonly contextId: string | null
  readonly references: readonly string[]
  readonly state: string
  readonly stateAt: string | null
  /** Also its version: every event that is kept makes one. */
  readonly events: number
  readonly createdAt: string
  readonly updatedAt: string
  /** The command that opened it; null where none is left to say so, and then the row's own stays. */
  readonly commandId: string | null
}

export async function writeHead(tx: Transaction, head: TaskHead): Promise<void> {
  await tx.query(sql.unsafe`
    with referred as (
      insert into task_reference (task_id, remote_id)
      select * from ${sql.unnest(
        head.references.map((remoteId) => [head.id, remoteId]),
        ['uuid', 'text'],
      )} n on conflict do nothing
    )
    update task set title = ${head.title}, skill_id = ${head.skillId}, context_id = ${head.contextId}, state = ${head.state},
      state_at = ${head.stateAt}, version = ${head.events}, events = ${head.events}, created_at = ${head.createdAt},
      updated_at = ${head.updatedAt}, command_id = coalesce(${head.commandId}::uuid, command_id)
    where id = ${head.id}`)
}

/** A digest of everything projected of a task: equal before and after means that nothing was damaged. */
export async function fingerprint(tx: Connection, taskId: string): Promise<string> {
  return tx.oneFirst(sql.type(z.object({ digest: z.string() }))`
    select md5(concat_ws('|',
      (select md5(row(t.*)::text) from task t where id = ${taskId}),
      (select string_agg(md5(row(m.*)::text), '' order by message_id) from task_message m where task_id = ${taskId}),
      (select string_agg(md5(row(a.*)::text), '' order by artifact_id) from task_artifact a where task_id = ${taskId}),
      (select string_agg(md5(row(p.*)::text), '' order by artifact_id, position) from task_artifact_part p
        where task_id = ${taskId}),
      (select string_agg(md5(row(s.*)::text), '' order by position) from task_transition s where task_id = ${taskId}),
      (select string_agg(remote_id, '|' order by remote_id) from task_reference where task_id = ${taskId}),
      (select string_agg(digest, '|' order by digest) from task_bytes where task_id = ${taskId}))) as digest`)
}

/** Another run over all tasks is under way on this database; the sentence is for the operator. */
export class RebuildUnderWay extends Error {
  override readonly name = 'RebuildUnderWay'
  constructor() {
    super('Another rebuild of this database is under way; start this one when it has ended.')
  }
}

/** The line that kept other runs away was lost. What was rebuilt stays so, and the next run goes on from there. */
export class RebuildCut extends Error {
  override readonly name = 'RebuildCut'
  constructor(options: ErrorOptions) {
    super('The connection that kept other rebuilds away was lost; the next run goes on from here.', options)
  }
}

/** A constant of ours that nothing else in the database uses, next to the one of migrations (migrate.ts). */
const ADVISORY_LOCK = 0x51_6e_a1_b1

/**
 * Lends the commands an index by task while `work` runs: nothing else asks for commands by their task, and every command would
 * pay for it. A million of them take a second or two. What a run that was killed left behind is removed first, which is why there
 * is one run at a time on a database. Throws RebuildUnderWay, RebuildCut when `broken` ended the work, and the reason of the wait's
 * signal when that ended the making of the index.
 */
export async function withCommandsByTask<T>(
  db: Database,
  wait: IndexWait,
  work: (broken: AbortSignal) => Promise<T>,
): Promise<T> {
  const indexed = (broken: AbortSignal) => withIndex(db, wait, () => work(broken), broken)
  // The embedded database has one owner, and nobody else.
  return db.profile === 'postgresql' ? alone(db, indexed) : indexed(db.lost)
}

/**
 * Holds a transaction open beside the work, for its lock is a transaction's, as that of migrations: behind a pooler a session's
 * would stay on whichever connection took it. Read committed, it holds no snapshot, so neither vacuum nor the index waits for it. Once its line is
 * broken (a restart, somebody's rule for transactions that idle) another run may begin, and this one is to stop at its next task.
 */
async function alone<T>(db: Database, work: (broken: AbortSignal) => Promise<T>): Promise<T> {
  return db.raw(async (client, broken) => {
    await client.query(beginReadCommitted)
    try {
      await client.query('set local idle_in_transaction_session_timeout = 0')
      // Without parameters: with them its snapshot would stay until the next statement, and the index would wait for that.
      const { rows } = await client.query<{ taken: boolean }>(
        `select pg_try_advisory_xact_lock(${ADVISORY_LOCK}) as taken`,
      )
      if (rows[0]?.taken !== true) throw new RebuildUnderWay()
      return await work(broken)
    } catch (error) {
      throw broken.aborted ? new RebuildCut({ cause: error }) : error
    } finally {
      // Nothing was written in it, and a line that is broken takes the lock along by itself.
      await client.query('rollback').catch(() => undefined)
    }
  })
}

/** A run over a whole organization that was interrupted. */
export interface RebuildMark {
  readonly startedAt: string
  readonly afterTaskId: string
  readonly tasks: number
}

export async function readMark(db: Connection, organizationId: string): Promise<RebuildMark | null> {
  return db.maybeOne(sql.type(z.custom<RebuildMark>())`
    select started_at as "startedAt", after_task_id as "afterTaskId", tasks from rebuild_mark
    where organization_id = ${organizationId}`)
}

/** Call it in the transaction that rebuilt the task: a run then goes on exactly behind it. */
export async function writeMark(tx: Transaction, organizationId: string, mark: RebuildMark): Promise<void> {
  await tx.query(sql.unsafe`
    insert into rebuild_mark (organization_id, started_at, after_task_id, tasks)
    values (${organizationId}, ${mark.startedAt}, ${mark.afterTaskId}, ${mark.tasks})
    on conflict (organization_id) do update set started_at = excluded.started_at, after_task_id = excluded.after_task_id,
      tasks = excluded.tasks`)
}

export async function clearMark(db: Connection, organizationId: string): Promise<void> {
  await db.query(sql.unsafe`delete from rebuild_mark where organization_id = ${organizationId}`)
}

/** By its id, or by its slug; null when there is none. */
export async function findOrganization(
  db: Connection,
  by: { readonly id: string } | { readonly slug: string },
): Promise<string | null> {
  const condition = 'id' in by ? sql.fragment`id = ${by.id}` : sql.fragment`slug = ${by.slug}`
  return db.maybeOneFirst(sql.type(z.object({ id: z.string() }))`select id from organization where ${condition}`)
}
