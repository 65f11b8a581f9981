/** The door: who may pass, from where, and what a stranger learns. The order is sign-in, role, origin, handler. */
import { request as httpRequest } from 'node:http'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { rateLimits } from '../../actors/rate-counter.ts'
import type { Role } from '../../domain/access.ts'
import { cookieNames } from '../../http/cookies.ts'
import type { Client } from '../support/api.ts'
import { startConsole, type ConsoleOptions, type TestConsole } from '../support/console.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { pageOrigin, startOrganization } from '../support/people.ts'

const forbidden = { error: { message: 'This action is not permitted.' } }
const unsigned = { error: { message: 'Sign in to continue.' } }

/** Every route of this part, with what it asks of a role. */
const routes: readonly (readonly [method: string, path: string, permission: 'read' | 'operate' | 'administer'])[] = [
  ['POST', '/api/auth/logout', 'read'],
  ['GET', '/api/auth/session', 'read'],
  ['GET', '/api/agents', 'read'],
  ['GET', '/api/answering-agents', 'read'],
  ['POST', '/api/agents', 'administer'],
  ['POST', '/api/agents/preview', 'administer'],
  ['GET', '/api/agents/a', 'read'],
  ['GET', '/api/agents/a/troubles', 'read'],
  ['DELETE', '/api/agents/a', 'administer'],
  ['POST', '/api/agents/a/commands', 'operate'],
  ['GET', '/api/commands/c', 'read'],
  ['POST', '/api/agents/a/messages', 'operate'],
  ['POST', '/api/agents/a/stream', 'operate'],
  ['POST', '/api/agents/a/tasks/t/cancel', 'operate'],
  ['GET', '/api/tasks', 'read'],
  ['GET', '/api/tasks/t', 'read'],
  ['GET', '/api/tasks/t/commands', 'read'],
  ['GET', '/api/task-views', 'read'],
  ['GET', '/api/tasks/events', 'read'],
  ['GET', `/api/artifacts/${'0'.repeat(64)}`, 'read'],
  ['GET', '/api/audit?taskId=t', 'read'],
  ['GET', '/api/audit/export', 'administer'],
  ['GET', '/api/audit/chain', 'administer'],
  ['GET', '/api/actors', 'read'],
  ['GET', '/api/actors/command/c', 'read'],
  ['GET', '/api/actors/command/c/log', 'read'],
  ['GET', '/api/supervisor', 'administer'],
  ['GET', '/api/queues', 'administer'],
  ['GET', '/api/admin/security', 'administer'],
  ['POST', '/api/admin/security', 'administer'],
  ['GET', '/api/reviewers', 'operate'],
  ['GET', '/api/sends/unsettled', 'read'],
  ['GET', '/api/sends/under-way', 'read'],
  ['GET', '/api/sends/c', 'read'],
  ['POST', '/api/sends/c/settle', 'operate'],
  ['POST', '/api/sends/c/reopen', 'operate'],
  ['GET', '/api/task-actors/t', 'read'],
  ['GET', '/api/troubled-agents', 'read'],
  ['GET', '/api/unfollowed-tasks', 'read'],
]
const allowed: Record<Role, readonly string[]> = {
  admin: ['read', 'operate', 'administer'],
  operator: ['read', 'operate'],
  viewer: ['read'],
}

describe('access', () => {
  let fresh: FreshDatabase
  const open: TestConsole[] = []
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
  })
  afterAll(async () => {
    await Promise.all(open.map((house) => house.close()))
    await fresh.close()
  })
  const start = async (options: Omit<ConsoleOptions, 'database' | 'system'> = {}): Promise<TestConsole> => {
    const house = await startConsole({ database: fresh.db, system: { works: false }, ...options })
    open.push(house)
    return house
  }
  const status = async (api: Client, method: string, path: string, headers = {}): Promise<number> => {
    const cut = new AbortController()
    const response = await api.fetch(path, { method, headers, signal: cut.signal })
    cut.abort()
    return response.status
  }

  test('nobody signed in: 401 everywhere but at the sign-in routes, before anything else is looked at', async () => {
    const { api } = await start({ identify: () => null })
    for (const [method, path] of routes) {
      const response = await api.fetch(path, { method, headers: { 'sec-fetch-site': 'cross-site' } })
      expect([path, response.status]).toEqual([path, 401])
      expect(await response.json()).toEqual(unsigned)
      expect(response.headers.get('cache-control')).toBe('no-store')
    }
    expect(await status(api, 'GET', '/api/auth/login')).toBe(303)
    expect(await status(api, 'GET', '/api/nothing')).toBe(404)
  })

  test.each(['admin', 'operator', 'viewer'] as const)('%s: 403 exactly where the role does not reach', async (role) => {
    const { api } = await start({ identify: (administrator) => ({ ...administrator, role }) })
    for (const [method, path, permission] of routes) {
      const answer = await status(api, method, path)
      const reaches = allowed[role].includes(permission)
      expect([path, answer === 403]).toEqual([path, !reaches])
      expect(answer).toBeLessThan(500)
    }
  })

  test('looking at the system leaves an administrator their places to act', async () => {
    const limits = { ...rateLimits, administer: 2 }
    // Of its own: windows are the database's.
    const house = await startConsole({ database: 'postgresql', system: { works: false, limits } })
    open.push(house)
    // As an open page does, every few seconds.
    for (let look = 0; look < 3; look++)
      for (const path of ['/api/supervisor', '/api/queues']) expect((await house.api.get(path)).status).toBe(200)
    const acts = [await status(house.api, 'GET', '/api/admin/security'), await status(house.api, 'POST', '/api/agents')]
    expect([...acts, await status(house.api, 'POST', '/api/agents')]).toEqual([200, 400, 429])
  })

  test('what is not there is 404 for whoever may ask', async () => {
    const { api } = await start()
    for (const path of ['/api', '/api/', '/api/nothing', '/api/agents/a/b', '/api/auth', '/nothing']) {
      const reply = await api.get(path)
      expect([path, reply.status]).toEqual([path, 404])
      expect(reply.body).toEqual({ error: { message: 'Not found.' } })
    }
    expect(await status(api, 'PUT', '/api/agents')).toBe(405)
    expect(await status(api, 'GET', '/api/tasks/%zz')).toBe(404)
  })

  describe('the origin of a change', () => {
    let house: TestConsole
    let port: string
    beforeAll(async () => {
      house = await start()
      port = new URL(house.url).port
    })
    const logout = (headers: Record<string, string>): Promise<number> =>
      status(house.api, 'POST', '/api/auth/logout', headers)

    test('development: no origin, the own one, or another name of loopback with the same scheme and port', async () => {
      expect(await logout({})).toBe(200)
      expect(await logout({ origin: house.url })).toBe(200)
      expect(await logout({ origin: `http://localhost:${port}` })).toBe(200)
      expect(await logout({ origin: `http://[::1]:${port}` })).toBe(200)
      expect(await logout({ origin: `http://127.9.9.9:${port}`, 'sec-fetch-site': 'same-site' })).toBe(200)
      for (const origin of [
        'http://evil.example',
        `http://evil.example:${port}`,
        `https://localhost:${port}`,
        'http://localhost:1',
        'http://localhost',
        `http://localhost.evil.example:${port}`,
        'null',
        '',
        'nonsense',
      ])
        expect([origin, await logout({ origin })]).toEqual([origin, 403])
      expect(await logout({ 'sec-fetch-site': 'cross-site' })).toBe(403)
      expect(await logout({ origin: house.url, 'sec-fetch-site': 'cross-site' })).toBe(403)
    })

    test('reading is not asked for its origin', async () => {
      const headers = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
      const reply = await house.api.get('/api/auth/session', headers)
      expect(reply.status).toBe(200)
      expect(reply.headers.get('access-control-allow-origin')).toBeNull()
    })

    test('oidc: the configured origin, exactly, and always', async () => {
      const oidc = await startOrganization({ database: fresh.db, system: { works: false } })
      open.push(oidc)
      const { token } = await oidc.person('viewer')
      const asked = (headers: Record<string, string>) =>
        status(oidc.api, 'POST', '/api/auth/logout', { cookie: `${cookieNames.session}=${token}`, ...headers })
      for (const origin of [`${pageOrigin}:444`, pageOrigin.replace('https', 'http'), `${pageOrigin}.evil`, oidc.url])
        expect([origin, await asked({ origin })]).toEqual([origin, 403])
      expect(await asked({})).toBe(403)
      expect(await asked({ origin: pageOrigin, 'sec-fetch-site': 'cross-site' })).toBe(403)
      expect(await asked({ origin: pageOrigin })).toBe(200)
      expect(await asked({ origin: pageOrigin })).toBe(401)
    })

    test('a refusal comes before the body is looked at', async () => {
      const reply = await house.api.post('/api/agents', '{ broken', { origin: 'http://evil.example' })
      expect(reply.status).toBe(403)
      expect(reply.body).toEqual(forbidden)
    })

    test('bound to loopback, a foreign name for it is refused, also for reading: DNS rebinding', async () => {
      const byName = (host: string, path: string) =>
        new Promise<number | undefined>((resolve, reject) => {
          httpRequest({ host: '127.0.0.1', port, path, headers: { host } }, (response) => {
            response.resume()
            resolve(response.statusCode)
          })
            .on('error', reject)
            .end()
        })
      for (const path of ['/api/tasks', '/api/auth/session', '/']) {
        expect(await byName(`evil.example:${port}`, path)).toBe(403)
        expect(await byName('127.0.0.1.evil.example', path)).toBe(403)
      }
      expect(await byName(`localhost:${port}`, '/api/auth/session')).toBe(200)
      expect(await byName(`[::1]:${port}`, '/api/auth/session')).toBe(200)
    })
  })

  describe('sign-in in development mode', () => {
    let house: TestConsole
    beforeAll(async () => {
      house = await start()
    })

    test('the session is the local administrator', async () => {
      const reply = await house.api.get('/api/auth/session')
      expect(reply.body).toEqual({ user: { displayName: 'Local administrator', role: 'admin' }, mode: 'development' })
    })

    test.each([
      ['', '/tasks'],
      ['?returnTo=/agents', '/agents'],
      ['?returnTo=/tasks/1%3Ftab%3Dlog%23end', '/tasks/1?tab=log#end'],
      ['?returnTo=//evil.example', '/tasks'],
      ['?returnTo=/%5Cevil.example', '/tasks'],
      ['?returnTo=/%09/evil.example', '/tasks'],
      ['?returnTo=/.//evil.example', '/tasks'],
      ['?returnTo=https://evil.example', '/tasks'],
      ['?returnTo=evil', '/tasks'],
      ['?returnTo=', '/tasks'],
      ['?returnTo=/a&returnTo=/b', '/tasks'],
      ['?returnTo=/a%0d%0ax-injected:%201', '/tasks'],
      ['?returnTo=/%5Ce', '/tasks'],
      ['?returnTo=/%255Ce', '/%5Ce'],
      ['?returnTo=/..//e', '/tasks'],
      ['?returnTo=/api/auth/login', '/tasks'],
      [`?returnTo=/${'a'.repeat(1024)}`, '/tasks'],
    ])('login%s leads to %s', async (query, location) => {
      const reply = await house.api.get(`/api/auth/login${query}`)
      expect(reply.status).toBe(303)
      expect(reply.headers.get('location')).toBe(location)
      expect(reply.headers.get('x-injected')).toBeNull()
    })

    test('a callback is always the same 401', async () => {
      const reply = await house.api.get('/api/auth/callback?code=1&state=2&error=%3Cscript%3E')
      expect(reply.status).toBe(401)
      expect(reply.body).toEqual({ error: { message: 'Sign-in failed. Start a new sign-in attempt.' } })
    })
  })
})

test.each(bothDatabases)('logout on %s answers and is in the audit trail', async (database) => {
  const house = await startConsole({ database, system: { works: false } })
  const reply = await house.api.post('/api/auth/logout')
  expect([reply.status, reply.body]).toEqual([200, { signedOut: true }])
  const rows = await house.db.pool.any(
    sql.type(z.object({ kind: z.string(), actorType: z.string(), person: z.string() }))`
      select kind, actor_type as "actorType", actor_person_id as person from audit where kind = 'session.ended'`,
  )
  expect(rows).toEqual([{ kind: 'session.ended', actorType: 'user', person: house.viewer.userId }])
  await house.close()
})
