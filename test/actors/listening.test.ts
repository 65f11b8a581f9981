/**
 * LISTEN and NOTIFY are a shortcut between systems on one PostgreSQL: with polls an hour apart, what one commits the other hears of
 * and what one leaves due the other does. Where listening is impossible, behind a pooler, polling tells the same. Owns no
 * promise that nothing is missed (test/specs/freshness.spec.ts).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Freshness } from '../../actors/freshness.ts'
import { Changes } from '../../actors/loop/changes.ts'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { named } from '../support/changes.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startPooler, type Pooler } from '../support/pooler.ts'
import { capturedLog, systemOn, type RunningSystem } from '../support/system.ts'

const hourMs = 3_600_000

/** Looks of its own an hour apart, but for the first. */
const hourly = (kinds: Kinds): Kinds =>
  Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, { ...kind, pollMs: hourMs }]))

/**
 * What a process of its own hears of the others, as far as freshness goes: each in seconds, where half a second lies between two looks.
 * With looks that are some times as far apart it would not hear the second.
 */
async function hears(
  db: Database,
  { pollMs, works = false }: { readonly pollMs?: number; readonly works?: boolean } = {},
) {
  const changes = new Changes()
  const heard = new Set<string>()
  let looks = 0
  changes.subscribe((change) => {
    if (change.organizationId === null) looks++
    for (const subject of named(change)) heard.add(subject)
  })
  const parts = { db, changes, log: capturedLog().log, works, kinds: [], nudge: () => undefined }
  const freshness = new Freshness({ ...parts, ...(pollMs === undefined ? {} : { pollMs }) })
  await freshness.open()
  const stop = new AbortController()
  const watching = freshness.watch(stop.signal)
  // The first look says where it begins: everybody is told to look for themselves.
  await expect.poll(() => looks).toBe(1)
  return {
    of: async (subject: string): Promise<void> => {
      await expect.poll(() => heard.has(subject), { timeout: 3_000 }).toBe(true)
    },
    close: async (): Promise<void> => {
      stop.abort()
      await watching
      await freshness.close()
    },
  }
}

describe('two systems on one PostgreSQL', () => {
  let fresh: FreshDatabase
  let url: string
  let peer: RawPeer
  let web: RunningSystem
  let agentId: string
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('There is nobody to hear on an embedded database.')
    url = fresh.profile.url
    peer = await startRawPeer()
    web = await systemOn(fresh.db, { works: false })
    agentId = (await web.system.agents.register(web.viewer, peer.cardUrl)).id
  })
  afterAll(async () => {
    await web.close()
    await peer.close()
    await fresh.close()
  })

  it('hear of each other’s commits, however far the next poll is', async () => {
    const db = await openDatabase({ kind: 'postgresql', url })
    expect(db.hearsOthers).toBe(true)
    const ear = await hears(db, { pollMs: hourMs })
    for (let n = 0; n < 5; n++) await ear.of((await web.send(agentId, { text: 'direct' })).id)
    await ear.close()
    await db.close()
  })

  it('do what another left due, however far the next poll is', async () => {
    const db = await openDatabase({ kind: 'postgresql', url })
    const worker = await systemOn(db, { rhythm: hourly })
    // What was left before it came is found by its first poll, and an hour begins.
    await web.finished((await web.send(agentId, { text: 'direct' })).id)
    for (let n = 0; n < 5; n++) {
      const { id } = await web.send(agentId, { text: 'direct' })
      expect(await worker.finished(id)).toMatchObject({ status: 'succeeded' })
    }
    await worker.close()
    await db.close()
  })

  describe('behind a pooler, where nobody can be heard', () => {
    let pooler: Pooler
    beforeAll(async () => {
      pooler = await startPooler(url, 3)
    })
    afterAll(() => pooler.close())

    it.each([
      ['web replicas', false],
      ['workers', true],
    ])('%s poll, and hear of the same', async (_who, works) => {
      const db = await openDatabase({ kind: 'postgresql', url: pooler.url })
      expect(db.hearsOthers).toBe(false)
      const ear = await hears(db, { works })
      for (let n = 0; n < 3; n++) await ear.of((await web.send(agentId, { text: 'direct' })).id)
      await ear.close()
      await db.close()
    })
  })
})
