/** Attempts and sessions as rows: taken once under a race, refused when over, and forgotten in bounded passes. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { provisionMember, disableMember, ensureOrganization, findMember } from '../../persistence/people.ts'
import {
  deleteSession,
  findSessions,
  forgetSessions,
  insertSession,
  meetArrivals,
  type Arrivals,
} from '../../persistence/sessions.ts'
import { forgetAttempts, insertAttempt, takeAttempt } from '../../persistence/sign-in.ts'
import { newToken } from '../../actors/tokens.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const at = (minutes: number): string => new Date(Date.UTC(2026, 0, 1, 0, minutes)).toISOString()

describe.each(bothDatabases)('on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())

  it('an attempt is taken once, in time, by its own browser, which is told of its others', async () => {
    const { pool } = fresh.db
    const add = (stateHash: string, bindingHash: string) =>
      insertAttempt(pool, { stateHash, bindingHash, sealed: `sealed ${stateHash}`, expiresAt: at(10) })
    for (const state of ['one', 'two', 'three']) await add(state, 'ada')
    await add('four', 'ben')
    const take = (stateHash: string, bindingHash: string, minutes = 9) =>
      takeAttempt(pool, { stateHash, bindingHashes: [bindingHash, 'of nothing'] }, at(minutes))
    expect(await take('four', 'ada')).toEqual({ sealed: null, hasOthers: true })
    expect(await take('one', 'ada', 10)).toEqual({ sealed: null, hasOthers: false })
    const both = await Promise.all([take('one', 'ada'), take('one', 'ada')])
    expect(both.map(({ sealed }) => sealed).toSorted((a, b) => (a === null ? 1 : b === null ? -1 : 0))).toEqual([
      'sealed one',
      null,
    ])
    expect(await take('two', 'ada')).toEqual({ sealed: 'sealed two', hasOthers: true })
    expect(await take('three', 'ada')).toEqual({ sealed: 'sealed three', hasOthers: false })
    await forgetAttempts(pool, at(9))
    expect(await take('four', 'ben')).toEqual({ sealed: 'sealed four', hasOthers: false })
  })

  it('a session is good until it is over, idle, ended, or its membership is disabled', async () => {
    const { pool } = fresh.db
    const identity = { issuer: 'https://provider.example', subject: 'Ada' }
    const organizationId = await ensureOrganization(pool, 'acme', newToken())
    const fresh_ = { personId: newToken(), membershipId: newToken() }
    const { membershipId } = await provisionMember(
      pool,
      organizationId,
      { identity, name: 'Ada', role: 'viewer' },
      fresh_,
    )
    for (const [tokenHash, minutes] of [
      ['short', 5],
      ['long', 60],
    ] as const)
      await insertSession(pool, { tokenHash, id: newToken(), membershipId, createdAt: at(0), expiresAt: at(minutes) })
    const find = async (tokenHash: string, minutes: number, idleSince: string | null = null, slug = 'acme') =>
      (await findSessions(pool, [tokenHash, 'nobody'], { slug, at: at(minutes), idleSince })).get(tokenHash)
        ?.displayName ?? null
    expect(await find('short', 4)).toBe('Ada')
    expect(await find('short', 5)).toBeNull()
    expect(await find('long', 4, null, 'elsewhere')).toBeNull()
    expect(await find('long', 20, at(0))).toBeNull()
    const arrivals = [{ tokenHash: 'long', permission: 'read', roles: ['viewer'], wanted: 1, limit: 9 }] as const
    const arrive = (minutes: number, seenBefore: string | null) =>
      meetArrivals(pool, arrivals, { slug: 'acme', at: at(minutes), idleSince: null }, seenBefore)
    await arrive(14, null)
    expect(await find('long', 20, at(0))).toBeNull()
    await arrive(15, at(0))
    await arrive(16, at(14))
    expect(await find('long', 20, at(14))).toBe('Ada')
    expect(await find('long', 20, at(15))).toBeNull()
    await forgetSessions(pool, at(5))
    expect(await pool.anyFirst(sql.unsafe`select token_hash from session`)).toEqual(['long'])
    expect(await findMember(pool, 'acme', { ...identity, subject: 'ada' })).toBeNull()
    expect(await findMember(pool, 'acme', { ...identity, issuer: `${identity.issuer}/` })).toBeNull()
    expect(await disableMember(pool, 'acme', identity)).toMatchObject({ membershipId })
    expect(await disableMember(pool, 'acme', identity)).toBeNull()
    expect(await find('long', 20)).toBeNull()
    expect(await findMember(pool, 'acme', identity)).toBeNull()
    expect(await deleteSession(pool, 'long', at(20))).toMatchObject({ membershipId, isAlive: true })
    expect(await deleteSession(pool, 'long', at(20))).toBeNull()
  })

  it('whoever comes is known and counted at once: once, by their role, whatever the session, and no further than to the limit', async () => {
    const { pool } = fresh.db
    const organizationId = await ensureOrganization(pool, 'counted', newToken())
    const people: Record<string, string> = {}
    for (const [name, role] of [
      ['Ben', 'operator'],
      ['Cem', 'viewer'],
    ] as const) {
      const identity = { issuer: 'https://provider.example', subject: name }
      const fresh_ = { personId: newToken(), membershipId: newToken() }
      const { personId, membershipId } = await provisionMember(pool, organizationId, { identity, name, role }, fresh_)
      people[name] = personId
      for (const tokenHash of [name, `${name}'s other`])
        await insertSession(pool, { tokenHash, id: newToken(), membershipId, createdAt: at(0), expiresAt: at(5) })
      for (const permission of ['read', 'operate'])
        await pool.query(sql.unsafe`
          insert into rate_window (bucket, starts_at, taken)
          values (${`${permission}/${personId}`}, now() + interval '1 minute', 0)`)
    }
    const ask = (tokenHash: string, permission: 'read' | 'operate', wanted: number): Arrivals => {
      const roles = permission === 'read' ? (['operator', 'viewer'] as const) : (['operator'] as const)
      return { tokenHash, permission, roles, wanted, limit: 10 }
    }
    const arrive = async (...arrivals: Arrivals[]) => {
      const met = await meetArrivals(pool, arrivals, { slug: 'counted', at: at(1), idleSince: null }, null)
      return met.map((person) => person && [person.viewer.displayName, person.granted])
    }
    const taken = (permission: string, name: string) =>
      pool.oneFirst(sql.unsafe`select taken from rate_window where bucket = ${`${permission}/${people[name] ?? ''}`}`)
    const [ben, benToo, cem] = ['Ben', "Ben's other", 'Cem']
    expect(
      await arrive(ask(cem, 'operate', 3), ask(ben, 'read', 4), ask('nobody', 'read', 1), ask(benToo, 'read', 5)),
    ).toEqual([['Cem', 0], ['Ben', 4], null, ['Ben', 5]])
    expect(await taken('operate', 'Cem')).toBe(0)
    expect(await taken('read', 'Ben')).toBe(9)
    expect(await arrive(ask(ben, 'read', 3), ask(benToo, 'read', 3), ask(ben, 'operate', 1))).toEqual([
      ['Ben', 1],
      ['Ben', 0],
      ['Ben', 1],
    ])
    // Nothing is written any more, and everybody is still known.
    const full = await taken('read', 'Ben')
    expect(await arrive(ask(benToo, 'read', 2), ask(cem, 'read', 1))).toEqual([
      ['Ben', 0],
      ['Cem', 1],
    ])
    expect(await taken('read', 'Ben')).toBe(full)
    const many = await Promise.all(
      Array.from({ length: 15 }, (_, n) => arrive(ask(n % 2 ? ben : benToo, 'operate', 1))),
    )
    expect(many.filter(([person]) => person?.[1] === 1)).toHaveLength(9)
  })
})
