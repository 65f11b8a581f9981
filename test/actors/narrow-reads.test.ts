/** What is sent may be 16 MiB: looking for its agent reads none of it, and delivering reads it once. */
import { expect, it } from 'vitest'
import { bothDatabases, freshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { systemOn } from '../support/system.ts'

it.each(bothDatabases)('a command that is found and delivered on %s is read as a whole once', async (kind) => {
  const fresh = await freshDatabase(kind)
  const reads = { destination: 0, body: 0 }
  const pool = new Proxy(fresh.db.pool, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (query?: { readonly sql?: string }, ...rest: unknown[]) => {
        const sql = query?.sql ?? ''
        if (/from\s+command c join agent a/.test(sql)) reads[sql.includes('c.body') ? 'body' : 'destination'] += 1
        return (method as (...args: unknown[]) => unknown).call(target, query, ...rest)
      }
    },
  })
  const running = await systemOn({ ...fresh.db, pool })
  const peer = await startRawPeer()
  const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
  const { id, status } = await running.send(agentId, { text: 'direct' })
  expect(status).toBe('pending')
  expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
  expect(reads.body).toBe(1)
  expect(reads.destination).toBeGreaterThan(0)
  await running.close()
  await peer.close()
  await fresh.close()
})
