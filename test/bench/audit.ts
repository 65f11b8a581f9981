/**
 * What the audit chain costs a row: appending it, beside a table as it was before the chain; linking it; following it again. In
 * processor time of the database and of this process, which a busy neighbour does not change much.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as tick } from 'node:timers/promises'
import { sql } from 'slonik'
import { sha256 } from '../../actors/audit-chain.ts'
import { newToken } from '../../actors/tokens.ts'
import { linkRows } from '../../persistence/audit-chain.ts'
import { checkLinks } from '../../persistence/audit-check.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { figure, table } from './figures.ts'
import type { BenchOptions } from './run.ts'
import { openStage, query, type Stage } from './stage.ts'

/** As the loop appends them: some twenty commands a commit. */
const rowsAtOnce = 20
const commits = 500
const rows = rowsAtOnce * commits

const before = `
create table audit_before (
  id uuid primary key, organization_id uuid not null, at timestamptz not null, kind text not null, actor_type text not null,
  actor_person_id uuid, task_id uuid, subject_id text, data jsonb not null
);
create index audit_before_newest on audit_before (organization_id, at desc, id desc);
create index audit_before_of_task on audit_before (task_id, at desc, id desc) where task_id is not null;
create trigger audit_before_append_only before update or delete on audit_before for each row execute function refuse_change('no');`

interface Spent {
  readonly ownMs: number
  readonly databaseMs: number
  readonly walBytes: number
}

const walOf = async (url: string): Promise<number> =>
  Number((await query(url, `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal`))[0]?.['wal'])

async function spent(stage: Stage, url: string, work: () => Promise<void>): Promise<Spent> {
  const [cpu, databaseMs, wal] = [process.cpuUsage(), stage.databaseCpuMs(), await walOf(url)]
  await work()
  // Linux counts in hundredths of a second, at the tick's end.
  await tick(20)
  const { user, system } = process.cpuUsage(cpu)
  return {
    ownMs: (user + system) / 1000,
    databaseMs: stage.databaseCpuMs() - databaseMs,
    walBytes: (await walOf(url)) - wal,
  }
}

async function append(db: Database, into: 'audit' | 'audit_before', organizationId: string): Promise<void> {
  const target = sql.identifier([into])
  const personId = randomUUID()
  for (let commit = 0; commit < commits; commit++) {
    const ids = Array.from({ length: rowsAtOnce }, () => [newToken(), newToken()])
    await db.pool.query(sql.unsafe`
      insert into ${target} (id, organization_id, at, kind, actor_type, actor_person_id, subject_id, data)
      select i.id, ${organizationId}, ${new Date().toISOString()}, 'task.send.accepted', 'user', ${personId}, i.subject::text,
        jsonb_build_object('agentId', ${personId}::text, 'messageId', i.subject, 'contentDigest', ${'0'.repeat(64)}::text)
      from ${sql.unnest(ids, ['uuid', 'uuid'])} i(id, subject)`)
  }
}

export async function benchAudit({ rounds }: BenchOptions): Promise<void> {
  const stage = await openStage()
  const url = await stage.database()
  const db = await openDatabase({ kind: 'postgresql', url })
  try {
    await db.raw(async (client) => {
      await migrateUp(client, migrations)
      await client.query(before)
    })
    const organizationId = randomUUID()
    const link = async (): Promise<void> => {
      for (let links = 0; links < rows;) links += (await linkRows(db.pool, sha256, new Date().toISOString())).links
    }
    const follow = async (at: Date): Promise<void> => {
      const times = { at: at.toISOString(), staleBefore: at.toISOString() }
      for (;;) if ((await checkLinks(db.pool, organizationId, sha256, times)) !== 'goes on') return
    }
    const lines: string[][] = []
    for (let round = 0; round < rounds; round++) {
      const parts: readonly (readonly [string, () => Promise<void>])[] = [
        ['appended as before', () => append(db, 'audit_before', organizationId)],
        ['appended with a place', () => append(db, 'audit', organizationId)],
        ['linked', link],
        // In one round more rows are followed than were linked in it.
        [`followed, ${round + 1} times as many`, () => follow(new Date())],
      ]
      for (const [name, work] of parts) {
        const { ownMs, databaseMs, walBytes } = await spent(stage, url, work)
        const count = name.startsWith('followed') ? rows * (round + 1) : rows
        lines.push([name, ...[(ownMs * 1000) / count, (databaseMs * 1000) / count, walBytes / count].map(figure)])
      }
    }
    process.stdout.write(
      table(`audit: of one row, ${rows} a round`, ['row', 'own CPU, µs', 'database CPU, µs', 'WAL, bytes'], lines),
    )
  } finally {
    await db.close()
    await stage.close()
  }
}
