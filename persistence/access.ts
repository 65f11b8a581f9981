/**
 * Teams and grants as rows: who was given what, read by administrators and changed one thing at a time. Does not own what a
 * grant means (visibility.ts), nor who may change one (http/admin.ts). Nothing is deleted but a team's member.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { Reviewer, type AccessRecord, type GrantPermission, type GrantSubject } from '../domain/grant.ts'
import type { Connection, Pool, Transaction } from './connection.ts'
import { mayOperate } from './visibility.ts'

const rowsOf = <Name extends keyof AccessRecord>(_name: Name) =>
  z.custom<AccessRecord[Name] extends readonly (infer Row)[] ? Row : never>()

/** Everything that an administrator sees of access, as of one moment. */
export async function readAccess(db: Pool, organizationId: string): Promise<AccessRecord> {
  return db.transaction(async (tx) => {
    await tx.query(sql.unsafe`set transaction isolation level repeatable read, read only`)
    const teams = await tx.any(sql.type(rowsOf('teams'))`
      select id, name, enabled from team where organization_id = ${organizationId} order by name, id`)
    const memberships = await tx.any(sql.type(rowsOf('memberships'))`
      select m.id, m.role, p.display_name as name from membership m join person p on p.id = m.person_id
      where m.organization_id = ${organizationId} and m.enabled order by p.display_name, m.id`)
    const teamMembers = await tx.any(sql.type(rowsOf('teamMembers'))`
      select tm.id, tm.team_id as "teamId", tm.membership_id as "membershipId"
      from team_member tm join team t on t.id = tm.team_id where t.organization_id = ${organizationId} order by tm.created_at, tm.id`)
    const grants = await tx.any(sql.type(rowsOf('grants'))`
      select id, agent_id as "agentId", skill_id as "skillId", subject_type as "subjectType", subject_id as "subjectId",
        permission, enabled
      from access_grant where organization_id = ${organizationId} order by created_at, id`)
    const credentials = await tx.any(sql.type(rowsOf('credentials'))`
      select agent_id as "agentId", kind, enabled, updated_at as "updatedAt"
      from credential where organization_id = ${organizationId} order by agent_id`)
    return {
      organizationId,
      teams: [...teams],
      memberships: [...memberships],
      teamMembers: [...teamMembers],
      grants: [...grants],
      credentials: [...credentials],
    }
  })
}

export interface NewTeam {
  readonly id: string
  readonly organizationId: string
  readonly name: string
}

export async function createTeam(tx: Transaction, team: NewTeam): Promise<void> {
  await tx.query(sql.unsafe`
    insert into team (id, organization_id, name) values (${team.id}, ${team.organizationId}, ${team.name})`)
}

const Enabled = z.object({ enabled: z.boolean() })
const Id = z.object({ id: z.string() })

/** A team, locked against being disabled while somebody is added; null where there is none. */
export async function lockTeam(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<{ readonly enabled: boolean } | null> {
  return tx.maybeOne(sql.type(Enabled)`
    select enabled from team where organization_id = ${organizationId} and id = ${id} for update`)
}

export async function disableTeam(tx: Transaction, id: string): Promise<void> {
  await tx.query(sql.unsafe`update team set enabled = false where id = ${id}`)
}

export async function isMember(tx: Transaction, organizationId: string, membershipId: string): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(Enabled)`
    select enabled from membership where organization_id = ${organizationId} and id = ${membershipId}`)
  return row?.enabled === true
}

/** False when they were one already. */
export async function addTeamMember(
  tx: Transaction,
  member: { readonly id: string; readonly teamId: string; readonly membershipId: string },
): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(Id)`
    insert into team_member (id, team_id, membership_id) values (${member.id}, ${member.teamId}, ${member.membershipId})
    on conflict (team_id, membership_id) do nothing returning id`)
  return row !== null
}

/** False when they were none. */
export async function removeTeamMember(tx: Transaction, teamId: string, membershipId: string): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(Id)`
    delete from team_member where team_id = ${teamId} and membership_id = ${membershipId} returning id`)
  return row !== null
}

export interface NewGrant {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
  readonly skillId: string | null
  readonly subjectType: GrantSubject
  readonly subjectId: string
  readonly permission: GrantPermission
}

/** Whether an agent is registered and not removed. */
export async function isRegistered(tx: Transaction, organizationId: string, agentId: string): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(Enabled)`
    select enabled from agent where organization_id = ${organizationId} and id = ${agentId}`)
  return row?.enabled === true
}

/** False when the same was granted already and not revoked. */
export async function insertGrant(tx: Transaction, grant: NewGrant): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(Id)`
    insert into access_grant (id, organization_id, agent_id, skill_id, subject_type, subject_id, permission)
    values (${grant.id}, ${grant.organizationId}, ${grant.agentId}, ${grant.skillId}, ${grant.subjectType}, ${grant.subjectId},
      ${grant.permission})
    on conflict (organization_id, agent_id, coalesce(skill_id, ''), subject_type, subject_id, permission) where enabled do nothing
    returning id`)
  return row !== null
}

const Granted = z.custom<Omit<NewGrant, 'organizationId'> & { readonly enabled: boolean }>()

/** A grant, locked; null where there is none. */
export async function lockGrant(tx: Transaction, organizationId: string, id: string) {
  return tx.maybeOne(sql.type(Granted)`
    select id, agent_id as "agentId", skill_id as "skillId", subject_type as "subjectType", subject_id as "subjectId",
      permission, enabled
    from access_grant where organization_id = ${organizationId} and id = ${id} for update`)
}

export async function disableGrant(tx: Transaction, id: string, at: string): Promise<void> {
  await tx.query(sql.unsafe`update access_grant set enabled = false, updated_at = ${at} where id = ${id}`)
}

/** Enabled administrators and operators who could operate the agent and skill, by name. */
export async function listReviewers(
  db: Connection,
  viewer: Viewer,
  of: { readonly agentId: string; readonly skillId: string | null },
): Promise<readonly Reviewer[]> {
  const skill = of.skillId === null ? null : sql.fragment`${of.skillId}`
  return db.any(sql.type(Reviewer)`
    select m.id as "membershipId", p.display_name as "displayName", m.role, m.id = ${viewer.membershipId} as self
    from membership m join person p on p.id = m.person_id
    where m.organization_id = ${viewer.organizationId} and ${mayOperate(sql.fragment`${of.agentId}::uuid`, skill)}
    order by p.display_name, m.id`)
}
