/** A connection that comes after its lease has run out: another process has said that nobody knows, and nothing may leave any more. */
import { sql } from 'slonik'
import { describe, expect, it, onTestFinished } from 'vitest'
import { v7 as newToken } from 'uuid'
import { Outbound } from '../../actors/outbound.ts'
import type { ResolveAll } from '../../actors/outbound/connector.ts'
import { instruments } from '../../actors/system.ts'
import { eitherDatabase } from '../support/databases.ts'
import { interfaceEntry } from '../support/peers/card.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { freshSystem } from '../support/system.ts'

const leaseMs = 4_000
const name = 'slow.test'

describe.each(eitherDatabase)('a process on %s that stood still while its agent was connected to', (kind) => {
  it('sends nothing once its lease is over', async () => {
    const named = (url: string): string => url.replace('127.0.0.1', name)
    const peer = await startRawPeer({
      card: (plain, origin) => ({
        ...plain,
        supportedInterfaces: [interfaceEntry(`${named(origin)}/a2a/jsonrpc`, 'JSONRPC', undefined)],
      }),
    })
    let aheadMs = 0
    const asked = Promise.withResolvers<() => void>()
    let isWelcome = false
    // What comes after its card was read is the message.
    const resolve: ResolveAll = (_name, done) => {
      const answer = (): void => done(null, [{ address: '127.0.0.1', family: 4 }])
      if (isWelcome || peer.callsOf('GetAgentCard') === 0) answer()
      else asked.resolve(answer)
    }
    const policy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const
    const running = await freshSystem(kind, {
      outbound: new Outbound(policy, { resolve }),
      instruments: { ...instruments, monotonic: () => performance.now() + aheadMs },
      rhythm: (kinds) => Object.fromEntries(Object.entries(kinds).map(([of, each]) => [of, { ...each, leaseMs }])),
    })
    onTestFinished(async () => {
      await running.close()
      await peer.close()
    })
    const { id: agentId } = await running.system.agents.register(running.viewer, named(peer.cardUrl))
    const late = await running.send(agentId, { text: 'direct' })
    const connect = await asked.promise
    // Somebody else took it over meanwhile.
    await running.db.pool.query(sql.unsafe`update actor set lease_token = ${newToken()} where id = ${late.id}`)
    aheadMs = 10 * leaseMs
    isWelcome = true
    connect()
    const { status } = await running.finished(late.id)
    const next = await running.finished((await running.send(agentId, { text: 'direct' })).id)
    expect([status, next.status, peer.receipts.length]).toEqual(['uncertain', 'succeeded', 1])
  })
})
