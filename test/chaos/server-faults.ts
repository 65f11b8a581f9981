/**
 * What breaks in a PostgreSQL of a storm's own, from beside the product: its clients are cut off, or one of its processes is
 * killed, whereupon it drops everybody's memory and recovers from its log. Owns no server; a crash of all of it is
 * test/support/postgres.ts's.
 */
import { sql, type QuerySqlToken } from 'slonik'
import { z } from 'zod'
import type { TestPostgres } from '../support/postgres.ts'
import type { Stage } from './stage.ts'

let databases = 0

/** A database of a scenario's own on the server that it breaks. */
export async function freshUrlOn(postgres: TestPostgres): Promise<string> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  const name = `storm_${++databases}`
  await client.query(`create database ${name}`)
  await client.end()
  const url = new URL(postgres.url)
  url.pathname = `/${name}`
  return url.href
}

const Pid = z.object({ pid: z.number() })
const others = sql.fragment`datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

export const cutOff = (stage: Stage): Promise<unknown> =>
  stage.withDatabase(({ pool }) =>
    pool.any(sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`),
  )

/** Processes that end by themselves between the question who is there and the kill. */
const triesLimit = 10

/** False: it is gone by itself. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false
    throw error
  }
}

/** `kill -9` of a process of the server's that serves a client. Resolves when the server has recovered from it. */
export async function killBackend(stage: Stage): Promise<void> {
  const ask = (question: QuerySqlToken<typeof Pid>) => stage.withDatabase(({ pool }) => pool.any(question))
  const newest = sql.type(Pid)`select pid from pg_stat_activity where ${others} order by backend_start desc limit 1`
  let killed: number | null = null
  for (let tries = 0; killed === null; tries++) {
    const [found] = await ask(newest)
    if (!found || tries === triesLimit) throw new Error('Nobody stays connected to the server.')
    if (kill(found.pid)) killed = found.pid
  }
  const left = sql.type(Pid)`select pid from pg_stat_activity where pid = ${killed}`
  // Until its parent has noticed, the server still takes clients and still shows the dead one.
  await stage.until(() =>
    ask(left).then(
      (rows) => rows.length === 0,
      () => false,
    ),
  )
}
