/**
 * Parts of artifacts that are together too large for one statement: read page by page, each a statement of its own. What an embedded database needs for one it
 * keeps for good: a hundred megabytes joined into one text took several hundred. Does not know what of
 * a task is shown (task-weights.ts) or how a part is put together (part-rows.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Transaction } from './connection.ts'
import { listed, wholePart } from './part-rows.ts'
import { partWeight, statementBytes } from './task-weights.ts'

const Range = z.object({
  taskId: z.string(),
  artifactId: z.string(),
  page: z.number(),
  first: z.number(),
  last: z.number(),
})
type Range = z.infer<typeof Range>

const Page = z.object({ taskId: z.string(), artifactId: z.string(), parts: z.string() })

/**
 * Lists of parts (part-rows.ts), in the order of each artifact's, of all parts before `beyond`: `(task_id, place, artifact_id, position)`, of a task
 * the first that is not shown. One page is held at a time.
 */
export async function* readPartPages(
  tx: Transaction,
  taskIds: ReturnType<typeof sql.array>,
  beyond: FragmentSqlToken,
): AsyncGenerator<z.infer<typeof Page>> {
  const ranges = await tx.any(sql.type(Range)`
    with beyond as (${beyond})
    select w.task_id as "taskId", w.artifact_id as "artifactId", w.page::int as page,
      min(w.position)::int as first, max(w.position)::int as last
    from (
      select p.task_id, p.artifact_id, p.position, a.position as place,
        floor((sum(${partWeight}) over (order by a.task_id, a.position, a.artifact_id, p.position) - 1) / ${statementBytes}) as page
      from task_artifact a join task_artifact_part p on p.task_id = a.task_id and p.artifact_id = a.artifact_id
      left join beyond b on b.task_id = a.task_id
      where a.task_id = any(${taskIds})
        and (b.task_id is null or (a.position, a.artifact_id, p.position) < (b.place, b.artifact_id, b.position))) w
    group by w.task_id, w.place, w.artifact_id, w.page
    order by w.page, w.task_id, w.place, w.artifact_id`)
  for (let from = 0, to = 0; from < ranges.length; from = to) {
    const { page } = ranges[from] as Range
    while (ranges[to]?.page === page) to += 1
    yield* await readPage(tx, ranges.slice(from, to))
  }
}

const readPage = (tx: Transaction, ranges: readonly Range[]) =>
  tx.any(sql.type(Page)`
    select r.task_id as "taskId", r.artifact_id as "artifactId",
      (select ${listed(wholePart)} from task_artifact_part p
        where p.task_id = r.task_id and p.artifact_id = r.artifact_id and p.position between r.first and r.last) as parts
    from ${sql.unnest(
      ranges.map(({ taskId, artifactId, first, last }) => [taskId, artifactId, first, last]),
      ['uuid', 'text', 'int4', 'int4'],
    )} r(task_id, artifact_id, first, last)`)
