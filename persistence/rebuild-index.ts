/**
 * The index by task that a rebuild of everything lends the commands: made and removed while servers write, so PostgreSQL waits for
 * transactions and snapshots of others, for as long as those last. Who is waited for is told, and whoever has enough of it ends it.
 * The embedded database has one owner, who waits for nobody.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'slonik'
import { z } from 'zod'
import type { Pool } from './connection.ts'
import type { Database } from './database.ts'
import { isOutage } from './outage.ts'

export const indexName = 'command_of_task_rebuild'

/** A session that an index waits for. What a role may not see of another's session is null. */
export interface Blocker {
  readonly pid: number
  readonly application: string | null
  /** When its transaction began, ISO 8601. */
  readonly since: string | null
}

export interface IndexWait {
  /** Ends the waiting, and with it the run. */
  readonly signal: AbortSignal
  /** Told when the same ones have been waited for some seconds, and again when it is others. */
  readonly waiting: (blockers: readonly Blocker[]) => void
  /** Told where it could not be removed in time; every write of a command maintains it until somebody does. */
  readonly left: () => void
}

/** For how long the same sessions are waited for before they are named: on a database at work it is some moment of everybody's. */
const patienceMs = 3_000
const lookMs = 500
/** A statement that was cancelled ends within milliseconds; one on a line that went dead never does. */
const cancelMs = 10_000
/** What a run that is ending spends on removing its index. */
const removalMs = 5_000

const creation = `create index concurrently ${indexName} on command (task_id)`
const removal = `drop index concurrently if exists ${indexName}`

/** Lends it while `work` runs. `broken`: the run is nobody's any more, and the index may be the next one's. */
export async function withIndex<T>(
  db: Database,
  wait: IndexWait,
  work: () => Promise<T>,
  broken: AbortSignal,
): Promise<T> {
  if (db.profile === 'pglite') return withOwnIndex(db, work)
  const signal = AbortSignal.any([wait.signal, broken])
  const told = { signal, waiting: wait.waiting }
  // What a run that was killed was at goes on without it, and would be waited for.
  await cancel(db.pool, sql.fragment`starts_with(query, ${creation}) or starts_with(query, ${removal})`)
  await change(db, removal, told)
  try {
    await change(db, creation, told)
    return await work()
  } finally {
    // It may be the next run's by now, who removes what it finds before it begins.
    if (!broken.aborted) await remove(db, wait)
  }
}

async function withOwnIndex<T>(db: Database, work: () => Promise<T>): Promise<T> {
  const remove = () => db.raw((client) => client.query(`drop index if exists ${indexName}`))
  await remove()
  await db.raw((client) => client.query(`create index ${indexName} on command (task_id)`))
  try {
    return await work()
  } finally {
    await remove()
  }
}

/** A run that came to its end waits as before; one that was ended waits for a moment. Why it ended is the first thing to be told. */
async function remove(db: Database, wait: IndexWait): Promise<void> {
  const signal = wait.signal.aborted ? AbortSignal.timeout(removalMs) : wait.signal
  try {
    await change(db, removal, { signal, waiting: wait.waiting })
  } catch (error) {
    if (!signal.aborted && !isOutage(error)) throw error
    wait.left()
  }
}

const name = sql.type(z.object({ name: z.string() }))`select left(gen_random_uuid()::text, 8) as name`

type Fragment = ReturnType<typeof sql.fragment>
type Told = Pick<IndexWait, 'signal' | 'waiting'>

/** Runs one of the two statements to its end, or to the signal's; then it throws the signal's reason. */
async function change(db: Database, ddl: string, { signal, waiting }: Told): Promise<void> {
  // By its words it is found again: behind a pooler nobody knows which session it has. A server may keep 100 of their bytes.
  const statement = `${ddl} /* ${await db.pool.oneFirst(name)} */`
  const over = new AbortController()
  const changed = db.raw(async (client) => {
    const { promise: given, reject: giveUp } = Promise.withResolvers<never>()
    given.catch(() => undefined)
    const late = (): void => void setTimeout(() => giveUp(signal.reason), cancelMs).unref()
    signal.throwIfAborted()
    signal.addEventListener('abort', late, { once: true })
    try {
      await Promise.race([client.query(statement), given])
    } finally {
      over.abort()
      signal.removeEventListener('abort', late)
    }
  })
  const watched = watch(db.pool, statement, { signal, waiting }, over.signal)
  try {
    await changed
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    over.abort()
    await watched
  }
}

/** Beside the statement, until that is over. Never rejects: a database that is away is told by the statement's own end. */
async function watch(db: Pool, statement: string, { signal, waiting }: Told, over: AbortSignal): Promise<void> {
  const itself = sql.fragment`query = ${statement}`
  let [from, seen, told] = [performance.now(), '', '']
  while (!over.aborted) {
    // A look each time, for one may come before the statement is heard there.
    if (signal.aborted) await cancel(db, itself).catch(() => undefined)
    else {
      const blockers = await blockersOf(db, itself).catch(() => [])
      const pids = blockers.map(({ pid }) => pid).join()
      if (pids !== seen) [from, seen] = [performance.now(), pids]
      if (seen !== '' && seen !== told && performance.now() - from > patienceMs && !over.aborted) {
        told = seen
        waiting(blockers)
      }
    }
    await delay(lookMs, undefined, { signal: AbortSignal.any(signal.aborted ? [over] : [over, signal]) }).catch(
      () => undefined,
    )
  }
}

const Pid = z.object({ pid: z.number() })
const ours = (statements: Fragment): Fragment => sql.fragment`
  from pg_stat_activity where datname = current_database() and usename = current_user and state = 'active' and (${statements})`

/**
 * What is done with each session of ours that is at a statement. Who signs in under one name and acts under another (`alter role … set role`)
 * has sessions of the first, which only that one may read and cancel; the second may have been signed in as before.
 */
const ofEach = (db: Pool, done: Fragment, statements: Fragment): Promise<readonly number[]> =>
  db.transaction(async (tx) => {
    const asked = sql.type(Pid)`select ${done} as pid ${ours(statements)}`
    const acting = await tx.anyFirst(asked)
    await tx.query(sql.unsafe`set local role none`)
    return [...acting, ...(await tx.anyFirst(asked))]
  })

const cancel = (db: Pool, statements: Fragment): Promise<unknown> =>
  ofEach(db, sql.fragment`case when pg_cancel_backend(pid) then pid else 0 end`, statements)

const BlockerRow = z.object({ pid: z.number(), application: z.string().nullable(), since: z.string().nullable() })

/** A transaction that was prepared is nobody's session: 0. */
async function blockersOf(db: Pool, statement: Fragment): Promise<readonly Blocker[]> {
  const pids = await ofEach(db, sql.fragment`pid`, statement)
  return db.any(sql.type(BlockerRow)`
    select distinct b.pid, nullif(a.application_name, '') as application, a.xact_start as since
    from (select unnest(pg_blocking_pids(pid)) as pid from unnest(${sql.array([...pids], 'int4')}) as pid) b
    left join pg_stat_activity a on a.pid = b.pid order by b.pid limit 10`)
}
