/** Sessions: whose a request is, when it is nobody's any more, and what asking costs. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../persistence/database.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startOrganization, type Organization } from '../support/people.ts'

const unsigned = { error: { message: 'Sign in to continue.' } }

/** The database, with every statement that is asked of it by itself noted. */
function watched(db: Database, asked: string[]): Database {
  const watching = <T extends object>(whole: T): T =>
    new Proxy(whole, {
      get(target, name) {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        return (...args: unknown[]): unknown => {
          const [statement] = args
          if (typeof statement === 'object' && statement && 'sql' in statement) asked.push(String(statement.sql))
          return Reflect.apply(method, target, args)
        }
      },
    })
  return { ...db, pool: watching(db.pool), direct: watching(db.direct) }
}

describe.each(bothDatabases)('sessions on %s', (database) => {
  let fresh: FreshDatabase
  let house: Organization
  const asked: string[] = []
  beforeAll(async () => {
    fresh = await freshDatabase(database)
    house = await startOrganization({ database: watched(fresh.db, asked), system: { works: false } })
  })
  afterAll(async () => {
    await house.close()
    await fresh.close()
  })

  test('each request is the person of its cookie, in their present role', async () => {
    const [ada, ben] = [await house.person('operator', 'Ada'), await house.person('viewer', 'Ben')]
    const session = async (who: typeof ada) => (await who.api.get('/api/auth/session')).body
    expect(await session(ada)).toEqual({ user: { displayName: 'Ada', role: 'operator' }, mode: 'oidc' })
    expect(await session(ben)).toEqual({ user: { displayName: 'Ben', role: 'viewer' }, mode: 'oidc' })
    await ben.become('admin')
    expect(await session(ben)).toEqual({ user: { displayName: 'Ben', role: 'admin' }, mode: 'oidc' })
    const stranger = await house.api.get('/api/auth/session')
    expect([stranger.status, stranger.body]).toEqual([401, unsigned])
  })

  test('a membership that was taken back signs out at the next request, and admitting again revives no session', async () => {
    const person = await house.person('admin')
    expect((await person.api.get('/api/auth/session')).status).toBe(200)
    await person.withdraw()
    expect((await person.api.get('/api/auth/session')).status).toBe(401)
    await person.become('admin')
    expect((await person.api.get('/api/auth/session')).status).toBe(401)
  })

  test('who somebody is and whether they have a place left is one statement, for all who come at once', async () => {
    const [ada, cem] = [await house.person('operator'), await house.person('viewer')]
    // Loops ask beside; none of them asks for a session or a place.
    const atTheDoor = async (work: () => Promise<unknown>): Promise<number> => {
      asked.length = 0
      await work()
      return asked.filter((text) => /from session|join session|into rate_window/.test(text)).length
    }
    expect(await atTheDoor(() => ada.api.get('/api/auth/session'))).toBe(1)
    expect(await atTheDoor(() => ada.api.post('/api/agents/x/commands', {}, { origin: 'https://evil.example' }))).toBe(
      1,
    )
    expect(await atTheDoor(() => cem.api.post('/api/agents/x/commands', {}))).toBe(1)
    expect(await atTheDoor(() => house.api.get('/api/auth/session'))).toBe(0)
    const all = (): Promise<unknown> =>
      Promise.all([ada, cem, ada, cem].map(({ token }) => house.sessions.arrive(token, 'read', 900)))
    expect(await atTheDoor(all)).toBe(1)
  })
})
