/** A database whose connections are all in use costs a command time and nothing else: none of its three looks for the agent. */
import { sql } from 'slonik'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { DatabaseBusy } from '../../persistence/admission.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { freshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { systemOn } from '../support/system.ts'

const maxConnections = 2

/** Takes every connection of the pool; returns how to give them back. */
async function allTaken(db: Database): Promise<() => Promise<unknown>> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const holders = Array.from({ length: maxConnections }, () => {
    const { promise: begun, resolve: began } = Promise.withResolvers<void>()
    const held = db.pool.transaction(() => {
      began()
      return released
    })
    return { begun, held }
  })
  await Promise.all(holders.map(({ begun }) => begun))
  return () => {
    release()
    return Promise.all(holders.map(({ held }) => held))
  }
}

it('asks an agent for its card once, where only keeping it fails', async () => {
  const fresh = await freshDatabase('postgresql')
  let refused = 0
  const pool = new Proxy(fresh.db.pool, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (query: { readonly sql?: string }, ...rest: unknown[]) => {
        if (refused > 0 && query.sql?.includes('agent_card') && refused-- > 0) return Promise.reject(new DatabaseBusy())
        return (method as (...args: unknown[]) => unknown).call(target, query, ...rest)
      }
    },
  })
  const peer = await startRawPeer()
  // Beside the registration: its card is at hand where it was found, and here it is looked for anew.
  const first = await systemOn(fresh.db, { works: false })
  const { id: agentId } = await first.system.agents.register(first.viewer, peer.cardUrl)
  const cards = peer.callsOf('GetAgentCard')
  refused = 4
  const running = await systemOn({ ...fresh.db, pool })
  const { id } = await running.send(agentId, { text: 'direct' })
  expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
  expect([refused, peer.callsOf('GetAgentCard') - cards]).toEqual([0, 1])
  await running.close()
  await first.close()
  await peer.close()
  await fresh.close()
})

it('neither reading the command nor keeping the card uses up a look', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
  const db = await openDatabase({ ...fresh.profile, maxConnections })
  const running = await systemOn(db)
  const [quick, slow] = [await startRawPeer(), await startRawPeer()]
  const toQuick = await running.system.agents.register(running.viewer, quick.cardUrl)
  const toSlow = await running.system.agents.register(running.viewer, slow.cardUrl)

  const cards = slow.callsOf('GetAgentCard')
  slow.script.fault('GetAgentCard', { fault: 'delay', delayMs: 1_000 })
  const keeping = await running.send(toSlow.id, { text: 'hello' })
  await expect.poll(() => slow.callsOf('GetAgentCard')).toBe(cards + 1)
  const release = await allTaken(db)
  const reading = await running.send(toQuick.id, { text: 'hello' })
  // Who asks after them is turned away after them: the second asks when the card has come.
  for (let asked = 0; asked < 2; asked++)
    await expect(db.pool.query(sql.unsafe`select 1`)).rejects.toBeInstanceOf(DatabaseBusy)
  await release()

  const attemptsOf = (id: string) =>
    db.pool.oneFirst(sql.type(z.object({ attempts: z.number() }))`
      select (snapshot->'context'->>'attempts')::int as attempts from actor_archive where id = ${id}`)
  for (const { id } of [keeping, reading]) {
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded', error: null })
    expect(await attemptsOf(id)).toBe(1)
  }
  expect(running.lines.filter(({ level }) => level === 'error')).toEqual([])

  await running.close()
  await db.close()
  await fresh.close()
  await quick.close()
  await slow.close()
})
