/**
 * Teams and grants as they are shown and asked for: the shapes of `/api/admin/security` and of reviewers. Apart from access.ts,
 * which every page of the console loads. Does not own what a grant lets a person see (persistence/visibility.ts).
 */
import * as z from 'zod/mini'
import { Role } from './access.ts'

/** What a grant may allow. `operate` includes `read`; administering is a role's alone. */
export const GrantPermission = z.enum(['read', 'operate'])
export type GrantPermission = z.infer<typeof GrantPermission>

export const GrantSubject = z.enum(['organization', 'membership', 'team'])
export type GrantSubject = z.infer<typeof GrantSubject>

export const Team = z.object({ id: z.string(), name: z.string(), enabled: z.boolean() })
export type Team = z.infer<typeof Team>

/** An agent, or one skill of it where `skillId` is not null, given to a subject. A revoked grant is disabled and stays. */
export const Grant = z.object({
  id: z.string(),
  agentId: z.string(),
  skillId: z.nullable(z.string()),
  subjectType: GrantSubject,
  subjectId: z.string(),
  permission: GrantPermission,
  enabled: z.boolean(),
})
export type Grant = z.infer<typeof Grant>

/** The answer of `GET /api/admin/security`. Memberships are those that are enabled; teams and grants are all there ever were. */
export const AccessRecord = z.object({
  organizationId: z.string(),
  teams: z.array(Team),
  memberships: z.array(z.object({ id: z.string(), role: Role, name: z.string() })),
  teamMembers: z.array(z.object({ id: z.string(), teamId: z.string(), membershipId: z.string() })),
  grants: z.array(Grant),
  credentials: z.array(
    z.object({
      agentId: z.string(),
      kind: z.enum(['bearer', 'apiKey', 'oauthClient', 'mtls']),
      enabled: z.boolean(),
      updatedAt: z.string(),
    }),
  ),
})
export type AccessRecord = z.infer<typeof AccessRecord>

/** Lower case, as ids are written here. */
const id = z.guid().check(z.toLowerCase())
const skillId = z.nullable(z.string().check(z.minLength(1), z.maxLength(255)))
const name = z.string().check(z.trim(), z.minLength(1), z.maxLength(200))

/** What `POST /api/admin/security` may ask for. */
export const AccessChange = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('createTeam'), name }),
  z.strictObject({ action: z.literal('addTeamMember'), teamId: id, membershipId: id }),
  z.strictObject({ action: z.literal('removeTeamMember'), teamId: id, membershipId: id }),
  z.strictObject({ action: z.literal('disableTeam'), teamId: id }),
  z.strictObject({
    action: z.literal('grant'),
    agentId: id,
    skillId,
    subjectType: GrantSubject,
    subjectId: id,
    permission: GrantPermission,
  }),
  z.strictObject({ action: z.literal('revokeGrant'), grantId: id }),
])
export type AccessChange = z.infer<typeof AccessChange>

/** Somebody who can decide about a task. `self`: the person who asks. */
export const Reviewer = z.object({
  membershipId: z.string(),
  displayName: z.string(),
  role: Role,
  self: z.boolean(),
})
export type Reviewer = z.infer<typeof Reviewer>
