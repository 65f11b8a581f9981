/** People for tests below HTTP, where nobody signs in. */
import type { Viewer } from '../../domain/access.ts'

/** An administrator whose organization, person and membership share an id. */
export const administratorOf = (id: string): Viewer => ({
  organizationId: id,
  userId: id,
  membershipId: id,
  role: 'admin',
  displayName: 'An administrator',
})
