/** The extended card and tenants against the published SDKs' servers, which the scripted peers do not offer. */
import { AgentCard as Card10 } from '@a2a-js/sdk'
import { DefaultRequestHandler as Handler10, InMemoryTaskStore as Store10 } from '@a2a-js/sdk/server'
import { jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express'
import type { AgentCard as Card03 } from 'a2a-sdk-v03'
import { DefaultRequestHandler as Handler03, InMemoryTaskStore as Store03 } from 'a2a-sdk-v03/server'
import * as express03 from 'a2a-sdk-v03/server/express'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseCard } from '../../a2a/card.ts'
import type { Endpoint } from '../../a2a/operations.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'
import type { Listening } from '../support/peers/peer.ts'
import { call, refusalOf, valueOf } from './calls.ts'
import { card03, card10 } from './cards.ts'

const idle = { execute: () => Promise.resolve(), cancelTask: () => Promise.resolve() }
/** Both servers give the extended card to those they know, and the plain one to others. */
const user = { userBuilder: () => Promise.resolve({ isAuthenticated: true, userName: 'someone' }) }
let server: Listening

beforeAll(async () => {
  const app = express()
  const extended10 = Card10.fromJSON({ ...card10, name: 'Extended' })
  const now = {
    ...user,
    requestHandler: new Handler10(
      Card10.fromJSON(card10),
      new Store10(),
      idle,
      undefined,
      undefined,
      undefined,
      extended10,
    ),
  }
  app.use('/now/rpc', jsonRpcHandler(now))
  app.use('/now/rest', restHandler(now))
  const json: Record<string, unknown> = card03
  const plain = json as Record<string, unknown> & Card03
  const extended03 = { ...plain, name: 'Extended' }
  const then = {
    ...user,
    requestHandler: new Handler03(plain, new Store03(), idle, undefined, undefined, undefined, extended03),
  }
  app.use('/then/rpc', express03.jsonRpcHandler(then))
  app.use('/then/rest', express03.restHandler(then))
  server = await listenOnLoopback(app)
})
afterAll(() => server.close())

describe.each([
  { path: '/now/rpc', binding: 'JSONRPC', version: '1.0', tenant: 'acme' },
  { path: '/now/rest', binding: 'HTTP+JSON', version: '1.0', tenant: 'acme' },
  { path: '/then/rpc', binding: 'JSONRPC', version: '0.3' },
  { path: '/then/rest', binding: 'HTTP+JSON', version: '0.3' },
] as const)('SDK $version over $binding', ({ path, ...rest }) => {
  const endpoint = (): Endpoint => ({ url: `${server.origin}${path}`, ...rest })

  it('gives its extended card', async () => {
    const parsed = parseCard(valueOf(await call(endpoint(), 'extendedCard', {})))
    expect(parsed).toMatchObject({ card: { name: 'Extended', skills: [{ id: 's' }] } })
  })

  it('understands a request of a tenant', async () => {
    expect(refusalOf(await call(endpoint(), 'get', { id: 'nobody' })).reason).toBe('TASK_NOT_FOUND')
  })
})
