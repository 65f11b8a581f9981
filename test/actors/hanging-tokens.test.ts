/**
 * A token endpoint that hangs: it is waited for once, its agents are told apart from agents that hang, and whoever reads other agents'
 * tasks goes on. The endpoint is real and says nothing until a test breaks its connections; no test waits for the ten seconds after
 * which the console does so itself.
 */
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { storeBinding } from '../../actors/credential-changes.ts'
import { Outbound } from '../../actors/outbound.ts'
import { scopeId } from '../../actors/reconciliation-scopes.ts'
import { instruments } from '../../actors/system.ts'
import { Vault, type KeyRing } from '../../actors/vault.ts'
import { credentialSentences as sentences } from '../../domain/credential.ts'
import { openAuthority, type Authority, type KeyPair } from '../support/certificates.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startGate, type Gate } from '../support/peers/gate.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startTokenEndpoint, type TokenEndpoint } from '../support/peers/token-endpoint.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { development } from './listeners.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const ring: KeyRing = { keys: { k1: '11'.repeat(32) }, activeKey: 'k1' }
const client = { clientId: 'signalbox', clientSecret: 'a client secret' }

interface Behind {
  readonly id: string
  readonly gate: Gate
}

describe.each(eitherDatabase)('a token endpoint that hangs, on %s', (kind) => {
  let authority: Authority
  let tls: KeyPair
  let running: RunningSystem
  let scopes: Scopes
  let peer: RawPeer
  let tokens: TokenEndpoint
  let agents: Behind[]
  /** What the gates say to whoever asks for a card. */
  let cardStatus: number
  /** Milliseconds that the process's clock has been moved. */
  let passedMs = 0

  beforeAll(async () => {
    authority = await openAuthority()
    tls = await authority.server()
    peer = await startRawPeer()
    const outbound = new Outbound(development, { ca: [authority.ca] })
    const moved = { ...instruments, monotonic: () => instruments.monotonic() + passedMs }
    running = await freshSystem(kind, { vault: ring, outbound, rhythm: followsNothing, instruments: moved })
    scopes = new Scopes(running)
  })
  afterAll(async () => {
    await running.close()
    await peer.close()
  })
  beforeEach(async () => {
    ;[agents, cardStatus] = [[], 200]
    tokens = await startTokenEndpoint({ tls, ...client, lifeSeconds: 600 })
  })
  afterEach(async () => {
    for (const { id } of agents) await running.system.agents.remove(running.viewer, id)
    tokens.release()
    await Promise.all([tokens.close(), ...agents.map(({ gate }) => gate.close())])
  })

  /** An agent at an address of its own, found by its host alone. */
  async function agentBehind(): Promise<Behind> {
    const admits = ({ operation }: { readonly operation: string }) => (operation === 'GetAgentCard' ? cardStatus : 200)
    const gate = await startGate(peer, { tls, admits })
    const { id } = await running.system.agents.register(running.viewer, `${gate.origin}/`)
    const agent = { id, gate }
    agents.push(agent)
    return agent
  }
  /** With a task that it works on, and that has been read. */
  async function agentAtWork(): Promise<Behind> {
    const agent = await agentBehind()
    await running.finished((await running.send(agent.id, { text: 'hold' })).id)
    await scopes.turn(agent.id)
    return agent
  }
  async function guard({ id, gate }: Behind): Promise<void> {
    const { issuer, url: tokenEndpoint } = tokens
    const credential = { type: 'oauthClient', issuer, tokenEndpoint, ...client } as const
    const target = { organizationId: running.viewer.organizationId, agentId: id }
    await storeBinding(
      running.db,
      new Vault(ring),
      target,
      { origins: [gate.origin], credential },
      '2026-01-01T00:00:00.000Z',
    )
  }
  /** As if it could not be read for some minutes: it is looked for anew, and its next pause is a long one. */
  const failedBefore = ({ id }: Behind) =>
    running.db.pool.query(sql.unsafe`
      update actor set snapshot = jsonb_set(snapshot, '{context,failures}', '6')
      where kind = 'reconciliation' and id = ${scopeId({ agentId: id, tenant: '' })}`)

  it('keeps one of two readers, and the other reads another agent’s tasks meanwhile', async () => {
    const [guarded, healthy] = [await agentAtWork(), await agentAtWork()]
    await guard(guarded)
    tokens.mood = 'holds'
    await scopes.begin(guarded.id)
    await tokens.asked(1)
    const reads = healthy.gate.visitsFor('GetTask').length
    expect(await scopes.turn(healthy.id)).toMatchObject({ context: { failures: 0 } })
    expect(healthy.gate.visitsFor('GetTask').length).toBe(reads + 1)
    expect(await scopes.row(guarded.id)).toMatchObject({ value: 'checking', work: 'check' })
    expect(tokens.askedSoFar).toBe(1)
    tokens.cut()
    await expect.poll(() => scopes.row(guarded.id), patience).toMatchObject({ value: 'backingOff' })
    expect((await scopes.row(guarded.id))?.context).toMatchObject({ failures: 1, reason: sentences.oauth })
  })

  it('keeps its agents’ readers for one wait each: then another agent is read, and it is the endpoint that is named', async () => {
    const [one, two, healthy] = [await agentAtWork(), await agentAtWork(), await agentAtWork()]
    for (const agent of [one, two]) {
      await guard(agent)
      await failedBefore(agent)
    }
    tokens.mood = 'holds'
    // No card is at hand that was seen just now.
    passedMs += 10_000
    const cards = [one, two].map(({ gate }) => gate.visitsFor('GetAgentCard').length)
    await Promise.all([scopes.begin(one.id), scopes.begin(two.id)])
    await tokens.asked(2)
    // Nobody is free to read it yet.
    const before = await scopes.begin(healthy.id)
    tokens.cut()
    const isRead = async (): Promise<boolean> => {
      const row = await scopes.row(healthy.id)
      return row !== null && row.revision > before && row.work === null
    }
    await expect.poll(isRead, patience).toBe(true)
    for (const { id } of [one, two]) {
      const failed = { value: 'backingOff', context: { failures: 7, reason: sentences.oauth } }
      await expect.poll(() => scopes.row(id), patience).toMatchObject(failed)
    }
    expect(tokens.askedSoFar).toBe(2)
    expect([one, two].map(({ gate }) => gate.visitsFor('GetAgentCard').length)).toEqual(cards)
  })

  it('is never asked again for an agent that was removed while it failed: its scope rests', async () => {
    const agent = await agentAtWork()
    await guard(agent)
    await failedBefore(agent)
    tokens.mood = 'fails'
    passedMs += 10_000
    expect(await scopes.turn(agent.id)).toMatchObject({ value: 'backingOff', context: { reason: sentences.oauth } })
    const asked = tokens.askedSoFar
    await running.system.agents.remove(running.viewer, agent.id)
    agents = []
    const { gate } = agent
    expect(await scopes.turn(agent.id)).toMatchObject({
      value: 'resting',
      context: { reason: 'The agent was removed.' },
    })
    expect(tokens.askedSoFar).toBe(asked)
    await gate.close()
  })

  it('is waited for once in a search for a card, at however many addresses', async () => {
    const agent = await agentBehind()
    await guard(agent)
    tokens.mood = 'fails'
    cardStatus = 404
    await expect(running.system.agents.get(running.viewer, agent.id)).rejects.toThrow(/Tried: .*404.*404/)
    expect(tokens.askedSoFar).toBe(1)
    // Whoever wants a credential is told which is missing, at the second address as at the first.
    cardStatus = 401
    await expect(running.system.agents.get(running.viewer, agent.id)).rejects.toMatchObject({
      message: sentences.oauth,
    })
    expect(tokens.askedSoFar).toBe(2)
  })
})
