/**
 * The waits of a system that is composed as bin/ composes it, with nothing laid in: how long each loop and each stream asks to be left alone.
 * That the numbers of each kind are the specification's is rhythms.test.ts; here is that they are what is waited for.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { openSystem, type Parts, type Running } from '../../bin/composition.ts'
import { readConfig } from '../../bin/config.ts'
import { openLog } from '../../bin/log.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { hearWaits } from './asked-waits.ts'

let fresh: FreshDatabase
let directory: string
beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
  directory = mkdtempSync(join(tmpdir(), 'signalbox-waits-'))
})
afterAll(async () => {
  await fresh.close()
  rmSync(directory, { recursive: true, force: true })
})

/** What was asked for since the test began, by whom. */
const waits = new Map<string, Set<number>>()
let deafen: () => void
beforeEach(() => {
  waits.clear()
  deafen = hearWaits(({ ms, by }) => waits.set(by, (waits.get(by) ?? new Set()).add(ms)))
})
afterEach(() => deafen())
const waitsOf = (by: string): number[] => [...(waits.get(by) ?? [])].toSorted((a, b) => a - b)

async function composed(works: boolean, parts: Parts = {}): Promise<Running> {
  if (fresh.profile.kind !== 'postgresql') throw new Error('Others are heard of on a PostgreSQL only.')
  const config = readConfig({
    NODE_ENV: 'development',
    A2A_AUTH_MODE: 'development',
    A2A_DATA_DIR: directory,
    A2A_DATABASE_PROFILE: 'postgresql',
    A2A_DATABASE_URL: fresh.profile.url,
    // Without it nobody looks for push that is due.
    A2A_PUSH_CALLBACK_ORIGIN: 'http://127.0.0.1:9',
    A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'true',
    A2A_PUSH_SIGNING_KEY: '0f'.repeat(32),
  })
  const running = await openSystem(config, openLog('silent'), works, false, parts)
  onTestFinished(() => running.close())
  return running
}

describe('what a running system asks to wait for', () => {
  it.each([
    ['a worker', true, 250],
    ['a web replica', false, 500],
  ])('%s looks for what others committed as often as the specification says', async (_who, works, pollMs) => {
    await composed(works)
    // After each look a gap, in which it is not to be woken, and then the rest of the way to the next.
    await expect.poll(() => waitsOf('freshness Freshness.watch')).toHaveLength(2)
    expect(waitsOf('freshness Freshness.watch').reduce((sum, ms) => sum + ms, 0)).toBe(pollMs)
  })

  it('each kind looks for what is due as often as its rhythm says', async () => {
    // No two alike, so that each can be told by its length: five minutes and so many seconds.
    const lengths: number[] = []
    const apart = (kinds: Kinds): Kinds =>
      Object.fromEntries(
        Object.entries(kinds).map(([name, kind], n) => {
          lengths.push(300_000 + n * 1000)
          return [name, { ...kind, pollMs: 300_000 + n * 1000 }]
        }),
      )
    const { system } = await composed(true, { rhythm: apart })
    expect(lengths).toHaveLength(Object.keys(system.kinds).length)
    await expect.poll(() => waitsOf('loop/worker Worker.loop')).toEqual(lengths)
  })

  it('a stream may be silent for 60 s, and last 30 min', async () => {
    const peer = await startRawPeer()
    onTestFinished(() => peer.close())
    const { system } = await composed(true)
    const viewer = await system.localAdministrator()
    const { id: agentId } = await system.agents.register(viewer, peer.cardUrl)
    const body = { action: 'send', tenant: '', text: 'hold' } as const
    await system.commands.accept(viewer, { agentId, body, idempotencyKey: 'a stream' })
    await expect.poll(() => peer.subscribed()).toHaveLength(1)
    await expect.poll(() => waitsOf('outbound chunksOf')).toEqual([60_000])
    // Until its head comes, and from then on altogether.
    expect(waitsOf('outbound Outbound.openStream')).toEqual([60_000, 30 * 60_000])
  })
})
