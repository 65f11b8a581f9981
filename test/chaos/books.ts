/**
 * What the database holds at the end of a storm, as the checker wants it: the append-only records beside what people read.
 * Reads the tables themselves, for a promise about rows is not proven by a view of them. Of the audit chain, what the product's own
 * walk says. Does not judge (checker.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { sha256 } from '../../actors/audit-chain.ts'
import { rebuildAll, type Rebuilt, type Unreadable } from '../../actors/rebuild.ts'
import type { ChainFault } from '../../domain/audit-chain.ts'
import { chainedOrganizations, checkLinks } from '../../persistence/audit-check.ts'
import { countUnlinked, findHead, linkRows } from '../../persistence/audit-chain.ts'
import type { Database } from '../../persistence/database.ts'
import { wholePart } from '../../persistence/part-rows.ts'

const Log = z.object({
  kind: z.string(),
  actorId: z.string(),
  revision: z.number(),
  value: z.unknown(),
  /** Milliseconds since the epoch, by the clock of the process that moved the actor. */
  at: z.number(),
})
const Version = z.object({ taskId: z.string(), version: z.number() })
const Event = z.object({ taskId: z.string(), position: z.number(), source: z.string() })
const Task = z.object({
  id: z.string(),
  remoteId: z.string().nullable(),
  /** Its agent's. */
  cardUrl: z.string(),
  state: z.string(),
  version: z.number(),
  /** The words of its artifacts. */
  text: z.string(),
})
const Audit = z.object({ subjectId: z.string() })
const Count = z.object({ n: z.number() })
const Organization = z.object({ id: z.string() })
const CommandRow = z.object({ id: z.string(), messageId: z.string(), status: z.string() })

/** An organization's audit trail, and what its chain makes of it. */
export interface Chain {
  readonly organizationId: string
  /** Of the trail. */
  readonly rows: number
  /** The number of the last link. */
  readonly links: number
  /** The first thing that is wrong, by a walk along the whole chain. */
  readonly fault: ChainFault | null
}

export interface Books {
  /** By actor, in order of revisions. */
  readonly log: readonly z.infer<typeof Log>[]
  /** What was told of tasks, in the order of the outbox. */
  readonly versions: readonly z.infer<typeof Version>[]
  readonly events: readonly z.infer<typeof Event>[]
  readonly tasks: readonly z.infer<typeof Task>[]
  /** Acceptances. */
  readonly audits: readonly z.infer<typeof Audit>[]
  readonly commands: readonly z.infer<typeof CommandRow>[]
  readonly chains: readonly Chain[]
  /** Of every task that a rebuild from its events did not find as it is. */
  readonly astray: readonly string[]
}

type Pool = Pick<Database, 'pool'>['pool']

const linksWithinMs = 60_000
const rebuildWithinMs = 300_000

/**
 * What was committed last is linked as ever, by nobody but us: the processes have ended. A row waits for its link while any older transaction of
 * the server lives, those of the dead included.
 */
async function linkAll(pool: Pool, organizationIds: readonly string[]): Promise<void> {
  const isLinked = async (): Promise<boolean> => {
    await linkRows(pool, sha256, new Date().toISOString())
    const waiting = await Promise.all(organizationIds.map((id) => countUnlinked(pool, id)))
    return waiting.every((rows) => rows === 0)
  }
  const deadline = performance.now() + linksWithinMs
  while (!(await isLinked()) && performance.now() < deadline) await new Promise((again) => setTimeout(again, 20))
}

/** Follows each chain from its first link to its last. */
async function readChains(pool: Pool): Promise<readonly Chain[]> {
  const organizationIds = await chainedOrganizations(pool)
  await linkAll(pool, organizationIds)
  // A walk of the product's may stand anywhere, and one that ended may be followed by none for an hour.
  await pool.query(sql.unsafe`delete from audit_check`)
  const at = new Date().toISOString()
  const chains: Chain[] = []
  for (const organizationId of organizationIds) {
    let checked = await checkLinks(pool, organizationId, sha256, { at, staleBefore: at })
    while (checked === 'goes on') checked = await checkLinks(pool, organizationId, sha256, { at, staleBefore: at })
    if (checked === 'rests') throw new Error('Somebody else follows the chain.')
    const rows = await pool.oneFirst(sql.type(Count)`
      select count(*)::int as n from audit where organization_id = ${organizationId}`)
    const { number: links } = await findHead(pool, organizationId)
    chains.push({ organizationId, rows, links, fault: checked.fault })
  }
  return chains
}

/** Rebuilds all that is known of tasks, as `db:projections:rebuild` does. */
async function readAstray(db: Database): Promise<readonly string[]> {
  const organizations = await db.pool.any(sql.type(Organization)`select distinct organization_id as id from task`)
  const astray: string[] = []
  const told = (task: Rebuilt | Unreadable): void => {
    if ('reason' in task) astray.push(`task ${task.taskId} cannot be rebuilt: ${task.reason}`)
    else if (task.repaired) astray.push(`task ${task.taskId} is another after a rebuild.`)
  }
  const fail = (): never => {
    throw new Error('Somebody else has rebuilt.')
  }
  // Sessions of processes that were killed may end late; the signal bounds it.
  const index = { waiting: () => undefined, left: () => undefined }
  const signal = AbortSignal.timeout(rebuildWithinMs)
  for (const { id: organizationId } of organizations)
    await rebuildAll(db, { organizationId, now: new Date(), told, resumed: fail, signal, ...index })
  return astray
}

export async function readBooks(db: Database): Promise<Books> {
  const { pool } = db
  return {
    log: await pool.any(sql.type(Log)`
      select kind, actor_id as "actorId", revision, value, (extract(epoch from at) * 1000)::float8 as at
      from actor_log order by kind, actor_id, revision`),
    versions: await pool.any(sql.type(Version)`
      select subject_id as "taskId", (data->>'version')::int as version from fact where kind = 'task.observed' order by number`),
    events: await pool.any(
      sql.type(Event)`select task_id as "taskId", position, source from task_event order by task_id, position`,
    ),
    tasks: await pool.any(sql.type(Task)`
      select t.id, t.remote_id as "remoteId", agent.card_url as "cardUrl", t.state, t.version, coalesce((
        select string_agg((${wholePart})::jsonb->>'value', '' order by p.artifact_id, p.position)
        from task_artifact_part p where p.task_id = t.id), '') as text
      from task t join agent on agent.id = t.agent_id order by t.id`),
    audits: await pool.any(sql.type(Audit)`
      select subject_id as "subjectId" from audit where kind in ('task.send.accepted', 'task.cancel.accepted') order by at, id`),
    commands: await pool.any(sql.type(CommandRow)`select id, message_id as "messageId", status from command`),
    chains: await readChains(pool),
    // Last: what it mends would not be seen by those before it.
    astray: await readAstray(db),
  }
}
