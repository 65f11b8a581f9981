/**
 * Who sends is presumed from their request before, and the commit that accepts asks: nobody who is not there any more sends
 * anything, every request takes one place and no limit is passed, in whatever order requests come and at whichever replica.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { rateLimits } from '../../actors/rate-counter.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { Client } from '../support/api.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { cookieNames } from '../../http/cookies.ts'
import { pageOrigin, startOrganization, type Organization, type Person } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const Window = z.object({ taken: z.number() })
const operate = 40
const limits = { ...rateLimits, operate }

/** Their window is not over while a test counts in it. */
const withoutEnd = (db: Database, { viewer }: Person) =>
  db.pool.query(sql.unsafe`
    insert into rate_window (bucket, starts_at, taken) values (${`operate/${viewer.userId}`}, now() + interval '1 minute', 0)`)

/** At the door; the commit that asks is tried on both (test/actors/presumptions.test.ts). */
describe.each(eitherDatabase)('senders on %s', (database) => {
  let fresh: FreshDatabase
  let house: Organization
  let peer: RawPeer
  let agentId: string
  let ada: Person
  let keys = 0

  beforeAll(async () => {
    fresh = await freshDatabase(database)
    house = await startOrganization({ database: fresh.db, system: { limits } })
    peer = await startRawPeer()
    agentId = await (await house.person('admin')).api.register(peer.cardUrl)
  })
  afterAll(async () => {
    await house.close()
    await fresh.close()
    await peer.close()
  })
  beforeEach(async () => {
    ada = await house.person('admin')
    await withoutEnd(fresh.db, ada)
    // They have been here before: from now on they are presumed.
    expect((await send()).status).toBe(202)
  })

  const send = (key = `key ${++keys}`, api: Client = ada.api, body: unknown = { text: 'hello' }, route = 'commands') =>
    api.post(`/api/agents/${agentId}/${route}`, body, { 'idempotency-key': key })
  const taken = async (): Promise<number> =>
    fresh.db.pool.oneFirst(
      sql.type(Window)`select taken from rate_window where bucket = ${`operate/${ada.viewer.userId}`}`,
    )
  const accepted = async (): Promise<number> =>
    fresh.db.pool.oneFirst(
      sql.type(Window)`select count(*)::int as taken from command where person_id = ${ada.viewer.userId}`,
    )
  const statuses = (answers: readonly { readonly status: number }[]) =>
    Object.fromEntries(
      [...Map.groupBy(answers, ({ status }) => status)].map(([status, { length }]) => [status, length]),
    )

  test('who comes at once finds as many places as there are', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => send()))
    expect(statuses(answers)).toEqual({ 202: operate - 1, 429: 60 - (operate - 1) })
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.body).toEqual({ error: { message: 'Too many requests. Try again shortly.' } })
    expect(refused?.headers.get('retry-after')).toBe('60')
    expect(await accepted()).toBe(operate)
  })

  test('every request takes one place, whatever is said to it', async () => {
    const said = [
      await send('the key'),
      // The same again, and something else under the same key.
      await send('the key'),
      await send('the key', ada.api, { text: 'something else' }),
      await send('broken', ada.api, '{ broken'),
      await send('unknown', ada.api, { text: 'x', skillId: 'none' }),
      await ada.api.post(`/api/agents/${agentId}/commands`, { text: 'no key' }),
      await ada.api.post(`/api/agents/${crypto.randomUUID()}/commands`, { text: 'x' }, { 'idempotency-key': 'nobody' }),
      await ada.api.post(
        `/api/agents/${agentId}/commands`,
        { text: 'x' },
        { 'idempotency-key': 'k', origin: 'https://evil.example' },
      ),
      // Followed, and a look at what is not there.
      await send('followed', ada.api, { text: 'hello' }, 'stream'),
      await send('seen', ada.api, { resubscribe: true, taskId: 'nobody' }, 'stream'),
      await send('large', ada.api, { text: 'x'.repeat(100_000) }),
    ]
    expect(said.map(({ status }) => status)).toEqual([202, 202, 409, 400, 400, 400, 404, 403, 200, 404, 202])
    expect(await taken()).toBe(1 + said.length)
    expect(await accepted()).toBe(4)
  })

  test('who has no place left is told so, and not what is wrong with their request', async () => {
    await Promise.all(Array.from({ length: operate }, () => send()))
    for (const body of ['{ broken', { text: 'x'.repeat(100_000) }, { text: 'x', skillId: 'none' }, { text: 'hello' }])
      expect((await send(undefined, ada.api, body)).status).toBe(429)
  })

  test.each([
    ['whose session is over', () => house.sessions.end(ada.token), 401],
    ['whose membership was taken back', () => ada.withdraw(), 401],
    ['who may only look', () => ada.become('viewer'), 403],
    ['who was granted nothing', () => ada.become('operator'), 404],
  ] as const)('somebody %s sends nothing more', async (_, change, status) => {
    const before = await accepted()
    await change()
    for (const route of ['commands', 'messages', 'stream']) {
      const answer = await send(undefined, ada.api, { text: 'hello' }, route)
      expect(answer.status).toBe(status)
      // Nobody is told whose a session was.
      expect(answer.headers.has('x-viewer-id')).toBe(status !== 401)
    }
    expect((await send('broken', ada.api, '{ broken')).status).toBe(status === 404 ? 400 : status)
    expect(await accepted()).toBe(before)
  })

  test('of many whose session ends while they send, nobody is answered what is not so', async () => {
    const sends = Array.from({ length: 20 }, () => send())
    await house.sessions.end(ada.token)
    const told = statuses(await Promise.all(sends))
    expect(Object.keys(told).every((status) => status === '202' || status === '401')).toBe(true)
    expect(await accepted()).toBe(1 + (told['202'] ?? 0))
  })

  test('a session of somebody else is theirs', async () => {
    const ben = await house.person('admin')
    const mine = await Promise.all(Array.from({ length: 10 }, () => send()))
    const theirs = await Promise.all(Array.from({ length: 10 }, () => send(undefined, ben.api)))
    expect(mine.every(({ headers }) => headers.get('x-viewer-id') === ada.viewer.userId)).toBe(true)
    expect(theirs.every(({ headers }) => headers.get('x-viewer-id') === ben.viewer.userId)).toBe(true)
    expect(await accepted()).toBe(11)
  })
})

describe('two replicas', () => {
  let fresh: FreshDatabase
  let other: Database
  let replicas: readonly [Organization, Organization]
  let peer: RawPeer
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    other = await openDatabase(fresh.profile)
    replicas = [
      await startOrganization({ database: fresh.db, system: { limits, works: false } }),
      await startOrganization({ database: other, system: { limits, works: false } }),
    ]
    peer = await startRawPeer()
  })
  afterAll(async () => {
    for (const replica of replicas) await replica.close()
    await other.close()
    await fresh.close()
    await peer.close()
  })

  test('presume the same person, and together they pass no limit', async () => {
    const ada = await replicas[0].person('admin')
    await withoutEnd(fresh.db, ada)
    const agentId = await ada.api.register(peer.cardUrl)
    const doors = replicas.map(
      ({ url }) => new Client(url, { cookie: `${cookieNames.session}=${ada.token}`, origin: pageOrigin }),
    )
    const send = (api: Client, key: string) =>
      api.post(`/api/agents/${agentId}/commands`, { text: 'hello' }, { 'idempotency-key': key })
    for (const [i, api] of doors.entries()) expect((await send(api, `first ${i}`)).status).toBe(202)
    const answers = await Promise.all(
      Array.from({ length: 35 }, (_, n) => doors.map((api, i) => send(api, `at ${i}, ${n}`))).flat(),
    )
    const places = operate - doors.length
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(places)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(answers.length - places)
    await replicas[1].sessions.end(ada.token)
    for (const api of doors) expect((await send(api, 'afterwards')).status).toBe(401)
  })
})
