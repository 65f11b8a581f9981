/** The chain as systems make it: several at once accept commands, whichever of them links, and nobody's row is left out. */
import { afterEach, describe, expect, test } from 'vitest'
import { keepAuditChain, sha256 } from '../../actors/audit-chain.ts'
import { instruments } from '../../actors/system.ts'
import { chainStart, ChainWalk } from '../../domain/audit-chain.ts'
import { countUnlinked, findHead, readLinks } from '../../persistence/audit-chain.ts'
import { lastCheck } from '../../persistence/audit-check.ts'
import { openDatabase } from '../../persistence/database.ts'
import { bothDatabases, freshDatabase } from '../support/databases.ts'
import { capturedLog, systemOn, type RunningSystem } from '../support/system.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Two systems on PostgreSQL, the second with a pool of its own, as in another process; one on the embedded database. */
async function systems(kind: (typeof bothDatabases)[number]): Promise<readonly [RunningSystem, ...RunningSystem[]]> {
  const { db, profile, close } = await freshDatabase(kind)
  closing.push(close)
  const first = await systemOn(db)
  closing.push(() => first.close())
  if (profile.kind === 'pglite') return [first]
  const other = await openDatabase(profile)
  closing.push(() => other.close())
  const second = await systemOn(other)
  closing.push(() => second.close())
  return [first, second]
}

describe.each(bothDatabases)('on %s', (kind) => {
  test('every accepted command is in the chain, once, soon after', async () => {
    const running = await systems(kind)
    const [first] = running
    const { db, system, viewer } = first
    // Nobody listens there: the commands fail, and were accepted.
    const agent = await system.agents.register(viewer, 'http://127.0.0.1:9/card.json')
    const sent = Array.from({ length: 120 }, (_, n) =>
      (running[n % running.length] ?? first).send(agent.id, { text: `${n}` }),
    )
    const ids = (await Promise.all(sent)).map(({ id }) => id)
    const { organizationId } = viewer
    await expect.poll(() => countUnlinked(db.pool, organizationId), { timeout: 20_000, interval: 50 }).toBe(0)
    const head = await findHead(db.pool, organizationId)
    const links = await readLinks(db.pool, organizationId, { after: 0, to: head.number, limit: 1_000 })
    const walk = new ChainWalk(organizationId, chainStart, sha256)
    expect(links.flatMap((link) => walk.follow(link, link.row) ?? [])).toEqual([])
    expect(walk.at).toEqual({ number: head.number, hash: head.hash })
    const linked = links.flatMap(({ row }) => (row?.kind === 'task.send.accepted' ? [row.subjectId] : []))
    expect(linked).toHaveLength(ids.length)
    expect(new Set(linked)).toEqual(new Set(ids))
  })

  test('a chain that does not hold is an error in the log, and told', async () => {
    const { db, close } = await freshDatabase(kind)
    closing.push(close)
    const { log, lines } = capturedLog()
    const system = await systemOn(db, { works: false })
    closing.push(() => system.close())
    const { organizationId } = system.viewer
    await system.system.agents.register(system.viewer, 'http://127.0.0.1:9/card.json')
    const run = async (until: () => Promise<boolean>): Promise<void> => {
      const stop = new AbortController()
      const loop = keepAuditChain({ db, log, instruments }, stop.signal)
      await expect.poll(until, { timeout: 20_000, interval: 50 }).toBe(true)
      stop.abort()
      await loop
    }
    await run(async () => (await countUnlinked(db.pool, organizationId)) === 0)
    await db.raw(async (client) => {
      await client.query('alter table audit disable trigger all')
      await client.query(`update audit set kind = 'agent.removed'`)
      await client.query('alter table audit enable trigger all')
      await client.query('delete from audit_check')
    })
    await run(async () => (await lastCheck(db.pool, organizationId)).checkedAt !== null)
    expect((await lastCheck(db.pool, organizationId)).fault).toEqual({ kind: 'row', number: 1 })
    expect(lines).toContainEqual({
      level: 'error',
      message: 'the audit chain does not hold: Row 1: the row was changed after it was linked.',
      fields: { organizationId, fault: { kind: 'row', number: 1 } },
    })
  })
})
