/**
 * Who is asking, and what their role lets them ask for: roles and permissions. An identity is made by the door (http/guard.ts)
 * and carried through every operation. Does not own teams and grants (grant.ts) or what they let a person see
 * (persistence/visibility.ts).
 */
import * as z from 'zod/mini'

export const Role = z.enum(['admin', 'operator', 'viewer'])
export type Role = z.infer<typeof Role>

export type Permission = 'read' | 'operate' | 'administer'

const ceilings: Record<Role, readonly Permission[]> = {
  admin: ['read', 'operate', 'administer'],
  operator: ['read', 'operate'],
  viewer: ['read'],
}
export const mayEver = (role: Role, permission: Permission): boolean => ceilings[role].includes(permission)
/** Whose role reaches so far. */
export const whoMay = (permission: Permission): readonly Role[] =>
  Role.options.filter((role) => mayEver(role, permission))

/** The person behind a request. */
export interface Viewer {
  readonly organizationId: string
  readonly userId: string
  readonly membershipId: string
  readonly role: Role
  readonly displayName: string
}

export const Session = z.object({
  user: z.object({ displayName: z.string(), role: Role }),
  mode: z.enum(['development', 'oidc']),
})
export type Session = z.infer<typeof Session>
