/**
 * Draining and giving back, at the moments that matter: what was taken and not begun goes back as if it had never been taken,
 * what may be repeated goes back while it is done, and neither is doubted, done twice or warned of.
 */
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Database } from '../../persistence/database.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { isTerminal } from '../../domain/task.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { lockedBy } from '../support/row-lock.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

const Row = z.object({ held: z.boolean(), begun: z.boolean(), due: z.boolean(), work: z.string().nullable() })
const free = { held: false, begun: false, due: true }

const isClaim = (text: string): boolean => text.includes('with due as')

/** A gate in the database's way: what comes to it while it is shut waits, and says that it has come. */
class Gate {
  #reached: PromiseWithResolvers<void> | null = null
  #opened: PromiseWithResolvers<void> | null = null
  #pass = 0

  /** For all but the next `pass`. Resolves when somebody stands before it. */
  shut(pass = 0): Promise<void> {
    this.#pass = pass
    this.#reached = Promise.withResolvers()
    this.#opened = Promise.withResolvers()
    return this.#reached.promise
  }

  open(): void {
    this.#opened?.resolve()
    this.#opened = null
  }

  async pass(): Promise<void> {
    if (this.#pass-- > 0) return
    this.#reached?.resolve()
    await this.#opened?.promise
  }
}

describe.each(bothDatabases)('a drain on %s', (kind) => {
  let fresh: FreshDatabase
  let peer: RawPeer
  let running: RunningSystem
  let agentId: string
  /** Before a commit, after one and before anybody hears of it, and after a claim likewise. */
  let before: Gate
  let after: Gate
  let claimed: Gate
  /** Resolved when leases were given back. */
  let givenBack: PromiseWithResolvers<void>

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())
  beforeEach(async () => {
    peer = await startRawPeer()
    ;[before, after, claimed, givenBack] = [new Gate(), new Gate(), new Gate(), Promise.withResolvers()]
    const { pool: real } = fresh.db
    const pool: Database['pool'] = {
      ...real,
      // On the embedded database a claim is a transaction.
      transaction: async (work) => {
        let hasClaimed = false
        const result = await real.transaction((tx) => {
          const any: typeof tx.any = async (statement) => {
            const rows = await tx.any(statement)
            hasClaimed ||= isClaim(statement.sql) && rows.length > 0
            return rows
          }
          const get = (target: typeof tx, name: string): unknown => (name === 'any' ? any : Reflect.get(target, name))
          return work(new Proxy(tx, { get: (target, name) => get(target, String(name)) }))
        })
        if (hasClaimed) await claimed.pass()
        return result
      },
      query: async (statement) => {
        const result = await real.query(statement)
        if (statement.sql.includes('work_started_at = null')) givenBack.resolve()
        return result
      },
    }
    const direct: Database['direct'] = {
      any: async (statement) => {
        const rows = await fresh.db.direct.any(statement)
        if (isClaim(statement.sql) && rows.length > 0) await claimed.pass()
        return rows
      },
    }
    const db: Database = {
      ...fresh.db,
      pool,
      direct,
      async fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
        await before.pass()
        const result = await fresh.db.fly(work)
        await after.pass()
        return result
      },
    }
    running = await systemOn(db)
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  })
  afterEach(() => peer.close())

  const rowOf = (of: string, id: string) =>
    fresh.db.pool.one(sql.type(Row)`
      select lease_token is not null as held, work_started_at is not null as begun, wake_at <= now() as due, work
      from actor where kind = ${of} and id = ${id}`)
  const eventsOf = (id: string) =>
    fresh.db.pool.anyFirst(sql.type(z.object({ type: z.string() }))`
      select event::jsonb->>'type' as type from actor_log where actor_id = ${id}`)
  /** A process after it: finds what was given back. */
  const next = async (work: (another: RunningSystem) => Promise<void>): Promise<void> => {
    const another = await systemOn(fresh.db)
    await work(another)
    await another.close()
  }
  const complaints = () => running.lines.filter(({ level }) => level !== 'info')
  /** Its card is at hand from here on, so that a command is accepted and begun in one commit. */
  const warmUp = async (): Promise<void> => {
    await running.finished((await running.send(agentId, { text: 'direct' })).id)
  }

  it('gives back a delivery that was committed and not begun, and whoever comes next makes it', async () => {
    await warmUp()
    const reached = after.shut()
    const sent = running.send(agentId, { text: 'direct' })
    await reached
    const closed = running.close()
    after.open()
    const { id, messageId } = await sent
    await closed
    expect(await rowOf('command', id)).toEqual({ ...free, work: 'deliver' })
    expect(peer.receiptsOf(messageId)).toBe(0)
    expect(complaints()).toEqual([])
    await next(async (another) => {
      expect(await another.finished(id)).toMatchObject({ status: 'succeeded' })
    })
    expect(peer.receiptsOf(messageId)).toBe(1)
    expect(await eventsOf(id)).not.toContain('interrupted')
  })

  it('gives back what a claim brings when it is too late to begin it', async () => {
    const clerk = await systemOn(fresh.db, { works: false })
    const reached = claimed.shut()
    const { id, messageId } = await clerk.send(agentId, { text: 'direct' })
    await reached
    const closed = running.close()
    claimed.open()
    await closed
    await clerk.close()
    expect(await rowOf('command', id)).toEqual({ ...free, work: 'discover' })
    expect(complaints()).toEqual([])
    await next(async (another) => {
      expect(await another.finished(id)).toMatchObject({ status: 'succeeded' })
    })
    expect(peer.receiptsOf(messageId)).toBe(1)
    expect(await eventsOf(id)).not.toContain('interrupted')
  })

  it('gives back a stream that is being followed, and the next process follows it to its end', async () => {
    const { id } = await running.send(agentId, { text: 'hold' })
    const localId = (await running.finished(id)).result?.localId ?? ''
    await peer.received(1)
    await running.close()
    expect(await rowOf('subscription', localId)).toEqual({ ...free, work: 'follow' })
    expect(complaints()).toEqual([])
    peer.script.finish()
    await next(async (another) => void (await another.task(localId, ({ state }) => isTerminal(state))))
    expect(await eventsOf(localId)).not.toContain('interrupted')
  })

  it.runIf(kind === 'postgresql')('gives back a stream whose row a commit of its own had locked', async () => {
    const { id } = await running.send(agentId, { text: 'hold' })
    const localId = (await running.finished(id)).result?.localId ?? ''
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBe(1)
    // What it has heard is about to be committed, and stands still for as long as it has the row.
    const reached = before.shut()
    peer.script.finish()
    await reached
    const unlock = await lockedBy(fresh.db, { kind: 'subscription', id: localId })
    const closed = running.close()
    await givenBack.promise
    await unlock()
    before.open()
    await closed
    expect(await rowOf('subscription', localId)).toMatchObject({ held: false, begun: false, due: true })
    expect(complaints()).toEqual([])
  })

  it('does not warn of a result that was on its way when its work was given back', async () => {
    // The first commit accepts it, the second would tell that its agent was discovered.
    const reached = before.shut(1)
    const { id, messageId } = await running.send(agentId, { text: 'direct' })
    await reached
    const closed = running.close()
    await givenBack.promise
    before.open()
    await closed
    expect(complaints()).toEqual([])
    expect(running.lines.map(({ message }) => message)).toContain('a result came when its work had been given back')
    expect(await rowOf('command', id)).toEqual({ ...free, work: 'discover' })
    await next(async (another) => {
      expect(await another.finished(id)).toMatchObject({ status: 'succeeded' })
    })
    expect(peer.receiptsOf(messageId)).toBe(1)
  })
})
