/**
 * Senders who are presumed, at the commit that asks: what stands and what does not, how many places are given out, and what becomes
 * of a command whose first attempt was not heard of.
 */
import { BackendTerminatedUnexpectedlyError, sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Unproven } from '../../actors/command.ts'
import { Sessions } from '../../actors/sessions.ts'
import { instruments } from '../../actors/system.ts'
import type { Database } from '../../persistence/database.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { holdPresumptions, type Presumed, type Presumption } from '../../persistence/presumptions.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startOrganization, type Organization, type Person } from '../support/people.ts'

const limit = 20
const Taken = z.object({ taken: z.number() })
const cut = () => new BackendTerminatedUnexpectedlyError(new Error('Connection terminated unexpectedly'))

/**
 * Of an attempt at once nothing is heard: what went before it is committed, and it is, or is not. `heard`: the answer of what went
 * before came, and nobody knows of the rest, which is undone.
 */
type Loss = 'committed' | 'undone' | 'heard'
/** `loss` is asked for by the flights that something goes before, and by no others: actors fly meanwhile, too. */
const deaf = (flight: Flight, loss: () => Loss | undefined): Flight => {
  let mine: Loss | undefined
  let committing: Promise<void> = Promise.resolve()
  const before: Flight['before'] = {
    any: async (statement) => {
      await flight.before.any(statement)
      if (mine === 'committed') await committing
      throw cut()
    },
  }
  const commit = () => (committing = flight.commit())
  return new Proxy(flight, {
    get(target, name) {
      if (name === 'before') {
        mine ??= loss()
        return mine === undefined || mine === 'heard' ? flight.before : before
      }
      if (name === 'commit' && mine !== undefined) return mine === 'committed' ? commit : () => Promise.reject(cut())
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

describe.each(eitherDatabase)('a presumption on %s', (kind) => {
  let fresh: FreshDatabase
  let house: Organization
  let peer: RawPeer
  let agentId: string
  let ada: Person
  let presumption: Presumption
  const losses: Loss[] = []
  /** Nothing flies before that. */
  let stalled: Promise<void> | null = null
  /** What happens between an attempt at once and the next. */
  let meanwhile: (() => Promise<unknown>) | null = null

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    const fly: Database['fly'] = async (work) => {
      await stalled
      let lost: Loss | undefined
      try {
        const result = await fresh.db.fly((flight) => work(deaf(flight, () => (lost = losses.shift()))))
        if (lost === undefined) return result
      } catch (error) {
        if (lost === undefined) throw error
      }
      await meanwhile?.()
      throw cut()
    }
    house = await startOrganization({ database: { ...fresh.db, fly } })
    peer = await startRawPeer()
    agentId = (await house.system.agents.register(house.viewer, peer.cardUrl)).id
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
    await fresh.close()
  })
  beforeEach(async () => {
    losses.length = 0
    meanwhile = null
    ada = await house.person('admin')
    presumption = await presumed(ada)
    // No window ends while a test counts in it.
    await fresh.db.pool.query(sql.unsafe`
      update rate_window set starts_at = now() + interval '1 minute', taken = 0 where bucket = ${presumption.bucket}`)
  })

  async function presumed({ token }: Pick<Person, 'token'>): Promise<Presumption> {
    await house.sessions.arrive(token, 'operate', limit)
    const found = house.sessions.presume(token, 'operate', limit)
    if (!found) throw new Error('Nobody is presumed.')
    return found
  }
  const taken = () =>
    fresh.db.pool.oneFirst(sql.type(Taken)`select taken from rate_window where bucket = ${presumption.bucket}`)
  const commands = () =>
    fresh.db.pool.oneFirst(
      sql.type(Taken)`select count(*)::int as taken from command where person_id = ${ada.viewer.userId}`,
    )
  const accept = (idempotencyKey = newToken()) =>
    house.system.commands.accept(
      ada.viewer,
      { agentId, body: { action: 'send', tenant: '', text: 'direct' }, idempotencyKey },
      presumption,
    )
  const hold = (asked: readonly Presumed[]) => holdPresumptions(fresh.db.direct, asked)
  const ids = (count: number) => Array.from({ length: count }, () => newToken())

  it('that stands takes a place, and its command is delivered', async () => {
    const { command } = await accept()
    expect(await house.finished(command.id)).toMatchObject({ status: 'succeeded' })
    expect(await taken()).toBe(1)
  })

  it.each<Loss>(['committed', 'undone'])(
    'of which nothing was heard is asked again: the command was %s',
    async (loss) => {
      losses.push(loss)
      const { command, replayed } = await accept()
      expect(replayed).toBe(false)
      expect(await house.finished(command.id)).toMatchObject({ status: 'succeeded' })
      expect(peer.receiptsOf(command.messageId)).toBe(1)
      expect(await commands()).toBe(1)
      // Nobody heard that a place was taken: it is taken again, and never given out twice.
      expect(await taken()).toBe(2)
    },
  )

  // An attempt that may still come is looked for some 13 s: once is enough.
  const afterwards: readonly (readonly [Loss, number])[] = [
    ['committed', 1],
    ...(kind === 'postgresql' ? [['undone', 0] as const] : []),
  ]
  it.each(afterwards)('that stood and stands no more: the command was %s', async (loss, kept) => {
    losses.push(loss)
    meanwhile = () => house.sessions.end(ada.token)
    const answer = accept()
    if (kept === 1) expect((await answer).replayed).toBe(false)
    else
      await expect(answer).rejects.toThrow(
        'The database has not answered yet; ask again with the same idempotency key.',
      )
    expect(await commands()).toBe(kept)
  })

  it('that was heard to stand is not asked again, whatever becomes of the commit', async () => {
    losses.push('heard')
    const { command } = await accept()
    expect(await house.finished(command.id)).toMatchObject({ status: 'succeeded' })
    expect([await commands(), await taken()]).toEqual([1, 1])
  })

  it('that was heard not to stand is told so, whatever becomes of the commit', async () => {
    await house.sessions.end(ada.token)
    losses.push('heard')
    await expect(accept()).rejects.toBeInstanceOf(Unproven)
    expect([await commands(), await taken()]).toEqual([0, 0])
  })

  it('whose session is over is told at once: nothing is written, and nobody is counted', async () => {
    await house.sessions.end(ada.token)
    await expect(accept()).rejects.toBeInstanceOf(Unproven)
    expect([await commands(), await taken()]).toEqual([0, 0])
  })

  it('has no place beyond the limit, and keeps those of others apart', async () => {
    const ben = await presumed(await house.person('admin'))
    const mine = ids(limit + 5)
    const theirs = ids(3)
    const standing = await hold([
      ...mine.map((id) => ({ id, ...presumption })).toReversed(),
      ...theirs.map((id) => ({ id, ...ben })),
    ])
    // First come, first served: ids are in the order of time.
    expect([...standing].toSorted()).toEqual([...mine.slice(0, limit), ...theirs].toSorted())
    expect((await hold([{ id: newToken(), ...presumption }])).size).toBe(0)
  })

  it('of one person by two sessions has their places once', async () => {
    const { session } = presumption
    if (!session) throw new Error('There is a session.')
    await fresh.db.pool.query(sql.unsafe`
      insert into session (token_hash, id, membership_id, created_at, seen_at, expires_at)
      select 'the other', gen_random_uuid(), membership_id, created_at, seen_at, expires_at from session
      where token_hash = ${session.tokenHash}`)
    const other = { ...presumption, session: { ...session, tokenHash: 'the other' } }
    const standing = await hold([
      ...ids(12).map((id) => ({ id, ...presumption })),
      ...ids(12).map((id) => ({ id, ...other })),
    ])
    expect(standing.size).toBe(limit)
  })

  it.each([
    ['another role', (it: Presumption) => ({ ...it, viewer: { ...it.viewer, role: 'viewer' as const } })],
    ['another membership', (it: Presumption) => ({ ...it, viewer: { ...it.viewer, membershipId: newToken() } })],
    ['another organization', (it: Presumption) => withRules(it, { slug: 'elsewhere' })],
    [
      'a session that is unknown',
      (it: Presumption) => ({ ...it, session: it.session && { ...it.session, tokenHash: 'x' } }),
    ],
    ['a session that has expired', (it: Presumption) => withRules(it, { at: '2100-01-01T00:00:00Z' })],
    ['a session that was idle for too long', (it: Presumption) => withRules(it, { idleSince: '2100-01-01T00:00:00Z' })],
  ])('of %s does not stand, and is not counted', async (_, other) => {
    const [good, bad] = [newToken(), newToken()]
    expect([
      ...(await hold([
        { id: bad, ...other(presumption) },
        { id: good, ...presumption },
      ])),
    ]).toEqual([good])
    expect(await taken()).toBe(1)
    expect((await hold([{ id: newToken(), ...other(presumption) }])).size).toBe(0)
  })

  const withRules = (it: Presumption, rules: Partial<NonNullable<Presumption['session']>['good']>): Presumption => ({
    ...it,
    session: it.session && { ...it.session, good: { ...it.session.good, ...rules } },
  })

  it('of a disabled membership does not stand', async () => {
    await ada.withdraw()
    expect((await hold([{ id: newToken(), ...presumption }])).size).toBe(0)
  })

  it('begins a window anew when the last one is over', async () => {
    await fresh.db.pool.query(sql.unsafe`
      update rate_window set starts_at = now() - interval '5 minutes', taken = ${limit} where bucket = ${presumption.bucket}`)
    expect((await hold([{ id: newToken(), ...presumption }])).size).toBe(1)
    expect(await taken()).toBe(1)
  })

  it('is of somebody whose session need not be noted as in use yet', async () => {
    let now = new Date()
    const tools = { db: fresh.db, instruments: { ...instruments, now: () => now }, changes: house.system.changes }
    // Kept to a tenth of the limit: half of that until it is noted, half of that while it is presumed.
    const sessions = new Sessions(tools, { organization: 'local', sessionSeconds: 3_600, idleSeconds: 100 })
    await sessions.arrive(ada.token, 'operate', limit)
    const asked = now.getTime()
    now = new Date(asked + 4_900)
    expect(sessions.presume(ada.token, 'operate', limit)).not.toBeNull()
    now = new Date(asked + 5_000)
    expect(sessions.presume(ada.token, 'operate', limit)).toBeNull()
  })

  it('is not worth it while a commit is late', async () => {
    const passed = Promise.withResolvers<void>()
    stalled = passed.promise
    expect(house.system.commands.isPrompt).toBe(true)
    const late = accept()
    await expect.poll(() => house.system.commands.isPrompt).toBe(false)
    stalled = null
    passed.resolve()
    await late
    await expect.poll(() => house.system.commands.isPrompt).toBe(true)
  })

  it('is of somebody who had a place when they last asked', async () => {
    await fresh.db.pool.query(sql.unsafe`update rate_window set taken = ${limit} where bucket = ${presumption.bucket}`)
    expect(await house.sessions.arrive(ada.token, 'operate', limit)).toMatchObject({ hasPlace: false })
    expect(house.sessions.presume(ada.token, 'operate', limit)).toBeNull()
    expect(house.sessions.presume(ada.token, 'read', limit)).toBeNull()
    expect(house.sessions.presume((await house.person('admin')).token, 'operate', limit)).toBeNull()
  })
})
