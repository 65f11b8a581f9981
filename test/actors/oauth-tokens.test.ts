/** How long a token is used, by a clock of the test's: refreshed before its end, beside those who still use it. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { OauthTokens, OauthUnavailable } from '../../actors/oauth-tokens.ts'
import type { OauthClient } from '../../domain/credential.ts'
import { openAuthority, type Authority, type KeyPair } from '../support/certificates.ts'
import { startTokenEndpoint, type TokenEndpoint } from '../support/peers/token-endpoint.ts'
import { development, door } from './listeners.ts'

let authority: Authority
let tls: KeyPair
let endpoint: TokenEndpoint
let client: OauthClient
let nowMs = 0
const known = { clientId: 'id', clientSecret: 'a secret' }

beforeAll(async () => {
  authority = await openAuthority()
  tls = await authority.server()
})
beforeEach(async () => {
  await endpoint?.close()
  endpoint = await startTokenEndpoint({ tls, ...known, lifeSeconds: 600 })
  client = { type: 'oauthClient', issuer: endpoint.issuer, tokenEndpoint: endpoint.url, ...known }
})
afterAll(() => endpoint.close())
const opened = () => new OauthTokens(door(development, { ca: [authority.ca] }), () => nowMs)

test('is asked for a minute before its end, once, while the old one is still used', async () => {
  const tokens = opened()
  const first = await tokens.use(client)
  nowMs += 539_000
  expect(await tokens.use(client)).toBe(first)
  expect(endpoint.askedSoFar).toBe(1)
  nowMs += 1_000
  endpoint.mood = 'holds'
  expect(await Promise.all([tokens.use(client), tokens.use(client)])).toEqual([first, first])
  await endpoint.asked(2)
  nowMs += 61_000
  const waiting = [tokens.use(client), tokens.use(client)]
  endpoint.release()
  expect(await Promise.all(waiting)).toEqual([endpoint.tokens[1], endpoint.tokens[1]])
  expect(endpoint.askedSoFar).toBe(2)
})

test('an endpoint that is away is noticed by nobody until the token has ended', async () => {
  const tokens = opened()
  const first = await tokens.use(client)
  endpoint.mood = 'fails'
  nowMs += 599_000
  expect(await tokens.use(client)).toBe(first)
  await endpoint.asked(2)
  nowMs += 1_000
  await expect(tokens.use(client)).rejects.toBeInstanceOf(OauthUnavailable)
  endpoint.mood = 'works'
  expect(await tokens.use(client)).toBe(endpoint.tokens[1])
})

test('only the token that was refused is dropped', async () => {
  const tokens = opened()
  const first = await tokens.use(client)
  tokens.drop('another')
  expect(await tokens.use(client)).toBe(first)
  tokens.drop(first)
  expect(await tokens.use(client)).toBe(endpoint.tokens[1])
})

test('is asked for under the network policy, like everything else that leaves', async () => {
  const production = { profile: 'production', allowPrivateNetworks: false, allowedOrigins: [] } as const
  const tokens = new OauthTokens(door(production, { ca: [authority.ca] }), () => nowMs)
  await expect(tokens.use(client)).rejects.toThrow('origin-not-allowed')
  expect(endpoint.askedSoFar).toBe(0)
})
