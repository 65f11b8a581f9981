/**
 * Organizations, people and their memberships. A person is a provider's exact issuer and subject, or, without either, the
 * local administrator of development mode. Does not own what a membership may see (access.ts) or its sessions (sessions.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Role, Viewer } from '../domain/access.ts'
import type { Database } from './database.ts'
import type { Connection } from './connection.ts'

export interface LocalIds {
  readonly organizationId: string
  readonly personId: string
  readonly membershipId: string
}

const Id = z.object({ id: z.string() })

/** The id of the organization `slug`, made once; two processes that start together agree. */
export async function ensureOrganization(db: Connection, slug: string, freshId: string): Promise<string> {
  await db.query(sql.unsafe`
    insert into organization (id, slug, name) values (${freshId}, ${slug}, ${slug}) on conflict (slug) do nothing`)
  return db.oneFirst(sql.type(Id)`select id from organization where slug = ${slug}`)
}

/** The organization `slug` and its local administrator, made once; two processes that start together agree. */
export async function ensureLocalAdministrator(
  db: Database,
  slug: string,
  displayName: string,
  fresh: LocalIds,
): Promise<Viewer> {
  return db.pool.transaction(async (tx) => {
    const organizationId = await ensureOrganization(tx, slug, fresh.organizationId)
    // The row lock makes a second starter wait here until the first has made the person.
    await tx.query(sql.unsafe`select id from organization where id = ${organizationId} for update`)
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

/** A person as their provider names them. Both are compared byte for byte, and nothing else is: no e-mail, no name. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
}

export interface Provisioned {
  readonly identity: Identity
  readonly name: string
  readonly role: Role
}

/** Makes or changes the person and their membership, which is enabled again where it was disabled. */
export async function provisionMember(
  tx: Connection,
  organizationId: string,
  { identity, name, role }: Provisioned,
  fresh: Omit<LocalIds, 'organizationId'>,
): Promise<Omit<LocalIds, 'organizationId'>> {
  const personId = await tx.oneFirst(sql.type(Id)`
    insert into person (id, issuer, subject, display_name)
    values (${fresh.personId}, ${identity.issuer}, ${identity.subject}, ${name})
    on conflict (issuer, subject) do update set display_name = excluded.display_name returning id`)
  const membershipId = await tx.oneFirst(sql.type(Id)`
    insert into membership (id, organization_id, person_id, role)
    values (${fresh.membershipId}, ${organizationId}, ${personId}, ${role})
    on conflict (organization_id, person_id) do update set role = excluded.role, enabled = true returning id`)
  return { personId, membershipId }
}

/** The enabled membership of exactly this identity; null where there is none. Locked against being disabled meanwhile. */
export async function findMember(tx: Connection, slug: string, identity: Identity): Promise<LocalIds | null> {
  return tx.maybeOne(
    sql.type(z.object({ organizationId: z.string(), personId: z.string(), membershipId: z.string() }))`
      select m.organization_id as "organizationId", p.id as "personId", m.id as "membershipId"
      from person p join membership m on m.person_id = p.id join organization o on o.id = m.organization_id
      where p.issuer = ${identity.issuer} and p.subject = ${identity.subject} and o.slug = ${slug} and m.enabled
      for share of m`,
  )
}

/** Disables a membership; null where there is no such one, or none that was enabled. */
export async function disableMember(tx: Connection, slug: string, identity: Identity): Promise<LocalIds | null> {
  return tx.maybeOne(
    sql.type(z.object({ organizationId: z.string(), personId: z.string(), membershipId: z.string() }))`
      update membership m set enabled = false from person p, organization o
      where m.person_id = p.id and o.id = m.organization_id and m.enabled
        and p.issuer = ${identity.issuer} and p.subject = ${identity.subject} and o.slug = ${slug}
      returning m.organization_id as "organizationId", p.id as "personId", m.id as "membershipId"`,
  )
}
