/** What people are called, for lists that name them by id. Reads only; people themselves are persistence/people.ts. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './database.ts'

/** Display names by person id; somebody of another organization has none here. */
export async function displayNames(
  db: Connection,
  organizationId: string,
  personIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (personIds.length === 0) return new Map()
  const rows = await db.any(
    sql.type(z.object({ id: z.string(), name: z.string() }))`
      select distinct p.id, p.display_name as name from person p join membership m on m.person_id = p.id
      where m.organization_id = ${organizationId} and p.id = any(${sql.array(personIds, 'uuid')})`,
  )
  return new Map(rows.map(({ id, name }) => [id, name]))
}
