/**
 * Accepting in one exchange: nothing is asked before it is written, so what stands in a command's way is found by writing, and a
 * commit that nobody acknowledged is found when it is asked for again. The agent's receipts are the witness.
 */
import { BackendTerminatedUnexpectedlyError, sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Flight } from '../../persistence/drivers/flight.ts'
import type { Database } from '../../persistence/database.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

/**
 * What becomes of a flight on its way: no line is there, nothing of it arrives, its answer does not come back, or its COMMIT comes
 * when it has long been given up.
 */
type Loss = 'line' | 'request' | 'answer' | 'late'
/** A flight that ends in another way. `written`: its statement was executed. */
const losing = (flight: Flight, commit: () => Promise<void>, written: () => void = () => undefined): Flight =>
  new Proxy(flight, {
    get(target, name) {
      if (name === 'commit') return commit
      if (name === 'any')
        return async (statement: Parameters<Flight['any']>[0]) => {
          const rows = await target.any(statement)
          written()
          return rows
        }
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
const cut = () => new BackendTerminatedUnexpectedlyError(new Error('Connection terminated unexpectedly'))

describe.each(bothDatabases)('a command accepted at once on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  const losses: Loss[] = []
  /** COMMITs that are on their way. */
  const late: (() => void)[] = []
  /** What happens before anybody hears of a cut line. */
  let afterCut: (() => Promise<unknown>) | null = null

  const flown = async <T>(loss: Loss | undefined, work: (flight: Flight) => Promise<T>): Promise<T> => {
    if (loss === 'line') throw cut()
    if (loss === 'request') return fresh.db.fly((flight) => work(losing(flight, () => Promise.reject(cut()))))
    if (loss === 'late') {
      const { promise: executed, resolve: isExecuted } = Promise.withResolvers<void>()
      const { promise: passed, resolve } = Promise.withResolvers<void>()
      late.push(resolve)
      const commit = async (flight: Flight): Promise<void> => {
        await passed
        await flight.commit()
      }
      fresh.db.fly((flight) => work(losing(flight, () => commit(flight), isExecuted))).catch(() => undefined)
      await executed
      await afterCut?.()
      throw cut()
    }
    const result = await fresh.db.fly(work)
    if (loss === 'answer') throw cut()
    return result
  }

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    const db: Database = {
      ...fresh.db,
      fly: (work) => flown(losses.shift(), work),
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

  it.each<Loss>(['line', 'request', 'answer'])(
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

  it('beside replays and refusals is found when the answer to all of them is lost', async () => {
    const known = newToken()
    const earlier = (await ask(known)).command
    await running.finished(earlier.id)
    losses.push('answer')
    const [first, again, other] = await Promise.allSettled([ask(newToken()), ask(known), ask(known, 'else')])
    expect(again).toMatchObject({ status: 'fulfilled', value: { replayed: true, command: { id: earlier.id } } })
    // Nobody knows what the lost answer said of it.
    expect(other).toMatchObject({ status: 'rejected', reason: { name: 'Overloaded' } })
    expect(first).toMatchObject({ status: 'fulfilled', value: { replayed: false } })
    if (first?.status !== 'fulfilled') return
    const { id, messageId } = first.value.command
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    expect([peer.receiptsOf(messageId), peer.receiptsOf(earlier.messageId)]).toEqual([1, 1])
    await expect(ask(known, 'else')).rejects.toMatchObject({ code: 'command.key.taken' })
  })

  // The embedded database has one session: nothing there is under way behind anybody's back.
  it.skipIf(kind === 'pglite')('is decided by its key when the first attempt comes late', async () => {
    losses.push('late')
    const answer = ask(newToken())
    await expect
      .poll(() => fresh.db.pool.oneFirst(sql.unsafe`select count(*)::int from pg_locks where not granted`))
      .toBe(1)
    late.shift()?.()
    const { command, replayed } = await answer
    expect(replayed).toBe(false)
    expect(await running.finished(command.id)).toMatchObject({ status: 'succeeded' })
    expect(peer.receiptsOf(command.messageId)).toBe(1)
    expect(await count('log', [command.id])).toBe(3)
  })

  it.skipIf(kind === 'pglite')('is not refused while the first attempt may still come', async () => {
    const enable = (enabled: boolean) =>
      fresh.db.pool.query(sql.unsafe`update agent set enabled = ${enabled} where id = ${agentId}`)
    losses.push('late')
    const key = newToken()
    // The second attempt finds no enabled agent, and so never comes to the key.
    afterCut = () => enable(false)
    await expect(ask(key)).rejects.toThrow(
      'The database has not answered yet; ask again with the same idempotency key.',
    )
    afterCut = null
    await enable(true)
    late.shift()?.()
    await expect.poll(async () => (await ask(key)).replayed).toBe(true)
    const { command } = await ask(key)
    expect(await running.finished(command.id)).toMatchObject({ status: 'succeeded' })
    expect(peer.receiptsOf(command.messageId)).toBe(1)
  })

  it('is no news to anybody when it is none', async () => {
    const known = newToken()
    await running.finished((await ask(known)).command.id)
    await running.system.runtime.idle()
    const heard: unknown[] = []
    const stop = running.system.changes.subscribe((change) => void heard.push(change))
    expect((await ask(known)).replayed).toBe(true)
    await expect(ask(known, 'else')).rejects.toMatchObject({ code: 'command.key.taken' })
    stop()
    expect(heard).toEqual([])
  })

  it('is refused as ever when no line was there: nothing of it was sent', async () => {
    losses.push('line')
    await expect(ask(newToken(), 'direct', newToken())).rejects.toMatchObject({ code: 'agent.unknown' })
  })

  it('gives back the room of what never arrived', async () => {
    for (let n = 0; n < 70; n++) {
      losses.push('request')
      await running.finished((await ask(newToken())).command.id)
    }
    await running.system.runtime.idle()
    const { command } = await ask(newToken())
    expect(await running.finished(command.id)).toMatchObject({ status: 'succeeded' })
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
