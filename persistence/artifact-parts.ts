/**
 * Parts of a task's artifacts as whoever compares them needs them: as the JSON that was kept. Does not read them for people
 * (task-contents.ts) or know how one is put together (part-rows.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'
import { listed, textsOf, wholePart } from './part-rows.ts'
import { partWeight } from './task-weights.ts'

/**
 * By the agent's name of each artifact that is named: its parts in their order, as JSON of StoredPart; none of one that is not known. Of no
 * more bytes than `limit` together: of what is beyond nothing is said.
 */
export async function readArtifactParts(
  db: Connection,
  taskId: string,
  artifactIds: readonly string[],
  limit: number,
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (artifactIds.length === 0) return new Map()
  const rows = await db.any(sql.type(z.object({ artifactId: z.string(), parts: z.string().nullable() }))`
    select n.id as "artifactId",
      (select ${listed(wholePart)} from task_artifact_part p where p.task_id = ${taskId} and p.artifact_id = n.id) as parts
    from (
      select id, sum(bytes) over (order by id) as upto
      from ${sql.unnest(
        [...new Set(artifactIds)].map((id) => [id]),
        ['text'],
      )} as named(id)
      cross join lateral (
        select coalesce(sum(${partWeight}), 0) as bytes
        from task_artifact_part p where p.task_id = ${taskId} and p.artifact_id = named.id) sizes
      offset 0) n
    where n.upto <= ${limit}`)
  return new Map(rows.map(({ artifactId, parts }) => [artifactId, parts === null ? [] : textsOf(parts)]))
}
