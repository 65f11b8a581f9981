/** Cards in every shape seen in the wild, and which interface is chosen. */
import express from 'express'
import { AgentCard as SdkCard } from '@a2a-js/sdk'
import { agentCardHandler } from '@a2a-js/sdk/server/express'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cardCandidates, parseCard, selectInterface } from '../../a2a/card.ts'
import type { AgentCard } from '../../a2a/card.ts'
import { complianceReport } from '../../a2a/compliance.ts'
import { supportsSkillRouting } from '../../a2a/extensions/skill-routing.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'
import { hostileJson } from './arbitraries.ts'
import { card03, card10 } from './cards.ts'

function cardOf(json: unknown): AgentCard {
  const parsed = parseCard(json)
  if ('fault' in parsed) throw new Error(parsed.fault)
  return parsed.card
}

const schemes = {
  key: { type: 'apiKey', location: 'header', name: 'X-Key' },
  http: { type: 'http', scheme: 'Bearer', bearerFormat: 'JWT' },
  oauth: {
    type: 'oauth2',
    flows: [{ kind: 'clientCredentials', tokenUrl: 'https://o/token', scopes: ['read'] }],
  },
  oidc: { type: 'openIdConnect', url: 'https://o/.well-known/openid-configuration' },
  mtls: { type: 'mutualTLS' },
}

describe('reading a card', () => {
  it('reads 1.0', () => {
    const card = cardOf(card10)
    expect(card).toMatchObject({
      name: 'A',
      provider: { organization: 'O', url: 'https://o.example/' },
      interfaces: [
        { url: 'https://h/a2a/jsonrpc', binding: 'JSONRPC', version: '1.0', tenant: 'acme' },
        { url: 'https://h/a2a/rest', binding: 'HTTP+JSON', version: '1.0' },
      ],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      securityRequirements: [{ http: [] }, { oauth: ['read'] }],
      skills: [{ id: 's', tags: ['t'], examples: ['Do it.'] }],
    })
    expect(card.securitySchemes).toEqual(schemes)
    expect(supportsSkillRouting(card, 'signalbox.example')).toBe(true)
    expect(supportsSkillRouting(card, 'other.example')).toBe(false)
  })

  it('reads 0.3', () => {
    const card = cardOf(card03)
    expect(card.interfaces).toEqual([
      { url: 'https://h/rest', binding: 'HTTP+JSON', version: '0.3' },
      { url: 'https://h/rpc', binding: 'JSONRPC', version: '0.3' },
    ])
    expect(card.capabilities).toMatchObject({ extendedAgentCard: true, streaming: false })
    expect(card.securitySchemes).toEqual(schemes)
    expect(card.securityRequirements).toEqual([{ http: [] }, { oauth: ['read'] }])
  })

  it('reads a hybrid as 1.0', () => {
    const card = cardOf({ ...card03, ...card10 })
    expect(selectInterface(card)).toEqual({
      endpoint: { url: 'https://h/a2a/jsonrpc', binding: 'JSONRPC', version: '1.0', tenant: 'acme' },
    })
  })

  it('reads what the published SDK really serves', async () => {
    const app = express()
    const sdkCard = SdkCard.fromJSON(card10)
    app.use('/card.json', agentCardHandler({ agentCardProvider: { getAgentCard: () => Promise.resolve(sdkCard) } }))
    const server = await listenOnLoopback(app)
    try {
      const response = await fetch(`${server.origin}/card.json`, { headers: { 'A2A-Version': '1.0' } })
      const json = (await response.json()) as unknown
      expect(JSON.stringify(json)).toContain('$case')
      expect(cardOf(json).securitySchemes).toEqual(schemes)
      expect(complianceReport(json).issues.map((issue) => issue.id)).toContain('security.leakedCase')
    } finally {
      await server.close()
    }
  })

  it('tolerates everything but no name and no interface', () => {
    expect(cardOf({ name: ' A ', url: 'https://h' })).toMatchObject({
      name: 'A',
      description: '',
      skills: [],
      version: '',
    })
    expect(cardOf({ name: 'A', supportedInterfaces: [], url: 'https://h' }).interfaces).toHaveLength(1)
    expect(parseCard({ url: 'https://h' })).toEqual({ fault: 'The card has no name.' })
    expect(parseCard({ name: 'A', supportedInterfaces: [{}] })).toEqual({ fault: 'The card names no interface.' })
    expect(parseCard([])).toEqual({ fault: 'The card is not a JSON object.' })
    const deep: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    expect(parseCard({ name: 'A', url: 'https://h', x: deep })).toEqual({ fault: 'The card is nested too deeply.' })
  })

  it('bounds and cleans its texts', () => {
    const skills = Array.from({ length: 2_000 }, (_, id) => ({ id: `${id}`, name: 'x'.repeat(10_000), tags: ['a\0b'] }))
    const card = cardOf({ name: `A\0${'x'.repeat(1_000)}\uD800`, description: '\uD800', url: 'https://h', skills })
    expect(card.name.length).toBeLessThanOrEqual(256)
    expect(card.name).not.toContain('\0')
    expect(card.description.isWellFormed()).toBe(true)
    expect(card.skills.length).toBe(512)
    expect(card.skills[0]).toMatchObject({ tags: ['ab'] })
    expect(cardOf({ name: 'A', url: 'https://h', iconUrl: 'javascript:alert(1)' })).not.toHaveProperty('iconUrl')
  })

  it('keeps `__proto__` a name like any other', () => {
    const json: unknown = JSON.parse(
      '{"name":"A","url":"https://h","securitySchemes":{"__proto__":{"type":"http","scheme":"x"}}}',
    )
    expect(Object.keys(cardOf(json).securitySchemes)).toEqual(['__proto__'])
  })

  it('never throws, nor does the report', () => {
    const holds = fc.property(fc.oneof(hostileJson, fc.jsonValue()), (json) => {
      const parsed = parseCard(json)
      expect('fault' in parsed || 'card' in parsed).toBe(true)
      if ('card' in parsed) selectInterface(parsed.card)
      expect(complianceReport(json).score).toBeLessThanOrEqual(100)
    })
    fc.assert(holds, { numRuns: 1_000 })
    const named = fc.property(hostileJson, (more) => {
      const json = { name: 'A', url: 'https://h', ...(typeof more === 'object' ? more : {}) }
      expect(complianceReport(json).issues.length).toBeGreaterThan(0)
      parseCard(json)
    })
    fc.assert(named, { numRuns: 500 })
  })
})

describe('choosing an interface', () => {
  const offer = (...offered: [url: string, protocolBinding: string, protocolVersion?: string][]) =>
    selectInterface(
      cardOf({
        name: 'A',
        supportedInterfaces: offered.map(([url, protocolBinding, protocolVersion]) => ({
          url,
          protocolBinding,
          protocolVersion,
        })),
      }),
    )
  it.each<[string, ReturnType<typeof offer>, unknown]>([
    [
      'card order',
      offer(['https://a', 'HTTP+JSON', '1.0'], ['https://b', 'JSONRPC', '1.0']),
      { endpoint: { url: 'https://a/', binding: 'HTTP+JSON', version: '1.0' } },
    ],
    [
      '1.0 before 0.3',
      offer(['https://a', 'JSONRPC', '0.3.0'], ['https://b', 'HTTP+JSON', '1.0.1']),
      { endpoint: { url: 'https://b/', binding: 'HTTP+JSON', version: '1.0' } },
    ],
    [
      'a later 1.x',
      offer(['https://a', 'jsonrpc', '1.4']),
      { endpoint: { url: 'https://a/', binding: 'JSONRPC', version: '1.0' } },
    ],
    [
      '0.3 where nothing else',
      offer(['grpc:443', 'GRPC', '1.0'], ['https://a', 'JSONRPC', '0.3']),
      { endpoint: { url: 'https://a/', binding: 'JSONRPC', version: '0.3' } },
    ],
    ['only gRPC', offer(['h:443', 'GRPC', '1.0']), { refused: 'grpc' }],
    ['a version to come', offer(['https://a', 'JSONRPC', '2.0']), { refused: 'none' }],
    [
      'relative and other schemes',
      offer(['/a2a', 'JSONRPC', '1.0'], ['file:///a', 'JSONRPC', '1.0']),
      { refused: 'none' },
    ],
    ['credentials in the URL', offer(['https://u:p@h/', 'JSONRPC', '1.0']), { refused: 'none' }],
    ['another binding', offer(['https://a', 'SLIMRPC', '1.0']), { refused: 'none' }],
  ])('%s', (_, selected, expected) => expect(selected).toEqual(expected))
})

describe('where a card may be', () => {
  it.each([
    ['https://h/agents/a/card.json', ['https://h/agents/a/card.json']],
    ['https://h', ['https://h/.well-known/agent-card.json', 'https://h/.well-known/agent.json']],
    ['https://h/a/', ['https://h/a/.well-known/agent-card.json', 'https://h/a/.well-known/agent.json']],
  ])('%s', (url, candidates) => expect(cardCandidates(url)).toEqual(candidates))
})
