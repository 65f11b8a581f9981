/**
 * What a person may see and do, as SQL: a condition that every read for people puts into its WHERE before anything is counted
 * or cut into pages. Owns the meaning of a grant; roles are domain/access.ts', and writing grants is access.ts'.
 *
 * An administrator holds everything. Anybody else holds an agent, or one skill of it, by an enabled grant to the organization,
 * to the membership or to an enabled team of theirs; grants add up and `operate` includes `read`. A grant of a skill counts
 * only while the agent is not known to ignore skill routing: otherwise nothing would keep a send to that skill.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { mayEver, type Viewer } from '../domain/access.ts'
import type { GrantPermission } from '../domain/grant.ts'

const nobody = sql.fragment`false`
const everybody = sql.fragment`true`

/** Somebody whose grants are asked for: a viewer's own ids, or the columns of a row of memberships. */
interface Holder {
  readonly organization: FragmentSqlToken
  readonly membership: FragmentSqlToken
}

const holderOf = ({ organizationId, membershipId }: Viewer): Holder => ({
  organization: sql.fragment`${organizationId}::uuid`,
  membership: sql.fragment`${membershipId}::uuid`,
})

/** Of `access_grant g`: it is in force, names this holder, and allows as much. */
const names = ({ organization, membership }: Holder, permission: GrantPermission): FragmentSqlToken => sql.fragment`
  g.organization_id = ${organization} and g.enabled
  and ${permission === 'operate' ? sql.fragment`g.permission = 'operate'` : everybody}
  and (
    (g.subject_type = 'organization' and g.subject_id = ${organization})
    or (g.subject_type = 'membership' and g.subject_id = ${membership})
    or (g.subject_type = 'team' and g.subject_id in (
      select tm.team_id from team_member tm join team te on te.id = tm.team_id
      where tm.membership_id = ${membership} and te.enabled)))`

const routed = sql.fragment`
  exists (select 1 from agent ra where ra.id = g.agent_id and ra.routes_skills is not false)`

function granted(
  holder: Holder,
  permission: GrantPermission,
  agent: FragmentSqlToken,
  skill: FragmentSqlToken | null,
): FragmentSqlToken {
  const covers =
    skill === null
      ? sql.fragment`g.skill_id is null`
      : sql.fragment`(g.skill_id is null or (g.skill_id = ${skill} and ${routed}))`
  return sql.fragment`
    exists (select 1 from access_grant g where g.agent_id = ${agent} and ${covers} and ${names(holder, permission)})`
}

/** What decides without a look at grants: an administrator holds all, and a role's ceiling is above every grant. */
function byRole(viewer: Viewer, permission: GrantPermission): FragmentSqlToken | null {
  if (!mayEver(viewer.role, permission)) return nobody
  return viewer.role === 'admin' ? everybody : null
}

/**
 * Whether the viewer holds the agent for what is asked. `skill`: the skill that the thing belongs to; null, or a null in the
 * column, asks for the agent as a whole, which no grant of a skill satisfies.
 */
export const held = (
  viewer: Viewer,
  permission: GrantPermission,
  agent: FragmentSqlToken,
  skill: FragmentSqlToken | null,
): FragmentSqlToken => byRole(viewer, permission) ?? granted(holderOf(viewer), permission, agent, skill)

/** Whether the viewer holds the agent or any skill of it. */
export const heldPartly = (viewer: Viewer, permission: GrantPermission, agent: FragmentSqlToken): FragmentSqlToken =>
  byRole(viewer, permission) ??
  sql.fragment`
    exists (select 1 from access_grant g where g.agent_id = ${agent} and (g.skill_id is null or ${routed})
      and ${names(holderOf(viewer), permission)})`

/** The skills that the viewer holds of an agent, as a JSON array; null where the agent is held as a whole. */
export const heldSkills = (viewer: Viewer, permission: GrantPermission, agent: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`
    case when ${held(viewer, permission, agent, null)} then null else coalesce((
      select jsonb_agg(distinct g.skill_id order by g.skill_id) from access_grant g
      where g.agent_id = ${agent} and g.skill_id is not null and ${routed}
        and ${byRole(viewer, permission) ?? names(holderOf(viewer), permission)}), '[]'::jsonb) end`

/**
 * Agents and skills that the viewer holds, each once: rows of (agent_id, skill_id), the latter null for a whole agent. A list
 * that begins here reads what is held, however much else there is. Null for an administrator, who begins at the organization.
 */
export function heldScopes(viewer: Viewer, permission: GrantPermission): FragmentSqlToken | null {
  const settled = byRole(viewer, permission)
  if (settled === everybody) return null
  const condition = settled ?? names(holderOf(viewer), permission)
  return sql.fragment`
    select distinct h.agent_id, h.skill_id from (
      select g.agent_id, g.skill_id, bool_or(g.skill_id is null) over (partition by g.agent_id) as whole
      from access_grant g where (g.skill_id is null or ${routed}) and ${condition}) h
    where h.skill_id is null or not h.whole`
}

/** Of `membership m`: enabled, and could operate the agent and skill: who may be assigned, review, or be asked. */
export const mayOperate = (agent: FragmentSqlToken, skill: FragmentSqlToken | null): FragmentSqlToken => {
  const holder = { organization: sql.fragment`m.organization_id`, membership: sql.fragment`m.id` }
  return sql.fragment`
    m.enabled and (m.role = 'admin' or (m.role = 'operator' and ${granted(holder, 'operate', agent, skill)}))`
}
