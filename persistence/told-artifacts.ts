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

const Told = z.object({ taskId: z.string(), artifactId: z.string() })

/** What an event begins with that tells a bit of an artifact, and its artifact's name: as JSON, where quotes inside of strings are escaped. */
const bit = '{"artifactUpdate":'
const nameOf = (artifactId: string): string => `"artifactId":${JSON.stringify(artifactId)}`

/** Which of these were told of, each as `taskId artifactId`. */
export async function readToldArtifacts(
  tx: Transaction,
  questions: readonly ToldQuestion[],
): Promise<ReadonlySet<string>> {
  if (questions.length === 0) return new Set()
  const rows = await tx.any(sql.type(Told)`
    select n.task_id as "taskId", n.artifact_id as "artifactId"
    from ${sql.unnest(
      questions.map(({ taskId, artifactId, since }) => [taskId, nameOf(artifactId), since]),
      ['uuid', 'text', 'int4'],
    )} as n(task_id, artifact_id, since)
    where exists (
      select 1 from task_event e where e.task_id = n.task_id and e.position >= n.since and e.source in ('stream', 'push')
        and starts_with(e.event, ${bit}) and strpos(e.event, n.artifact_id) > 0)`)
  const told = new Set(rows.map(({ taskId, artifactId }) => `${taskId} ${artifactId}`))
  return new Set(
    questions
      .filter(({ taskId, artifactId }) => told.has(`${taskId} ${nameOf(artifactId)}`))
      .map(({ taskId, artifactId }) => `${taskId} ${artifactId}`),
  )
}
