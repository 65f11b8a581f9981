/** What a statement reads, by PostgreSQL's own count: for queries that are to look at few rows however many there are. */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Database } from '../../persistence/database.ts'

interface Plan {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const Explained = z.object({ 'QUERY PLAN': z.array(z.object({ Plan: z.custom<Plan>() })).min(1) })

/** How many rows of each table it looks at; of one that it does not touch there is nothing. It is run. */
export async function rowsRead(
  db: { readonly pool: Pick<Database['pool'], 'one'> },
  query: FragmentSqlToken,
): Promise<Readonly<Record<string, number>>> {
  const { 'QUERY PLAN': plans } = await db.pool.one(
    sql.type(Explained)`explain (analyze, timing off, format json) ${query}`,
  )
  const read: Record<string, number> = {}
  for (const node of plans.flatMap(({ Plan: plan }) => nodesOf(plan))) {
    const { 'Relation Name': table, 'Actual Rows': rows, 'Actual Loops': loops } = node
    if (table !== undefined) read[table] = (read[table] ?? 0) + (rows + (node['Rows Removed by Filter'] ?? 0)) * loops
  }
  return read
}
