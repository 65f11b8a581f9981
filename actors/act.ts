/**
 * An act: what a person or an operator did that moves no actor, such as giving access, registering an agent, signing out. The
 * change, its audit row and the fact that wakes whoever it concerns are one transaction; those who wait here are told after it, in
 * other processes they are told by the fact (freshness.ts). Owns that order, and no act.
 */
import type { AuditKind } from '../domain/audit.ts'
import { writeActors } from '../persistence/actors.ts'
import { appendAudit, type AuditEntry } from '../persistence/audit.ts'
import type { Database } from '../persistence/database.ts'
import type { Connection } from '../persistence/connection.ts'
import type { Changes } from './loop/changes.ts'
import type { Instruments } from './loop/runtime.ts'

export interface ActTools {
  readonly db: Database
  readonly changes: Pick<Changes, 'publish'>
  readonly instruments: Pick<Instruments, 'now' | 'newToken'>
}

export interface Act extends Pick<AuditEntry, 'organizationId' | 'personId' | 'subjectId' | 'taskId' | 'data'> {
  readonly kind: AuditKind
  /**
   * Under whose id the fact is told: an agent's; a membership's where what they may do changed; the organization's where
   * everybody's may have (http/standing.ts). Null: nobody waits for it, and there is no fact.
   */
  readonly wakes: string | null
}

export interface Acted<Result> {
  readonly result: Result
  /** None where what was asked for was so already. */
  readonly acts: readonly Act[]
}

/** Commits what `change` does and says it did, or nothing. Resolves once it is in force and everybody here is told. */
export async function act<Result>(
  { db, changes, instruments }: ActTools,
  change: (tx: Connection, at: Date) => Promise<Acted<Result>>,
): Promise<Result> {
  const batchId = instruments.newToken()
  const { result, acts } = await db.pool.transaction(async (tx) => {
    const now = instruments.now()
    const acted = await change(tx, now)
    const at = now.toISOString()
    for (const each of acted.acts) await appendAudit(tx, entryOf(each, instruments.newToken()), at)
    await writeActors(tx, { writes: [], log: [], outbox: acted.acts.flatMap(factOf), batchId, at })
    return acted
  })
  const told = acts.flatMap(factOf)
  const facts = new Map<string, number>()
  for (const { kind } of told) facts.set(kind, (facts.get(kind) ?? 0) + 1)
  const commit = { batchId, leftDue: new Set<string>(), facts }
  for (const [organizationId, of] of Map.groupBy(told, (fact) => fact.organizationId))
    changes.publish({ organizationId, subjects: new Set(of.map(({ subjectId }) => subjectId)), commit })
  return result
}

export const entryOf = ({ wakes: _, personId, ...entry }: Act, id: string): AuditEntry => ({
  id,
  actorType: personId === null ? 'system' : 'user',
  personId,
  ...entry,
})

/** What an act says beside the audit trail: that it was done, and nothing about what. */
const factOf = ({ organizationId, kind, wakes }: Act) =>
  wakes === null ? [] : [{ organizationId, kind, subjectId: wakes, data: {} }]
