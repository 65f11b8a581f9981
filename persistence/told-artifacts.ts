/**
 * Which artifacts of a task its stream or a push told more of, since some version: for answers that were on their way meanwhile. Asked only of
 * answers that something came between, or that come beside a stream. Does not fold (domain/fold.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Transaction } from './connection.ts'

export interface ToldQuestion {
  readonly taskId: string
  readonly artifactId: string
  /** A task's version is the position of its next event. */
  readonly since: number
}

const Nth = z.object({ nth: z.number() })

/** What an event begins with that tells a bit of an artifact, and its artifact's name: as JSON, where quotes inside of strings are escaped. */
const bit = '{"artifactUpdate":'
const nameOf = (artifactId: string): string => `"artifactId":${JSON.stringify(artifactId)}`

/** Names an artifact among those of several tasks. */
export const artifactKey = (taskId: string, artifactId: string): string => `${taskId} ${artifactId}`

/** Of which of these more was told. */
export async function readToldArtifacts(
  tx: Transaction,
  questions: readonly ToldQuestion[],
): Promise<ReadonlySet<string>> {
  if (questions.length === 0) return new Set()
  const rows = await tx.any(sql.type(Nth)`
    select n.nth from ${sql.unnest(
      questions.map(({ taskId, artifactId, since }, nth) => [nth, taskId, nameOf(artifactId), since]),
      ['int4', 'uuid', 'text', 'int4'],
    )} as n(nth, task_id, name, since)
    where exists (
      select 1 from task_event e where e.task_id = n.task_id and e.position >= n.since and e.source in ('stream', 'push')
        and starts_with(e.event, ${bit}) and strpos(e.event, n.name) > 0)`)
  const told = new Set(rows.map(({ nth }) => nth))
  const toldOf = questions.filter((_question, nth) => told.has(nth))
  return new Set(toldOf.map(({ taskId, artifactId }) => artifactKey(taskId, artifactId)))
}
