/**
 * A console in oidc mode with people of given roles, each with a session cookie of their own: rows that the product's own
 * provisioning and sessions made, without the way through a provider. Owns no expectation.
 *
 *     const house = await startOrganization({ database })
 *     const operator = await house.person('operator')
 *     await operator.api.get('/api/agents')
 */
import { provision, withdraw } from '../../actors/provisioning.ts'
import { Sessions, type SessionRules } from '../../actors/sessions.ts'
import { instruments } from '../../actors/system.ts'
import type { Role, Viewer } from '../../domain/access.ts'
import { cookieNames } from '../../http/cookies.ts'
import { Client } from './api.ts'
import { startConsole, type ConsoleOptions, type TestConsole } from './console.ts'

/** Where pages are, as A2A_AUTH_ORIGIN would say: a change without it is refused. */
export const pageOrigin = 'https://console.example'
const issuer = 'https://provider.example'

export interface Person {
  /** Sends their cookie and the page's origin with every request. */
  readonly api: Client
  readonly viewer: Viewer
  /** What their browser holds. */
  readonly token: string
  /** Takes their membership back, as an operator does. */
  withdraw(): Promise<void>
  /** Changes their role, as an operator does; their sessions stay. */
  become(role: Role): Promise<void>
}

export interface Organization extends TestConsole {
  readonly sessions: Sessions
  /** A new person, signed in. */
  person(role: Role, name?: string): Promise<Person>
}

export interface OrganizationOptions extends Omit<ConsoleOptions, 'identify' | 'oidc'> {
  readonly rules?: Partial<SessionRules>
}

let people = 0

/** `api` of what comes back is nobody's: it has no cookie. The organization is the local administrator's own. */
export async function startOrganization({ rules, ...options }: OrganizationOptions): Promise<Organization> {
  const slug = rules?.organization ?? 'local'
  const made = Promise.withResolvers<Sessions>()
  const house = await startConsole({
    ...options,
    oidc: ({ db, system: { changes } }) => {
      const sessions = new Sessions(
        { db, instruments, changes },
        {
          organization: slug,
          sessionSeconds: 3_600,
          idleSeconds: null,
          ...rules,
        },
      )
      made.resolve(sessions)
      return { mode: 'oidc', origin: pageOrigin, sessions, signIn: null }
    },
  })
  const sessions = await made.promise
  const tools = { db: house.db, instruments, changes: house.system.changes }
  const person = async (role: Role, name = `${role} ${++people}`): Promise<Person> => {
    const identity = { issuer, subject: `subject-${++people}` }
    await provision(tools, slug, { identity, name, role })
    const token = await sessions.open(identity, null)
    const viewer = token === null ? null : await sessions.look(token)
    if (token === null || !viewer) throw new Error('A person who was just admitted cannot sign in.')
    return {
      api: new Client(house.url, { cookie: `${cookieNames.session}=${token}`, origin: pageOrigin }),
      viewer,
      token,
      withdraw: async () => void (await withdraw(tools, slug, identity)),
      become: async (next) => void (await provision(tools, slug, { identity, name, role: next })),
    }
  }
  return { ...house, sessions, person }
}
