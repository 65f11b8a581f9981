/**
 * Whom a reader of an agent's tasks blames for a wait: the agent for its own silence, and never for a database that is slow. The
 * agent is a real listener; the database is held by somebody else's transaction.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ArtifactStore } from '../../persistence/artifacts.ts'
import { Bell } from '../../actors/loop/bell.ts'
import { CardTrust } from '../../actors/card-trust.ts'
import { AgentDoor } from '../../actors/credentials.ts'
import { Discovery } from '../../actors/discovery.ts'
import type { Held, LeasedActor } from '../../actors/loop/kinds.ts'
import { Reconciling } from '../../actors/reconciliation.ts'
import { instruments } from '../../actors/system.ts'
import { ParserPool } from '../../actors/threads/pool.ts'
import { SecondLooks } from '../../actors/second-looks.ts'
import { Vault } from '../../actors/vault.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { capturedLog, freshSystem, type RunningSystem } from '../support/system.ts'
import { development, door as openDoor } from './listeners.ts'

/** How long an agent's card is waited for here, and a turn is, milliseconds; and how long the database takes, seconds. */
const readMs = 1_000
const slowSeconds = 1.5
const turnMs = 1_000

describe.each(eitherDatabase)('a reader that looks for an agent, on %s', (kind) => {
  let running: RunningSystem
  let peer: RawPeer
  beforeEach(async () => {
    running = await freshSystem(kind, { works: false })
    peer = await startRawPeer()
  })
  afterEach(async () => {
    await running.close()
    await peer.close()
  })

  function readerOf({ db }: RunningSystem): Reconciling {
    const { now, monotonic, newToken } = instruments
    const { log } = capturedLog()
    const outbound = openDoor(development)
    const door = new AgentDoor({ db, outbound, vault: new Vault(null), log, monotonic })
    const extensionHost = 'signalbox.example'
    const discovery = new Discovery({ db, outbound, instruments, trust: new CardTrust(), extensionHost, door })
    const artifacts = new ArtifactStore('unused', { newName: newToken, now })
    const parts = { db, discovery, door, artifacts, pool: new ParserPool({ threads: 1 }), sidebandUris: [] }
    return new Reconciling(
      { ...parts, newToken, now, monotonic, secondLooks: new SecondLooks(monotonic) },
      { quickMs: readMs, readMs, searchMs: readMs, turnMs },
    )
  }

  const held: Held = {
    signal: new AbortController().signal,
    turn: new AbortController().signal,
    isHeld: () => true,
    news: new Bell(),
    beforehand: () => Promise.resolve(),
    busy: () => undefined,
    record: () => Promise.reject(new Error('Nothing is to be told.')),
    note: () => Promise.resolve(),
  }
  /** A scope whose last reading failed, so that its agent is looked for anew. */
  const scopeOf = (agentId: string): LeasedActor => ({
    ref: { kind: 'reconciliation', id: agentId },
    organizationId: running.viewer.organizationId,
    context: { agentId, tenant: '', failures: 1 },
    isDoubted: true,
    trustedFrom: 0,
  })

  it('does not blame it for a database that answers late', async () => {
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const begun = Promise.withResolvers<void>()
    const holding = running.db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`lock table agent in access exclusive mode`)
      begun.resolve()
      await tx.query(sql.unsafe`select pg_sleep(${slowSeconds})`)
    })
    await begun.promise
    const { output } = await readerOf(running).list(scopeOf(agentId), held)
    await holding
    expect(output).toMatchObject({ kind: 'listed' })
    // What it took to find the agent is longer than a turn, and no part of one.
    expect(peer.callsOf('ListTasks')).toBe(1)
  })

  it('blames it for its own silence, after its own time', async () => {
    peer.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const { output } = await readerOf(running).list(scopeOf(agentId), held)
    expect(output).toMatchObject({ kind: 'failed', reason: 'The agent did not answer in time.' })
  })
})
