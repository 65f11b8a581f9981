/**
 * Card trust through the front door: what a pinned key has signed is used, what it has not is not, and the pages say why.
 * The agent behind the cards is real and counts what reaches it.
 */
import { AgentCard as SdkCard, generateAgentCardSignature } from '@a2a-js/sdk'
import canonicalize from 'canonicalize'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { CardPolicy } from '../../actors/card-trust.ts'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { Agent } from '../../domain/agent.ts'
import { header, signer, signText, type Signer } from '../a2a/signing.ts'
import { commandIn } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { openCanaries, type Canaries } from '../support/watched-network.ts'

type Json = Record<string, unknown>

const rejected = 'Agent Card trust policy rejected this connection.'
const blocked = 'Agent network address is blocked.'
const grpcOnly = 'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.'
const interfaceGone = 'The selected interface is no longer advertised by the Agent Card.'

/** Where a card is served, and what is served there at the moment. */
interface Stand {
  readonly cardUrl: string
  readonly origin: string
  card: unknown
  readonly asked: number
}

const toClose: (() => Promise<void>)[] = []
let fresh: FreshDatabase
let peer: RawPeer
let canaries: Canaries
let key: Signer
let other: Signer
beforeAll(async () => {
  ;[fresh, peer, canaries, key, other] = await Promise.all([
    freshDatabase('pglite'),
    startRawPeer(),
    openCanaries(),
    signer('key-1'),
    signer('key-2'),
  ])
})
afterEach(async () => {
  for (const close of toClose.splice(0).toReversed()) await close()
})
afterAll(async () => {
  await Promise.all([peer.close(), canaries.close()])
  await fresh.close()
})

async function openStand(): Promise<Stand> {
  let asked = 0
  const listening = await listenOnLoopback((_request, response) => {
    asked += 1
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(stand.card))
  })
  toClose.push(() => listening.close())
  const stand = {
    cardUrl: `${listening.origin}/card.json`,
    origin: listening.origin,
    card: {} as unknown,
    get asked() {
      return asked
    },
  }
  return stand
}

async function openHouse(cards: CardPolicy, rhythm?: (kinds: Kinds) => Kinds): Promise<TestConsole> {
  const system = { cards, ...(rhythm === undefined ? {} : { rhythm }) }
  const house = await startConsole({ database: fresh.db, uiDirectory: null, system })
  toClose.push(() => house.close())
  return house
}

const pinning = (stand: Stand, ...signers: readonly Signer[]): CardPolicy => ({
  requireSigned: false,
  trustedKeys: { [stand.origin]: signers.map(({ pinned }) => pinned) },
})

const interfaceAt = (url: string, protocolBinding = 'JSONRPC') => ({ url, protocolBinding, protocolVersion: '1.0' })
const cardOf = (over: Json = {}): Json => ({
  name: 'Stand',
  description: 'Does things.',
  version: '1',
  supportedInterfaces: [interfaceAt(`${peer.origin}/rpc`)],
  capabilities: { streaming: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'act', name: 'Act', description: 'Acts.', tags: ['t'] }],
  ...over,
})
const signed = async (card: Json, by: Signer): Promise<Json> => ({
  ...card,
  signatures: [await signText(by, canonicalize(card) ?? '')],
})

async function listed(house: TestConsole, id: string): Promise<Agent | undefined> {
  const { body } = await house.api.get('/api/agents')
  return z
    .object({ agents: z.array(Agent) })
    .parse(body)
    .agents.find((agent) => agent.id === id)
}

let keys = 0
async function send(house: TestConsole, id: string): Promise<{ status: string; error: string | null }> {
  const idempotency = { 'idempotency-key': `send-${++keys}` }
  const { id: commandId } = commandIn(
    await house.api.post(`/api/agents/${id}/commands`, { text: 'direct' }, idempotency),
  )
  const { status, error } = await house.finished(commandId)
  return { status, error }
}

/** Everywhere the same sentence, and nothing reached the agent. */
async function expectRefused(house: TestConsole, stand: Stand, id: string, sentence: string): Promise<void> {
  const before = peer.callsOf('SendMessage')
  const answer = { error: { name: 'Error', message: sentence } }
  const preview = await house.api.post('/api/agents/preview', { cardUrl: stand.cardUrl })
  expect([preview.status, preview.body]).toEqual([502, answer])
  const row = await listed(house, id)
  expect(row).toMatchObject({ id, error: sentence })
  expect(row).not.toHaveProperty('card')
  const shown = await house.api.get(`/api/agents/${id}`)
  expect([shown.status, shown.body]).toEqual([502, answer])
  expect(await send(house, id)).toEqual({ status: 'failed', error: sentence })
  expect(peer.callsOf('SendMessage')).toBe(before)
  expect(canaries.touched).toBe(0)
}

describe('a card that a pinned key has signed', () => {
  test('is verified, is used, and the pages say by which key', async () => {
    const stand = await openStand()
    stand.card = await signed(cardOf(), key)
    const house = await openHouse({ ...pinning(stand, other, key), requireSigned: true })
    const id = await house.api.register(stand.cardUrl)
    const trust = {
      trust: 'verified',
      signing: { keyId: 'key-1', namedKeys: ['key-1'], explanation: 'Signed by the pinned key “key-1”.' },
    }
    expect(await listed(house, id)).toMatchObject({ id, name: 'Stand', ...trust })
    expect((await house.api.get(`/api/agents/${id}`)).body).toMatchObject({ card: stand.card, ...trust })
    expect(await send(house, id)).toEqual({ status: 'succeeded', error: null })
  })

  test('is read only as far as the signature goes: as the published SDK signs, beside fields that somebody added', async () => {
    const stand = await openStand()
    const sign = generateAgentCardSignature(key.privateKey, { alg: 'ES256', kid: 'key-1', typ: 'JOSE' })
    const evil = `http://127.0.0.1:${canaries.port}/`
    const plain = SdkCard.toJSON(await sign(SdkCard.fromJSON(cardOf({ description: '' })))) as Json
    stand.card = { ...plain, description: '', url: evil, additionalInterfaces: [{ url: evil, transport: 'JSONRPC' }] }
    const house = await openHouse(pinning(stand, key))
    const id = await house.api.register(stand.cardUrl)
    const { body, text } = await house.api.get(`/api/agents/${id}`)
    expect(body).toMatchObject({
      trust: 'verified',
      signing: { ignoredFields: ['description', 'url', 'additionalInterfaces'] },
    })
    expect(text).not.toContain(evil)
    expect(await send(house, id)).toEqual({ status: 'succeeded', error: null })
    expect(canaries.touched).toBe(0)
  })
})

describe('a card that names a pinned key and was changed', () => {
  const evil = (): string => `http://127.0.0.1:${canaries.port}/rpc`
  const apiKeyIn = (location: string): Json => ({ apiKeySecurityScheme: { location, name: 'k' } })
  const tampering: readonly (readonly [string, (card: Json) => Json])[] = [
    ['another endpoint', (card) => ({ ...card, supportedInterfaces: [interfaceAt(evil())] })],
    [
      'a further endpoint',
      (card) => ({ ...card, supportedInterfaces: [interfaceAt(evil()), interfaceAt(`${peer.origin}/rpc`)] }),
    ],
    [
      'another spelling of the endpoint',
      ({ supportedInterfaces: _, ...card }) => ({ ...card, supported_interfaces: [interfaceAt(evil())] }),
    ],
    [
      'a tenant',
      (card) => ({ ...card, supportedInterfaces: [{ ...interfaceAt(`${peer.origin}/rpc`), tenant: 'other' }] }),
    ],
    ['a skill', (card) => ({ ...card, skills: [{ id: 'act', name: 'Pay', description: 'Acts.', tags: ['t'] }] })],
    ['a capability', (card) => ({ ...card, capabilities: { streaming: true } })],
    ['a security scheme', (card) => ({ ...card, securitySchemes: { key: apiKeyIn('query') } })],
    ['no security schemes', ({ securitySchemes: _, ...card }) => card],
    ['no interface of 1.0 but one of 0.3', ({ supportedInterfaces: _, ...card }) => ({ ...card, url: evil() })],
    ['the signature of another card', (card) => ({ ...card, name: 'Another' })],
    [
      'a header that says none',
      (card) => ({ ...card, signatures: [{ protected: header({ alg: 'none', kid: 'key-1' }), signature: '' }] }),
    ],
  ]

  test('cannot be used, whatever was changed; a good one can again', async () => {
    const stand = await openStand()
    const good = await signed(cardOf({ securitySchemes: { key: apiKeyIn('header') } }), key)
    stand.card = good
    const house = await openHouse(pinning(stand, key))
    const id = await house.api.register(stand.cardUrl)
    expect(await send(house, id)).toEqual({ status: 'succeeded', error: null })
    for (const [_what, change] of tampering) {
      stand.card = change(good)
      await expectRefused(house, stand, id, rejected)
      expect(await listed(house, id)).toMatchObject({ trust: 'invalid', signing: { keyId: 'key-1' } })
    }
    stand.card = good
    expect(await listed(house, id)).toMatchObject({ trust: 'verified' })
    expect(await send(house, id)).toEqual({ status: 'succeeded', error: null })
  })

  test('cannot be used when it is of 0.3 either, where the endpoint is a field like others', async () => {
    const stand = await openStand()
    const { supportedInterfaces: _, ...rest } = cardOf()
    const legacy = await signed({ ...rest, protocolVersion: '0.3.0', url: `${peer.origin}/rpc` }, key)
    stand.card = legacy
    const house = await openHouse(pinning(stand, key))
    const id = await house.api.register(stand.cardUrl)
    expect(await listed(house, id)).toMatchObject({ trust: 'verified', report: { version: '0.3' } })
    stand.card = { ...legacy, url: evil() }
    await expectRefused(house, stand, id, rejected)
  })
})

describe('a card that no pinned key has signed', () => {
  test('is used and called what it is, unless signatures are required', async () => {
    const stand = await openStand()
    const cases = [
      ['unsigned', cardOf()],
      ['untrusted', await signed(cardOf(), other)],
    ] as const
    const lax = await openHouse(pinning(stand, key))
    const id = await lax.api.register(stand.cardUrl)
    for (const [trust, card] of cases) {
      stand.card = card
      expect(await listed(lax, id)).toMatchObject({ trust, name: 'Stand' })
      expect(await send(lax, id)).toEqual({ status: 'succeeded', error: null })
    }
    await lax.close()
    toClose.pop()
    const strict = await openHouse({ ...pinning(stand, key), requireSigned: true })
    for (const [trust, card] of cases) {
      stand.card = card
      await expectRefused(strict, stand, id, rejected)
      const row = await listed(strict, id)
      expect(row).toMatchObject({ trust })
      expect(row?.signing?.explanation).toContain('only cards that a pinned key has signed')
    }
  })

  test('is no invitation to fetch a key, wherever it says that there is one', async () => {
    const stand = await openStand()
    const jku = `http://127.0.0.1:${canaries.port}/jwks.json`
    stand.card = { ...cardOf(), signatures: [await signText(other, canonicalize(cardOf()) ?? '', { jku, x5u: jku })] }
    const house = await openHouse(pinning(stand, key))
    const id = await house.api.register(stand.cardUrl)
    expect(await listed(house, id)).toMatchObject({ trust: 'untrusted', signing: { namedKeys: ['key-2'] } })
    expect(canaries.touched).toBe(0)
  })
})

test('a card that was kept is judged by the keys of this start', async () => {
  const stand = await openStand()
  stand.card = await signed(cardOf(), key)
  const before = await openHouse({ requireSigned: false, trustedKeys: {} })
  const id = await before.api.register(stand.cardUrl)
  expect(await listed(before, id)).toMatchObject({ trust: 'untrusted' })
  await before.close()
  toClose.pop()
  const impostor = await signer('key-1')
  const after = await openHouse(pinning(stand, impostor))
  await expectRefused(after, stand, id, rejected)
})

describe('an interface', () => {
  test.each([
    ['gRPC alone', (): unknown[] => [interfaceAt(`127.0.0.1:${canaries.port}`, 'GRPC')], grpcOnly],
    ['a metadata service', (): unknown[] => [interfaceAt('http://169.254.169.254/rpc')], blocked],
    ['a mapped one', (): unknown[] => [interfaceAt('http://[::ffff:a9fe:a9fe]/rpc')], blocked],
    ['nobody', (): unknown[] => [interfaceAt(`http://0.0.0.0:${canaries.port}/rpc`, 'HTTP+JSON')], blocked],
    [
      'only forbidden ones',
      (): unknown[] => [interfaceAt('http://10.0.0.1/rpc'), interfaceAt('http://[fe80::1]/')],
      blocked,
    ],
  ])('that leads to %s is refused everywhere', async (_what, interfaces, sentence) => {
    const stand = await openStand()
    stand.card = cardOf({ supportedInterfaces: interfaces() })
    const house = await openHouse({ requireSigned: false, trustedKeys: {} })
    await expectRefused(house, stand, await house.api.register(stand.cardUrl), sentence)
  })

  test('that is forbidden leaves the others: the first permitted one is used', async () => {
    const stand = await openStand()
    const interfaces = [
      interfaceAt('127.0.0.1:1', 'GRPC'),
      interfaceAt('http://169.254.169.254/rpc'),
      interfaceAt(`${peer.origin}/rpc`),
    ]
    stand.card = cardOf({ supportedInterfaces: interfaces })
    const house = await openHouse({ requireSigned: false, trustedKeys: {} })
    expect(await send(house, await house.api.register(stand.cardUrl))).toEqual({ status: 'succeeded', error: null })
  })

  test('that was chosen for a command and has gone before it was sent ends the command', async () => {
    const stand = await openStand()
    stand.card = cardOf()
    let betweenDiscoveryAndDelivery = (): Promise<unknown> => Promise.resolve()
    const house = await openHouse({ requireSigned: false, trustedKeys: {} }, (kinds) => {
      const { command } = kinds
      const deliver = command?.work['deliver']
      if (!command || !deliver) throw new Error('There is no delivery.')
      const late: typeof deliver = async (actor, held) => {
        await betweenDiscoveryAndDelivery()
        return deliver(actor, held)
      }
      return { ...kinds, command: { ...command, work: { ...command.work, deliver: late } } }
    })
    const id = await house.api.register(stand.cardUrl)
    betweenDiscoveryAndDelivery = () => {
      stand.card = cardOf({ supportedInterfaces: [interfaceAt(`http://127.0.0.1:${canaries.port}/rpc`)] })
      return house.api.get('/api/agents')
    }
    expect(await send(house, id)).toEqual({ status: 'failed', error: interfaceGone })
    expect(canaries.touched).toBe(0)
  })
})
