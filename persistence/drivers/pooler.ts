/**
 * Whether a pooler stands between this process and PostgreSQL, and what a session is worth behind it. In transaction mode
 * (PgBouncer and its like) two statements outside a transaction may meet two servers, so nothing that a session remembers
 * may be relied on: settings, LISTEN, session locks, and prepared statements unless the pooler carries them. What is said and read
 * in one exchange may (../presumptions.ts): a server is kept until its end.
 */
import pg from 'pg'
import { beginReadCommitted } from './session-settings.ts'

export interface Route {
  /** What answers is not the server's own backend: a session is not ours from one transaction to the next. */
  readonly isPooled: boolean
  /** Named statements find what they name: the server's own session, or a pooler that prepares them where they are missing. */
  readonly carriesNames: boolean
}

export const direct: Route = { isPooled: false, carriesNames: true }

/**
 * Asks once, on a fresh connection. A pooler hands out a key of its own in place of the backend's process id. One that carries named
 * statements (PgBouncer since 1.21 with `max_prepared_statements` above 0) gives them other names on the server, so ours is
 * not found there. One that passes names through is not trusted with any.
 */
export async function routeOf(client: pg.Client): Promise<Route> {
  const { processID } = client as pg.Client & { readonly processID: number | null }
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  if (rows[0]?.pid === processID) return direct
  // The pooler's key, any 32 bits, makes the name ours alone: two may ask at once, and one may die before it has cleaned up.
  const probeName = `signalbox_probe_${processID}`
  // In one transaction, so that all of it meets one server.
  await client.query(beginReadCommitted)
  try {
    await client.query({ name: probeName, text: 'select 1' })
    const { rowCount } = await client.query('select 1 from pg_prepared_statements where name = $1', [probeName])
    if (rowCount === 0) return { isPooled: true, carriesNames: true }
    await client.query(`deallocate ${pg.escapeIdentifier(probeName)}`)
    return { isPooled: true, carriesNames: false }
  } finally {
    await client.query('commit')
  }
}
