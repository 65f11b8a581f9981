/** What people are called, for lists that name them by id. Reads only; people themselves are persistence/people.ts. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'

const Named = z.object({ personId: z.string(), membershipId: z.string(), name: z.string() })

/** Display names by the ids that are given, people's or memberships'; somebody of another organization has none here. */
export async function namesOf(
  db: Connection,
  organizationId: string,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  if (ids.size === 0) return new Map()
  const wanted = sql.array([...ids], 'uuid')
  const rows = await db.any(sql.type(Named)`
    select m.person_id as "personId", m.id as "membershipId", p.display_name as name
    from membership m join person p on p.id = m.person_id
    where m.organization_id = ${organizationId} and (m.person_id = any(${wanted}) or m.id = any(${wanted}))`)
  const names = new Map<string, string>()
  for (const { personId, membershipId, name } of rows)
    for (const id of [personId, membershipId]) if (ids.has(id)) names.set(id, name)
  return names
}
