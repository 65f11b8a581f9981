/**
 * Agents behind a gate: every kind of credential over real TLS, what goes along where, and what does not. The gate writes down
 * who came with what; the product's word is not asked for it.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BindingUnusable, resealAll, revokeBinding, storeBinding } from '../../actors/credential-changes.ts'
import { AgentDoor } from '../../actors/credentials.ts'
import { limits, Outbound } from '../../actors/outbound.ts'
import { instruments } from '../../actors/system.ts'
import { Vault, type KeyRing } from '../../actors/vault.ts'
import { credentialSentences as sentences, type Binding, type Credential } from '../../domain/credential.ts'
import type { Command } from '../../domain/command.ts'
import { openAuthority, type Authority, type KeyPair } from '../support/certificates.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startGate, type Gate, type Visit } from '../support/peers/gate.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startTokenEndpoint, type TokenEndpoint } from '../support/peers/token-endpoint.ts'
import { capturedLog, systemOn, type RunningSystem } from '../support/system.ts'
import { development } from './listeners.ts'

const ring: KeyRing = { keys: { k1: '11'.repeat(32) }, activeKey: 'k1' }
const at = '2026-01-01T00:00:00.000Z'
const clientSecret = 'a client secret: with %, + and more'

describe.each(eitherDatabase)('credentials on %s', (kind) => {
  let authority: Authority
  let tls: KeyPair
  let fresh: FreshDatabase
  let peer: RawPeer
  let gate: Gate
  let mutual: Gate
  let tokens: TokenEndpoint
  let running: RunningSystem
  let agentId: string
  let admits: (visit: Visit) => number
  let jumpedMs = 0

  beforeAll(async () => {
    authority = await openAuthority()
    tls = await authority.server()
    fresh = await freshDatabase(kind)
    peer = await startRawPeer()
    mutual = await startGate(peer, { tls, clientAuthority: authority.ca, admits: (visit) => admits(visit) })
    tokens = await startTokenEndpoint({ tls, clientId: 'signalbox', clientSecret, lifeSeconds: 600 })
    running = await systemOn(fresh.db, {
      vault: ring,
      outbound: new Outbound(development, { ca: [authority.ca] }),
      instruments: { ...instruments, monotonic: () => performance.now() + jumpedMs },
    })
  })
  afterAll(async () => {
    await running.close()
    await Promise.all([fresh.close(), peer.close(), mutual.close(), tokens.close()])
  })
  beforeEach(async () => {
    admits = () => 200
    tokens.mood = 'works'
    // A new address each time, and so a new agent: what still follows the tasks of the last test stays behind its own gate.
    gate = await startGate(peer, { tls, admits: (visit) => admits(visit) })
    agentId = (await running.system.agents.register(running.viewer, gate.cardUrl)).id
  })
  afterEach(async () => {
    await running.system.agents.remove(running.viewer, agentId)
    await gate.close()
  })

  const vault = new Vault(ring)
  const target = () => ({ organizationId: running.viewer.organizationId, agentId })
  const bindTo = (id: string, credential: Credential, origins = [gate.origin]) =>
    storeBinding(running.db, vault, { ...target(), agentId: id }, { origins, credential } satisfies Binding, at)
  const bind = (credential: Credential, origins?: string[]) => bindTo(agentId, credential, origins)
  const newToken = () => `token-${randomUUID()}`
  const bearer = (token = newToken()) => ({ type: 'bearer', token }) as const
  const oauth = (more: { readonly scope?: string; readonly clientSecret?: string } = {}): Credential => ({
    type: 'oauthClient',
    issuer: tokens.issuer,
    tokenEndpoint: tokens.url,
    clientId: 'signalbox',
    clientSecret,
    ...more,
  })
  const ended = async (text = 'hello', id = agentId): Promise<Command> =>
    running.finished((await running.send(id, { text })).id)
  const failure = async (): Promise<string | null> => {
    const { status, error } = await ended()
    expect(status).toBe('failed')
    return error
  }
  const sendsFrom = (from: number) => gate.visits.slice(from).filter(({ operation }) => operation === 'SendMessage')

  test.each<readonly [string, (secret: string) => Credential, (secret: string) => object]>([
    ['a bearer token', (token) => ({ type: 'bearer', token }), (token) => ({ authorization: `Bearer ${token}` })],
    ['an API key', (value) => ({ type: 'apiKey', name: 'X-Agent-Key', value }), (value) => ({ 'x-agent-key': value })],
  ])('%s goes along with every operation: card, message, stream, read, cancel', async (_what, credential, fields) => {
    const secret = newToken()
    await bind(credential(secret))
    const { result } = await ended('hold')
    await gate.asked('SubscribeToTask', 1)
    const cancel = { action: 'cancelTask' as const, taskId: result?.taskId ?? '' }
    const cancelled = await running.finished((await running.send(agentId, cancel)).id)
    expect(cancelled).toMatchObject({ status: 'succeeded' })
    const seen = gate.visits.map(({ operation }) => operation)
    expect(seen).toEqual(expect.arrayContaining(['GetAgentCard', 'SendMessage', 'SubscribeToTask', 'CancelTask']))
    for (const { headers } of gate.visits) expect(headers).toMatchObject(fields(secret))
  })

  test('a 401 is an end: required without a binding, failed with one, asked once, and said without the secret', async () => {
    admits = ({ operation }) => (operation === 'SendMessage' ? 401 : 200)
    expect(await failure()).toBe(sentences.required)
    const token = newToken()
    await bind(bearer(token))
    for (const status of [401, 403]) {
      admits = ({ operation }) => (operation === 'SendMessage' ? status : 200)
      const from = gate.visits.length
      expect(await failure()).toBe(sentences.refused)
      expect(sendsFrom(from).map(({ headers }) => headers.authorization)).toEqual([`Bearer ${token}`])
    }
    const told = running.lines.filter(({ message }) => message === 'the agent refused the credential')
    expect(told.map(({ fields }) => fields['reason'])).toEqual(['HTTP 401', 'HTTP 403'])
    expect(JSON.stringify(running.lines)).not.toContain(token)
  })

  test('a card behind the gate is shown to who has the credential, and says why not to others', async () => {
    const token = newToken()
    admits = ({ headers }) => (headers.authorization === `Bearer ${token}` ? 200 : 401)
    await expect(running.system.agents.get(running.viewer, agentId)).rejects.toMatchObject({
      message: sentences.required,
    })
    await bind(bearer(token))
    expect(await running.system.agents.get(running.viewer, agentId)).toMatchObject({ id: agentId })
    // Nobody's agent yet: a preview goes without.
    const from = gate.visits.length
    await expect(running.system.agents.preview(gate.cardUrl)).rejects.toThrow(/Tried: .*\(HTTP 401\)/)
    expect(gate.visits.slice(from).filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
    await revokeBinding(running.db, target(), at)
    await expect(running.system.agents.get(running.viewer, agentId)).rejects.toMatchObject({
      message: sentences.disabled,
    })
  })

  test('goes to no origin that is not listed: the card is fetched without, the message not at all', async () => {
    await bind(bearer(), ['https://agent.example', gate.origin.replace('127.0.0.1', 'localhost')])
    const from = gate.visits.length
    expect(await failure()).toBe(sentences.destination)
    const visits = gate.visits.slice(from)
    expect(visits.map(({ operation }) => operation)).toEqual(visits.map(() => 'GetAgentCard'))
    expect(visits.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
    // Plain HTTP is no origin that could be listed, also where the network policy lets it pass.
    const { id } = await running.system.agents.register(running.viewer, peer.cardUrl)
    await bindTo(id, bearer())
    expect(await ended('hello', id)).toMatchObject({ status: 'failed', error: sentences.destination })
    await running.system.agents.remove(running.viewer, id)
  })

  test('is blotted out of an answer: of its body, its type and its other fields', async () => {
    const token = newToken()
    await bind(bearer(token))
    admits = () => 418
    const outbound = new Outbound(development, { ca: [authority.ca] })
    const { log } = capturedLog()
    const door = new AgentDoor({ db: running.db, outbound, vault, log, monotonic: () => performance.now() })
    const request = { method: 'GET', url: gate.cardUrl, headers: {}, requestId: '' } as const
    const sent = await door.exchange(agentId, request, limits.card)
    await outbound.close()
    if (sent.kind !== 'answered') throw new Error(sent.message)
    const stars = '*'.repeat(token.length)
    expect(sent.contentType).toBe(`application/json; shown="Bearer ${stars}"`)
    expect(sent.headers).toMatchObject({ 'content-type': sent.contentType, 'x-shown': `Bearer ${stars}` })
    expect(JSON.parse(Buffer.from(sent.body).toString())).toEqual({ error: `No entry with Bearer ${stars}.` })
  })

  test('is not tried at the next address of a card once one refused it', async () => {
    const { id } = await running.system.agents.register(running.viewer, `${gate.origin}/`)
    await bindTo(id, bearer())
    admits = () => 401
    const from = gate.visits.length
    await expect(running.system.agents.get(running.viewer, id)).rejects.toMatchObject({ message: sentences.refused })
    const proofs = gate.visits.slice(from).map(({ headers }) => headers.authorization !== undefined)
    expect(proofs).toEqual([true, false])
    await running.system.agents.remove(running.viewer, id)
  })

  test('is never taken along by a redirect', async () => {
    await bind(bearer())
    admits = ({ operation }) => (operation === 'SendMessage' ? 307 : 200)
    const from = gate.visits.length
    expect(await ended()).toMatchObject({ status: 'uncertain' })
    expect(sendsFrom(from)).toHaveLength(1)
    expect(gate.visits.slice(from).filter(({ operation }) => operation.includes('elsewhere'))).toEqual([])
  })

  test('what another process stores or revokes counts from the next use', async () => {
    const [first, second] = [newToken(), newToken()]
    const from = gate.visits.length
    await bind(bearer(first))
    await ended()
    await bind({ type: 'apiKey', name: 'X-Agent-Key', value: second })
    await ended()
    await revokeBinding(running.db, target(), at)
    expect(await failure()).toBe(sentences.disabled)
    expect(sendsFrom(from).map(({ headers }) => [headers.authorization, headers['x-agent-key']])).toEqual([
      [`Bearer ${first}`, undefined],
      [undefined, second],
    ])
    await bind(bearer(first))
    expect(await ended()).toMatchObject({ status: 'succeeded' })
  })

  test('a stream ends within five seconds of what it brings once its binding is replaced, and opens with the new one', async () => {
    await bind(bearer())
    const streams = gate.visitsFor('SubscribeToTask').length
    const { result } = await ended('hold')
    await gate.asked('SubscribeToTask', streams + 1)
    const token = newToken()
    await bind(bearer(token))
    jumpedMs += 5_000
    const taskId = result?.taskId ?? ''
    const said = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'still here' }] }
    peer.script.emit(taskId, {
      statusUpdate: { taskId, contextId: 'c', status: { state: 'TASK_STATE_WORKING', message: said } },
    })
    await gate.asked('SubscribeToTask', streams + 2)
    expect(gate.visitsFor('SubscribeToTask').at(-1)?.headers.authorization).toBe(`Bearer ${token}`)
    peer.script.finish()
    await running.task(result?.localId ?? '', ({ state }) => state === 'TASK_STATE_COMPLETED')
  })

  test('without its key a binding does not open, a text moved from another agent neither, and encrypting again changes neither secret nor version', async () => {
    await bind(bearer())
    const other = { keys: { k2: '22'.repeat(32), ...ring.keys }, activeKey: 'k2' }
    expect(await resealAll(running.db, new Vault(other), target().organizationId)).toMatchObject({ unreadable: 0 })
    expect(await failure()).toBe(sentences.vault)
    const told = running.lines.filter(({ message }) => message === 'a credential could not be opened')
    expect(told.at(-1)?.fields).toMatchObject({ agentId, reason: 'unknown-key' })
    expect(
      (await resealAll(running.db, new Vault({ ...other, activeKey: 'k1' }), target().organizationId)).resealed,
    ).toBeGreaterThan(0)
    expect(await ended()).toMatchObject({ status: 'succeeded' })
    const { id } = await running.system.agents.register(running.viewer, peer.cardUrl)
    await bindTo(id, bearer())
    await running.db.raw((client) =>
      client.query(
        'update credential set sealed = (select sealed from credential where agent_id = $1) where agent_id = $2',
        [id, agentId],
      ),
    )
    expect(await failure()).toBe(sentences.vault)
    // What opens and is no binding is not quoted either.
    const words = `no binding but ${randomUUID()}`
    const { sealed } = await vault.seal({ ...target(), kind: 'bearer' }, words)
    await running.db.raw((client) =>
      client.query('update credential set sealed = $1 where agent_id = $2', [sealed, agentId]),
    )
    expect(await failure()).toBe(sentences.vault)
    expect(JSON.stringify(running.lines)).not.toContain(words.slice(0, 10))
    await running.system.agents.remove(running.viewer, id)
  })

  describe('an OAuth client', () => {
    test('gets one token for all who ask at once, and asks as the grant says', async () => {
      await bind(oauth({ scope: 'tasks:read tasks:write' }))
      admits = ({ headers }) => (tokens.isValid(headers.authorization) ? 200 : 401)
      const asked = tokens.askedSoFar
      tokens.mood = 'holds'
      const sent = await Promise.all(Array.from({ length: 8 }, () => running.send(agentId, { text: 'hello' })))
      await tokens.asked(asked + 1)
      tokens.release()
      for (const { id } of sent) expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
      expect(tokens.askedSoFar).toBe(asked + 1)
      expect(Object.fromEntries(tokens.forms.at(-1) ?? [])).toEqual({
        grant_type: 'client_credentials',
        scope: 'tasks:read tasks:write',
      })
    })

    test('drops a token that the agent refuses, and sends nothing again with another', async () => {
      await bind(oauth())
      admits = ({ headers }) => (tokens.isValid(headers.authorization) ? 200 : 401)
      // A message without a task, which nobody follows: the next message is the first to meet the refusal.
      await ended('direct')
      const asked = tokens.askedSoFar
      tokens.revokeAll()
      const from = gate.visits.length
      expect(await failure()).toBe(sentences.refused)
      expect(sendsFrom(from)).toHaveLength(1)
      expect(await ended('direct')).toMatchObject({ status: 'succeeded' })
      expect(tokens.askedSoFar).toBe(asked + 1)
    })

    test.each(['fails', 'redirects'] as const)('that gets no token because its endpoint %s says so', async (mood) => {
      await bind(oauth())
      tokens.mood = mood
      const from = gate.visits.length
      expect(await failure()).toBe(sentences.oauth)
      expect(sendsFrom(from)).toEqual([])
      tokens.mood = 'works'
      expect(await ended()).toMatchObject({ status: 'succeeded' })
    })

    test('with a wrong secret says so, and the endpoint’s words stay out of the log', async () => {
      const wrong = `wrong-${randomUUID()}`
      await bind(oauth({ clientSecret: wrong }))
      expect(await failure()).toBe(sentences.oauth)
      const lines = JSON.stringify(running.lines)
      expect(lines).not.toContain(wrong)
      expect(lines).not.toContain(Buffer.from(`signalbox:${wrong}`).toString('base64'))
    })
  })

  describe('a client certificate', () => {
    let guarded: string
    beforeEach(async () => {
      guarded = (await running.system.agents.register(running.viewer, mutual.cardUrl)).id
    })
    afterEach(async () => {
      await running.db.raw((client) => client.query('delete from credential where agent_id = $1', [guarded]))
      await running.system.agents.remove(running.viewer, guarded)
    })
    const present = (credential: Credential) => bindTo(guarded, credential, [mutual.origin])

    test('is shown by a pool of its own, and another one after it was replaced', async () => {
      for (const name of ['console one', 'console two']) {
        await present({ type: 'mtls', ...(await authority.client(name)), ca: authority.ca })
        const from = mutual.visits.length
        expect(await ended('direct', guarded)).toMatchObject({ status: 'succeeded' })
        expect(mutual.visits.slice(from).length).toBeGreaterThan(0)
        expect(new Set(mutual.visits.slice(from).map(({ certificate }) => certificate))).toEqual(new Set([name]))
      }
    })

    test('is asked for in the handshake: who has none, or one of another authority, does not come in', async () => {
      const from = mutual.visits.length
      expect(await ended('hello', guarded)).toMatchObject({ status: 'failed' })
      const stranger = await openAuthority('Another authority')
      await present({ type: 'mtls', ...(await stranger.client('stranger')), ca: authority.ca })
      expect(await ended('hello', guarded)).toMatchObject({ status: 'failed' })
      // Nor does the console go to a server that its own authority does not know.
      await present({ type: 'mtls', ...(await authority.client('console')), ca: stranger.ca })
      expect(await ended('hello', guarded)).toMatchObject({ status: 'failed' })
      expect(mutual.visits.slice(from)).toEqual([])
    })

    test('with another key than its own is not stored', async () => {
      const { cert } = await authority.client('one')
      const { key } = await authority.client('two')
      await expect(present({ type: 'mtls', cert, key })).rejects.toBeInstanceOf(BindingUnusable)
      await expect(present({ type: 'mtls', cert: 'not a certificate', key })).rejects.toBeInstanceOf(BindingUnusable)
    })
  })
})
