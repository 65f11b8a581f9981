/** Organizations, people and their memberships. Sign-in by a provider comes with part 3; the local administrator is here. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { Database } from './database.ts'

export interface LocalIds {
  readonly organizationId: string
  readonly personId: string
  readonly membershipId: string
}

/** The organization `slug` and its local administrator, made once; two processes that start together agree. */
export async function ensureLocalAdministrator(
  db: Database,
  slug: string,
  displayName: string,
  fresh: LocalIds,
): Promise<Viewer> {
  return db.pool.transaction(async (tx) => {
    await tx.query(sql.unsafe`
      insert into organization (id, slug, name) values (${fresh.organizationId}, ${slug}, ${slug}) on conflict (slug) do nothing`)
    // The row lock makes a second starter wait here until the first has made the person.
    const organizationId = await tx.oneFirst(
      sql.type(z.object({ id: z.string() }))`select id from organization where slug = ${slug} for update`,
    )
    const found = await tx.maybeOne(
      sql.type(z.object({ personId: z.string(), membershipId: z.string() }))`
        select p.id as "personId", m.id as "membershipId" from person p join membership m on m.person_id = p.id
        where m.organization_id = ${organizationId} and p.issuer is null and m.role = 'admin' order by p.created_at limit 1`,
    )
    if (!found) {
      await tx.query(sql.unsafe`insert into person (id, display_name) values (${fresh.personId}, ${displayName})`)
      await tx.query(sql.unsafe`
        insert into membership (id, organization_id, person_id, role)
        values (${fresh.membershipId}, ${organizationId}, ${fresh.personId}, 'admin')`)
    }
    const { personId, membershipId } = found ?? fresh
    return { organizationId, userId: personId, membershipId, role: 'admin', displayName }
  })
}
