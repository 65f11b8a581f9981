/**
 * Accepting in one exchange: nothing is asked before it is written, so what stands in a command's way is found by writing, and a
 * commit that nobody acknowledged is found when it is asked for again. The agent's receipts are the witness.
 */
import { BackendTerminatedUnexpectedlyError, sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Flight } from '../../persistence/flight.ts'
import type { Database } from '../../persistence/database.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

/** What becomes of a flight on its way: nothing of it arrives, or its answer does not come back. */
type Loss = 'request' | 'answer'
const cut = () => new BackendTerminatedUnexpectedlyError(new Error('Connection terminated unexpectedly'))

describe.each(bothDatabases)('a command accepted at once on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  const losses: Loss[] = []

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    const db: Database = {
      ...fresh.db,
      async fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
        const loss = losses.shift()
        if (loss === 'request') throw cut()
        const result = await fresh.db.fly(work)
        if (loss === 'answer') throw cut()
        return result
      },
    }
    running = await systemOn(db)
    peer = await startRawPeer()
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    // The card is known from here on: accepting and dispatching are one commit.
    await running.finished((await running.send(agentId, { text: 'direct' })).id)
  })
  afterEach(() => {
    losses.length = 0
  })
  afterAll(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  const ask = (idempotencyKey: string, text = 'direct', to = agentId) =>
    running.system.commands.accept(running.viewer, {
      agentId: to,
      body: { action: 'send', tenant: '', text },
      idempotencyKey,
    })
  const count = (table: 'audit' | 'command' | 'fact' | 'log', ids: readonly string[]) => {
    const counted = {
      audit: sql.fragment`audit where subject_id = any(${sql.array(ids, 'text')})`,
      command: sql.fragment`command where id::text = any(${sql.array(ids, 'text')})`,
      fact: sql.fragment`fact where subject_id = any(${sql.array(ids, 'text')})`,
      log: sql.fragment`actor_log where actor_id::text = any(${sql.array(ids, 'text')})`,
    }
    return fresh.db.pool.oneFirst(sql.unsafe`select count(*)::int from ${counted[table]}`)
  }

  it.each<Loss>(['request', 'answer'])(
    'is accepted and delivered once when its %s is lost, and its work begins at once',
    async (loss) => {
      losses.push(loss)
      const { command, replayed } = await ask(newToken())
      expect(replayed).toBe(false)
      // Had nobody begun its work, its lease would have run out a minute later, and `uncertain` would be its end.
      expect(await running.finished(command.id)).toMatchObject({ status: 'succeeded' })
      expect(peer.receiptsOf(command.messageId)).toBe(1)
      expect(await count('audit', [command.id])).toBe(1)
      expect(await count('log', [command.id])).toBe(3)
    },
  )

  it('has its own answer beside those that something stands in the way of, and these leave nothing', async () => {
    const [known, fresher] = [newToken(), newToken()]
    const earlier = (await ask(known)).command
    const before = await count('command', [earlier.id])
    const answers = await Promise.allSettled([
      ask(fresher),
      ask(known),
      ask(known, 'something else'),
      ask(newToken(), 'direct', newToken()),
      ask(fresher),
    ])
    const [first, again, other, nobody, twin] = answers
    expect(first).toMatchObject({ status: 'fulfilled', value: { replayed: false } })
    expect(again).toMatchObject({ status: 'fulfilled', value: { replayed: true, command: { id: earlier.id } } })
    expect(other).toMatchObject({ status: 'rejected', reason: { code: 'command.key.taken' } })
    expect(nobody).toMatchObject({ status: 'rejected', reason: { code: 'agent.unknown' } })
    const id = first?.status === 'fulfilled' ? first.value.command.id : ''
    expect(twin).toMatchObject({ status: 'fulfilled', value: { replayed: true, command: { id } } })
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    expect([before, await count('command', [earlier.id, id])]).toEqual([1, 2])
    expect(await count('audit', [earlier.id, id])).toBe(2)
    const strays = await fresh.db.pool.oneFirst(sql.unsafe`
      select (select count(*) from actor_log l where kind = 'command' and not exists (select 1 from command c where c.id = l.actor_id))
        + (select count(*) from fact f where kind like 'command.%' and not exists (select 1 from command c where c.id::text = f.subject_id))
        + (select count(*) from actor a where kind = 'command' and not exists (select 1 from command c where c.id = a.id))
        + (select count(*) from audit u where kind = 'task.send.accepted' and not exists (select 1 from command c where c.id::text = u.subject_id))`)
    expect(Number(strays)).toBe(0)
  })

  it('gives back the room of what was not accepted', async () => {
    const known = newToken()
    const { command } = await ask(known)
    await running.finished(command.id)
    // More than an agent's lane holds: a place that was kept by each would leave none.
    for (let round = 0; round < 4; round++) await Promise.all(Array.from({ length: 30 }, () => ask(known)))
    const { command: next } = await ask(newToken())
    expect(await running.finished(next.id)).toMatchObject({ status: 'succeeded' })
    expect(running.system.runtime.queued).toBe(0)
  })
})
