/**
 * Hostile addresses through the front door: registered, listed, looked at and sent to, they are refused with the specified
 * sentence and nothing of this process connects to them, in each profile. Whether it connects is what Node says it does.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ResolveAll } from '../../actors/outbound/connector.ts'
import { Outbound, type OutboundPolicy } from '../../actors/outbound.ts'
import { rateLimits } from '../../actors/rate-counter.ts'
import { Agent } from '../../domain/agent.ts'
import { commandIn, type Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { hostileHosts, hostileNames, type HostileKind } from '../support/hostile-hosts.ts'
import type { CardJson } from '../support/peers/card.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { openCanaries, watchNetwork, type Canaries, type WatchedNetwork } from '../support/watched-network.ts'

const blocked = 'Agent network address is blocked.'
const notListed = 'Agent target is not in the configured origin allowlist.'
const needsHttps = 'Production agent targets require HTTPS.'

/** One administrator asks more in a second here than a person may in a minute. */
const limits = { ...rateLimits, read: 100_000, operate: 100_000, administer: 100_000 }

const answers = new Map(hostileNames.map(([name, addresses]) => [new URL(`http://${name}/`).hostname, addresses]))
/** Knows the hostile names and nobody else. */
const lies: ResolveAll = (name, done) => {
  const found = answers.get(name)
  if (!found) return done(Object.assign(new Error(`${name} is not known`), { code: 'ENOTFOUND' }), [])
  done(
    null,
    found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  )
}

const targets: readonly (readonly [string, HostileKind])[] = [
  ...hostileHosts,
  ...hostileNames.map(([name, , kind]) => [name, kind] as const),
]

interface Profile {
  readonly name: string
  readonly scheme: 'http' | 'https'
  readonly profile: OutboundPolicy['profile']
  readonly allowPrivateNetworks: boolean
}

const profiles: readonly Profile[] = [
  { name: 'development', scheme: 'http', profile: 'development', allowPrivateNetworks: false },
  { name: 'development with private networks', scheme: 'http', profile: 'development', allowPrivateNetworks: true },
  { name: 'production', scheme: 'https', profile: 'production', allowPrivateNetworks: false },
  { name: 'production with private networks', scheme: 'https', profile: 'production', allowPrivateNetworks: true },
]

const mayReach = (kind: HostileKind, { profile, allowPrivateNetworks }: Profile): boolean =>
  (kind === 'loopback' && profile === 'development') || (kind === 'private' && allowPrivateNetworks)

/** What every way to an agent says of one address. */
interface Said {
  readonly listed: string | undefined
  readonly previewed: string
  readonly sent: string | null
}

async function saidOf(api: Client, agents: readonly Agent[], cardUrl: string, id: string): Promise<Said> {
  const preview = await api.post('/api/agents/preview', { cardUrl })
  const accepted = await api.post(`/api/agents/${id}/messages`, { text: 'hello' })
  expect([preview.status, accepted.status]).toEqual([502, 409])
  const message = ({ body }: { body: unknown }) =>
    z.object({ error: z.object({ message: z.string() }) }).parse(body).error.message
  return {
    listed: agents.find((agent) => agent.id === id)?.error,
    previewed: message(preview),
    sent: message(accepted),
  }
}

/** Started once: a console after the other lives on it, and what one registered is none of the next one's agents. */
let fresh: FreshDatabase
beforeAll(async () => {
  fresh = await freshDatabase('pglite')
})
afterAll(() => fresh.close())

async function houseUnder(policy: OutboundPolicy): Promise<{ house: TestConsole; network: WatchedNetwork }> {
  await fresh.db.pool.query(sql.unsafe`update agent set enabled = false`)
  const outbound = new Outbound(policy, { resolve: lies })
  const house = await startConsole({ database: fresh.db, uiDirectory: null, system: { policy, limits, outbound } })
  return { house, network: watchNetwork([Number(new URL(house.url).port)]) }
}

describe('the list of hostile places', () => {
  test('is long, and each is what the URL standard and the table of addresses say', () => {
    expect(hostileHosts.length).toBeGreaterThan(60)
    expect(hostileHosts.filter(([, kind]) => kind === 'never').length).toBeGreaterThan(30)
  })
})

describe.each(profiles)('in $name', (rules) => {
  const allowedOrigins: string[] = []
  let house: TestConsole
  let canaries: Canaries
  let network: WatchedNetwork
  const urlOf = (host: string): string => `${rules.scheme}://${host}:${canaries.port}/card.json`
  const agents = async (): Promise<Agent[]> =>
    z.object({ agents: z.array(Agent) }).parse((await house.api.get('/api/agents')).body).agents

  beforeAll(async () => {
    canaries = await openCanaries()
    ;({ house, network } = await houseUnder({ ...rules, allowedOrigins }))
  })
  afterAll(async () => {
    network.close()
    await house.close()
    await canaries.close()
  })

  test('no spelling of a forbidden address is connected to, even one whose origin is allowed', async () => {
    const forbidden = targets.filter(([, kind]) => kind !== 'refused' && !mayReach(kind, rules))
    expect(forbidden.length).toBeGreaterThan(35)
    if (rules.profile === 'production') allowedOrigins.push(...forbidden.map(([host]) => new URL(urlOf(host)).origin))
    const ids = await Promise.all(forbidden.map(([host]) => house.api.register(urlOf(host))))
    const listed = await agents()
    const said = await Promise.all(
      forbidden.map(async ([host], i) => [host, await saidOf(house.api, listed, urlOf(host), ids[i] ?? '')] as const),
    )
    const refused: Said = { listed: blocked, previewed: blocked, sent: blocked }
    expect(said).toEqual(forbidden.map(([host]) => [host, refused]))
    expect(network.attempts).toEqual([])
    expect(canaries.touched).toBe(0)
  })

  test('what is no address cannot be registered or looked at', async () => {
    const nowhere = targets.filter(([, kind]) => kind === 'refused')
    for (const [host] of nowhere) {
      const replies = await Promise.all([
        house.api.post('/api/agents', { cardUrl: urlOf(host) }),
        house.api.post('/api/agents/preview', { cardUrl: urlOf(host) }),
      ])
      for (const { status, text } of replies) {
        expect([host, status]).toEqual([host, 400])
        expect(text).toMatch(/Agent Card URL must (be http\(s\)|not contain credentials)/)
      }
    }
    expect(network.attempts).toEqual([])
  })

  test('the permitted ones are connected to, which is how we know that a connection would be seen', async () => {
    const permitted = targets.filter(([, kind]) => kind === 'loopback' && mayReach(kind, rules))
    for (const [host] of permitted) {
      const before = network.attempts.length
      const preview = await house.api.post('/api/agents/preview', { cardUrl: urlOf(host) })
      expect([host, preview.status]).toEqual([host, 502])
      expect(preview.text).toContain('Agent Card discovery failed. Tried: ')
      expect([host, network.attempts.length]).toEqual([host, before + 1])
      expect(network.attempts.at(-1)).toMatch(
        new RegExp(`^(127\\.0\\.0\\.1|::1|::ffff:(127\\.0\\.0\\.1|7f00:1)) ${canaries.port}$`),
      )
    }
    expect(canaries.touched).toBe(permitted.length)
  })
})

describe('in production, by origin and scheme', () => {
  const allowed = 'https://agent.example'
  let house: TestConsole
  let network: WatchedNetwork
  beforeAll(async () => {
    const allowedOrigins = [allowed, 'http://plain.example']
    ;({ house, network } = await houseUnder({ profile: 'production', allowPrivateNetworks: false, allowedOrigins }))
  })
  afterAll(async () => {
    network.close()
    await house.close()
  })

  test.each([
    ['https://other.example/card.json', notListed],
    ['https://agent.example.evil.test/card.json', notListed],
    ['https://agent.example:8443/card.json', notListed],
    ['https://agent.example./card.json', notListed],
    ['https://agent.exаmple/card.json', notListed],
    ['https://evil.test/agent.example/card.json', notListed],
    ['https://evil.test\\@agent.example/card.json', notListed],
    ['http://agent.example/card.json', notListed],
    ['https://127.0.0.1/card.json', notListed],
    ['https://169.254.169.254/card.json', notListed],
    ['http://plain.example/card.json', needsHttps],
  ])('%s: %s', async (cardUrl, sentence) => {
    const id = await house.api.register(cardUrl)
    const { agents } = z.object({ agents: z.array(Agent) }).parse((await house.api.get('/api/agents')).body)
    expect(agents.find((agent) => agent.id === id)?.error).toBe(sentence)
    const preview = await house.api.post('/api/agents/preview', { cardUrl })
    expect(preview.body).toEqual({ error: { name: 'Error', message: sentence } })
    const shown = await house.api.get(`/api/agents/${id}`)
    expect([shown.status, shown.body]).toEqual([502, preview.body])
    const key = { 'idempotency-key': encodeURIComponent(cardUrl) }
    const accepted = commandIn(await house.api.post(`/api/agents/${id}/commands`, { text: 'hello' }, key))
    expect(await house.finished(accepted.id)).toMatchObject({ status: 'failed', error: sentence })
    expect(network.attempts).toEqual([])
  })
})

describe('an agent in development that turns', () => {
  const sentences = {
    tooLarge: 'Agent Card exceeds the 2 MB safety limit.',
    redirect: 'Agent redirects are not permitted.',
  }
  let rebound = ['127.0.0.1']
  let house: TestConsole
  let canaries: Canaries
  let peer: RawPeer
  beforeAll(async () => {
    ;[canaries, peer] = await Promise.all([openCanaries(), startRawPeer({ card: rebinding })])
    const policy: OutboundPolicy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] }
    await fresh.db.pool.query(sql.unsafe`update agent set enabled = false`)
    const resolve: ResolveAll = (_name, done) =>
      done(
        null,
        rebound.map((address) => ({ address, family: 4 })),
      )
    const system = { policy, limits, outbound: new Outbound(policy, { resolve }) }
    house = await startConsole({ database: fresh.db, uiDirectory: null, system })
  })
  afterAll(async () => {
    await house.close()
    await Promise.all([peer.close(), canaries.close()])
  })

  /** The agent says of itself that it lives at a name. */
  const rebinding = (card: CardJson, origin: string): CardJson => ({
    ...card,
    supportedInterfaces: [
      { url: `http://rebind.test:${new URL(origin).port}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ],
  })

  test('its name to another address between its card and the send is not followed there', async () => {
    const id = await house.api.register(`${peer.origin}/.well-known/agent-card.json`)
    for (const address of ['169.254.169.254', '10.0.0.1', '0.0.0.0']) {
      rebound = ['127.0.0.1']
      expect((await house.api.get(`/api/agents/${id}`)).status).toBe(200)
      rebound = [address]
      const sent = await house.api.post(`/api/agents/${id}/messages`, { text: 'direct' })
      expect([sent.status, sent.text]).toEqual([409, expect.stringContaining(blocked)])
    }
    expect(peer.callsOf('SendMessage')).toBe(0)
    rebound = ['127.0.0.1']
    expect((await house.api.post(`/api/agents/${id}/messages`, { text: 'direct' })).status).toBe(200)
  })

  test.each([
    ['a redirect', { fault: 'redirect', location: () => `http://127.0.0.1:${canaries.port}/` }, sentences.redirect],
    ['a bomb of 200 MB', { fault: 'gzip-bomb', bytes: 200 * 1024 * 1024 }, sentences.tooLarge],
  ] as const)('its card into %s is refused everywhere', async (_what, turn, sentence) => {
    const cardUrl = `${peer.origin}/.well-known/agent-card.json`
    const id = await house.api.register(cardUrl)
    const fault = turn.fault === 'redirect' ? { fault: turn.fault, location: turn.location() } : turn
    peer.script.fault('GetAgentCard', fault, Infinity)
    const { agents } = z.object({ agents: z.array(Agent) }).parse((await house.api.get('/api/agents')).body)
    expect(await saidOf(house.api, agents, cardUrl, id)).toEqual({
      listed: sentence,
      previewed: sentence,
      sent: sentence,
    })
    peer.script.heal()
    expect(canaries.touched).toBe(0)
  })
})
