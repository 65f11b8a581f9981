/**
 * Card trust below HTTP: what a policy makes of a card, and that a card which was kept under other keys or another network
 * policy is judged by the present ones before anybody speaks to what it names.
 */
import canonicalize from 'canonicalize'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseCard } from '../../a2a/card.ts'
import { signedForms } from '../../a2a/signed-forms.ts'
import { CardTrust, type CardPolicy } from '../../actors/card-trust.ts'
import { AgentDoor } from '../../actors/credentials.ts'
import { Discovery } from '../../actors/discovery.ts'
import { Outbound, type OutboundPolicy } from '../../actors/outbound.ts'
import { instruments } from '../../actors/system.ts'
import { Vault } from '../../actors/vault.ts'
import { card10 } from '../a2a/cards.ts'
import { signer, signText, type Signer } from '../a2a/signing.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { capturedLog } from '../support/system.ts'
import { development, production } from './listeners.ts'

const origin = 'https://h'
const cardUrl = `${origin}/card.json`
let key: Signer
let signed: Record<string, unknown>
let fresh: FreshDatabase
beforeAll(async () => {
  key = await signer('key-1')
  signed = { ...card10, signatures: [await signText(key, canonicalize(card10) ?? '')] }
  fresh = await freshDatabase('pglite')
})
afterAll(() => fresh.close())

const pinned = (...keys: readonly Signer[]): CardPolicy => ({
  requireSigned: false,
  trustedKeys: { [origin]: keys.map((each) => each.pinned) },
})

async function judged(policy: CardPolicy, json: unknown, url = cardUrl) {
  const parsed = parseCard(json)
  if ('fault' in parsed) throw new Error(parsed.fault)
  return new CardTrust(policy).judge(parsed.card, json, url)
}

describe('a policy', () => {
  it('pins keys for an origin: scheme, host and port', async () => {
    for (const url of [cardUrl, 'https://h:443/agents/7/card.json', 'https://H/other.json'])
      expect(await judged(pinned(key), signed, url)).toMatchObject({ trust: 'verified' })
    for (const url of [
      'http://h/card.json',
      'https://h:444/card.json',
      'https://h.example/card.json',
      'https://h./card.json',
    ])
      expect(await judged(pinned(key), signed, url)).toMatchObject({ trust: 'untrusted' })
  })

  it('has no keys for names of objects', async () => {
    const policy = { requireSigned: false, trustedKeys: {} }
    expect(await judged(policy, signed, 'https://constructor/')).toMatchObject({ trust: 'untrusted' })
  })

  it('finds no usable card where the signature covers none: an endpoint of 0.3 beside empty interfaces of 1.0', async () => {
    const hybrid = { ...card10, supportedInterfaces: [{}], url: 'https://h/rpc' }
    const [, bySpecification = ''] = signedForms(hybrid)
    expect(bySpecification).not.toContain('https://h/rpc')
    const json = { ...hybrid, signatures: [await signText(key, bySpecification)] }
    expect(await judged({ ...pinned(), requireSigned: false }, json)).toMatchObject({ trust: 'untrusted' })
    expect(await judged(pinned(key), json)).toMatchObject({
      trust: 'invalid',
      usable: null,
      signing: { explanation: 'The signature by the pinned key “key-1” covers no usable card.' },
    })
  })

  it('tells the ids of keys and the names of fields shortened, and not without bounds', async () => {
    const name = 'k'.repeat(1_000)
    const entry = await signText({ ...key, pinned: { ...key.pinned, kid: name } }, 'x')
    const { signing } = await judged(pinned(key), { ...card10, signatures: Array.from({ length: 40 }, () => entry) })
    expect(signing.namedKeys).toHaveLength(16)
    expect(Math.max(...signing.namedKeys.map((each) => each.length))).toBe(256)
  })
})

describe('a card that was kept', () => {
  const discovery = (cards: CardPolicy, policy: OutboundPolicy = development): Discovery => {
    const { db } = fresh
    const outbound = new Outbound(policy)
    const { log } = capturedLog()
    const { monotonic } = instruments
    const door = new AgentDoor({ db, outbound, vault: new Vault(null), log, monotonic })
    const trust = new CardTrust(cards)
    return new Discovery({ db, outbound, instruments, trust, extensionHost: 'signalbox.example', door })
  }
  const kept = (card: unknown) => ({ id: 'a', cardUrl, card: card === null ? null : JSON.stringify(card) })
  const chosen = { endpoint: { url: 'https://h/a2a/jsonrpc' } }

  it('is used as long as the keys of this start allow it', async () => {
    const impostor = await signer('key-1')
    expect(await discovery(pinned()).kept(kept(signed))).toMatchObject(chosen)
    expect(await discovery(pinned(key)).kept(kept(signed))).toMatchObject(chosen)
    expect(await discovery(pinned(impostor)).kept(kept(signed))).toBeNull()
    expect(await discovery({ ...pinned(key), requireSigned: true }).kept(kept(signed))).toMatchObject(chosen)
    expect(await discovery({ ...pinned(key), requireSigned: true }).kept(kept(card10))).toBeNull()
    expect(await discovery(pinned(key)).kept(kept(null))).toBeNull()
  })

  it('is used only for an interface that the network policy permits, which is not always the first', async () => {
    const both = {
      ...card10,
      supportedInterfaces: [
        { url: 'https://elsewhere.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: 'https://h/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      ],
    }
    expect(await discovery(pinned(), production(origin)).kept(kept(card10))).toMatchObject(chosen)
    expect(await discovery(pinned(), production('https://other.example')).kept(kept(card10))).toBeNull()
    expect(await discovery(pinned(), production(origin)).kept(kept(both))).toMatchObject({
      endpoint: { url: 'https://h/rest' },
    })
    const plain = { ...card10, supportedInterfaces: [{ ...both.supportedInterfaces[0], url: 'http://h/rpc' }] }
    expect(await discovery(pinned(), production(origin, 'http://h')).kept(kept(plain))).toBeNull()
  })
})
