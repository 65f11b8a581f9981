/** Agents: registered by the address of a card, described by what the card says today, removed without forgetting. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../domain/agent.ts'
import type { Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const nobody = '00000000-0000-4000-8000-000000000000'

describe.each(bothDatabases)('agents on %s', (database) => {
  let house: TestConsole
  let api: Client
  let peer: RawPeer
  beforeAll(async () => {
    house = await startConsole({ database })
    api = house.api
    peer = await startRawPeer()
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  const audited = (kind: string, subject: string) =>
    house.db.pool.oneFirst(
      sql.type(z.object({ n: z.number() }))`
        select count(*)::int as n from audit where kind = ${kind} and subject_id = ${subject}`,
    )

  test('registering answers 201 with the agent, fetches nothing, and is in the audit trail', async () => {
    const reply = await api.post('/api/agents', { cardUrl: `${peer.origin}/unasked/card.json` })
    expect(reply.status).toBe(201)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.body).toEqual({
      agent: { id: expect.any(String), cardUrl: `${peer.origin}/unasked/card.json`, source: 'managed' },
    })
    expect(peer.callsOf('GetAgentCard')).toBe(0)
    const { agent } = z.object({ agent: z.object({ id: z.string() }) }).parse(reply.body)
    expect(await audited('agent.registered', agent.id)).toBe(1)
  })

  test('the same address again is the same agent, also for twins at the same time, and enables a removed one', async () => {
    const cardUrl = `${peer.origin}/twins/card.json`
    const ids = await Promise.all(Array.from({ length: 5 }, () => api.register(cardUrl)))
    expect(new Set(ids).size).toBe(1)
    const [id = ''] = ids
    expect(await audited('agent.registered', id)).toBe(1)
    expect((await api.delete(`/api/agents/${id}`)).body).toEqual({ removed: true })
    expect((await api.get(`/api/agents/${id}`)).status).toBe(404)
    expect(await api.register(cardUrl)).toBe(id)
    expect(await audited('agent.registered', id)).toBe(2)
    expect(await audited('agent.removed', id)).toBe(1)
  })

  test.each([
    [{}, 'cardUrl is required.'],
    [{ cardUrl: '' }, 'cardUrl is required.'],
    [{ cardUrl: 7 }, 'cardUrl is required.'],
    [{ cardUrl: 'ftp://agent.example/card.json' }, 'Agent Card URL must be http(s).'],
    [{ cardUrl: 'agent' }, 'Agent Card URL must be http(s).'],
    [
      { cardUrl: 'https://me:secret@agent.example/' },
      'Agent Card URL must not contain credentials, query strings or fragments.',
    ],
    [
      { cardUrl: 'https://agent.example/?a=b' },
      'Agent Card URL must not contain credentials, query strings or fragments.',
    ],
    [
      { cardUrl: 'https://agent.example/#x' },
      'Agent Card URL must not contain credentials, query strings or fragments.',
    ],
    [{ cardUrl: `https://agent.example/${'x'.repeat(1024)}` }, 'Agent Card URL exceeds 1024 characters.'],
    [{ cardUrl: 'https://agent.example/', more: 1 }, 'Unrecognized key: "more".'],
  ])('400 for %j, to register as to preview', async (body, message) => {
    for (const path of ['/api/agents', '/api/agents/preview']) {
      const reply = await api.post(path, body)
      expect(reply.status).toBe(400)
      expect(reply.body).toEqual({ error: { message } })
    }
  })

  test('the list shows each card as it is now, and an agent that cannot be found stays in it with the reason', async () => {
    const id = await api.register(peer.cardUrl)
    const gone = await startRawPeer()
    const goneId = await api.register(gone.cardUrl)
    await gone.close()
    const { status, body } = await api.get('/api/agents')
    expect(status).toBe(200)
    const { agents } = z.object({ agents: z.array(Agent) }).parse(body)
    expect(agents.find((agent) => agent.id === id)).toMatchObject({
      name: 'Raw test agent',
      trust: 'unsigned',
      skills: [{ id: 'act' }],
      card: { name: 'Raw test agent' },
      report: { version: '1.0' },
    })
    const missing = agents.find((agent) => agent.id === goneId)
    expect(missing?.error).toMatch(/^Agent Card discovery failed\. Tried: /)
    expect(missing).not.toHaveProperty('card')
    expect(missing).not.toHaveProperty('name')
  })

  test('an agent whose card cannot be read any more is listed by the name that its tasks have', async () => {
    const silent = await startRawPeer({ card: { name: 'Ledger Agent' } })
    const id = await api.register(silent.cardUrl)
    const sent = await house.finished((await house.send(id, { text: 'hold the line' })).id)
    await silent.close()
    const { agents } = z.object({ agents: z.array(Agent) }).parse((await api.get('/api/agents')).body)
    const { name, cardUrl, error, card } = agents.find((agent) => agent.id === id) ?? {}
    expect([name, cardUrl, card]).toEqual(['Ledger Agent', silent.cardUrl, undefined])
    expect(error).toMatch(/^Agent Card discovery failed\. Tried: /)
    expect((await house.task(sent.result?.localId ?? '', () => true)).agentName).toBe(name)
  })

  test.each(['1.0', '0.3'] as const)(
    'one agent: card, trust and report of a %s card; a snapshot is kept',
    async (version) => {
      const agent = await startSdkPeer({ version, binding: 'JSONRPC' })
      const id = await api.register(agent.cardUrl)
      const reply = await api.get(`/api/agents/${id}`)
      await agent.close()
      expect(reply.status).toBe(200)
      expect(reply.body).toMatchObject({
        id,
        cardUrl: agent.cardUrl,
        source: 'managed',
        trust: 'unsigned',
        card: { name: `Test agent ${version} JSONRPC` },
        report: { version, score: expect.any(Number), issues: expect.any(Array) },
      })
      const kept = await house.db.pool.oneFirst(
        sql.type(z.object({ n: z.number() }))`select count(*)::int as n from agent_card where agent_id = ${id}`,
      )
      expect(kept).toBe(1)
      const unreachable = await api.get(`/api/agents/${id}`)
      expect(unreachable.status).toBe(502)
      expect(unreachable.body).toEqual({
        error: { name: 'Error', message: expect.stringMatching(/^Agent Card discovery failed\. Tried: /) },
      })
    },
  )

  test('a preview takes a card or a base address, registers nothing and keeps nothing', async () => {
    const fresh = await startRawPeer()
    for (const cardUrl of [fresh.cardUrl, `${fresh.origin}/`]) {
      const reply = await api.post('/api/agents/preview', { cardUrl })
      expect(reply.status).toBe(200)
      expect(reply.body).toMatchObject({
        card: { name: 'Raw test agent' },
        resolvedCardUrl: fresh.cardUrl,
        report: { version: '1.0' },
      })
    }
    await fresh.close()
    const { agents } = z.object({ agents: z.array(Agent) }).parse((await api.get('/api/agents')).body)
    expect(agents.map((agent) => agent.cardUrl)).not.toContain(fresh.cardUrl)
    const failed = await api.post('/api/agents/preview', { cardUrl: fresh.cardUrl })
    expect(failed.status).toBe(502)
    expect(failed.text).toContain('Agent Card discovery failed. Tried: ')
  })

  test('an agent of the environment cannot be removed here', async () => {
    const cardUrl = `${peer.origin}/seeded/card.json`
    await house.system.agents.seed(house.viewer.organizationId, [cardUrl])
    const reply = await api.delete(`/api/agents/${await api.register(cardUrl)}`)
    expect(reply.status).toBe(409)
    expect(reply.body).toEqual({
      error: {
        name: 'Error',
        message: "This agent comes from A2A_REGISTERED_AGENTS and can't be removed from the UI.",
      },
    })
  })

  test.each([nobody, 'not-a-uuid', '%00'])('an id that names no agent (%s) is unknown everywhere', async (id) => {
    const key = { 'idempotency-key': 'k' }
    const replies = await Promise.all([
      api.get(`/api/agents/${id}`),
      api.delete(`/api/agents/${id}`),
      api.post(`/api/agents/${id}/commands`, { text: 'hello' }, key),
      api.post(`/api/agents/${id}/messages`, { text: 'hello' }),
      api.post(`/api/agents/${id}/stream`, { text: 'hello' }),
      api.post(`/api/agents/${id}/stream`, { resubscribe: true, taskId: 't' }),
      api.post(`/api/agents/${id}/tasks/t/cancel`),
    ])
    for (const reply of replies) {
      expect(reply.status).toBe(404)
      expect(reply.body).toEqual({ error: { message: 'Unknown agent.' } })
    }
  })
})
