/**
 * A lease that cannot be renewed is distrusted in time, whatever its renewal does: hang on a line that went silent, or fail. One whose
 * row somebody has locked costs no other its renewal, and is renewed once the row is free.
 */
import { once } from 'node:events'
import { sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { setup } from 'xstate'
import { Changes } from '../../actors/loop/changes.ts'
import type { Kinds, WorkHandler } from '../../actors/loop/kinds.ts'
import { LeaseLost, Leases, type HeldLease } from '../../actors/loop/lease.ts'
import { Runtime } from '../../actors/loop/runtime.ts'
import type { Launch } from '../../actors/loop/step.ts'
import { instruments } from '../../actors/system.ts'
import { Worker } from '../../actors/loop/worker.ts'
import { work } from '../../machines/work.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { claimFor } from '../../persistence/leases.ts'
import { fair, startProxy, type Proxy } from '../chaos/proxy.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { lockedBy } from '../support/row-lock.ts'
import { spawning } from '../support/spawning.ts'
import { capturedLog } from '../support/system.ts'

const leaseMs = 15_000

describe('a lease whose holder does not reach the database', () => {
  let fresh: FreshDatabase
  let proxy: Proxy
  /** By way of the proxy. */
  let far: Database
  let worker: Worker
  let end: AbortController
  let keeping: Promise<unknown>
  /** Milliseconds that the process's clock has been moved. */
  let passedMs = 0
  /** Questions beside the pool. */
  let [asked, answered] = [0, 0]

  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
    const url = new URL(fresh.profile.url)
    proxy = await startProxy({ host: url.hostname, port: Number(url.port) })
    url.port = String(proxy.port)
    far = await openDatabase({ kind: 'postgresql', url: url.href })
  })
  afterAll(async () => {
    await far.close()
    await proxy.close()
    await fresh.close()
  })

  const monotonic = (): number => instruments.monotonic() + passedMs
  const runtime = (): never => {
    throw new Error('Nothing is committed here.')
  }
  const keep = (): void => {
    end = new AbortController()
    const direct: Database['direct'] = {
      any: (question) => {
        asked += 1
        return far.direct.any(question).finally(() => (answered += 1))
      },
    }
    const busy = {
      machine: setup({}).createMachine({}),
      pollMs: 1000,
      leaseMs,
      concurrency: 1,
      laneLimit: 1,
      claimLimit: 1,
    }
    // All places of it are taken, and it looks whether others wait for one.
    const kinds: Kinds = { test: { ...busy, turnMs: 1000, work: {}, repeatable: new Set() } }
    const o = { db: { ...far, direct }, kinds, instruments: { ...instruments, monotonic }, log: capturedLog().log }
    worker = new Worker(o, runtime)
    worker.open()
    keeping = worker.keepLeases(end.signal).catch((error: unknown) => error)
  }
  const stop = async (): Promise<void> => {
    end.abort()
    proxy.turn(fair)
    await keeping
  }
  /** Ours in the database, and held. */
  const leased = async (): Promise<HeldLease> => {
    const [id, token] = [newToken(), newToken()]
    await fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      values ('test', ${id}, ${newToken()}, '1', 1, '{}', 'follow', now(), '{}', now() + interval '15 seconds',
        ${token}, ${worker.owner}, now() + interval '15 seconds', now(), now())`)
    return worker.leases.hold({
      ref: { kind: 'test', id },
      token,
      work: 'follow',
      lane: null,
      isDoubted: false,
      leaseMs,
      trustedFrom: monotonic(),
    })
  }
  const pass = (ms: number): void => void (passedMs += ms)

  it('is renewed while it does', async () => {
    keep()
    const lease = await leased()
    const from = lease.trustedFrom
    pass(leaseMs / 3)
    await expect.poll(() => lease.trustedFrom).toBeGreaterThan(from)
    pass(leaseMs / 2)
    await expect.poll(() => lease.trustedFrom).toBeGreaterThan(from + leaseMs / 2)
    expect(lease.abort.signal.aborted).toBe(false)
    await stop()
  })

  it('is renewed, and what is due is claimed, while people who read for long have every connection of the pool', async () => {
    const [locked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const held = fresh.db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`select pg_advisory_xact_lock(71)`)
      locked.resolve()
      await over.promise
    })
    await locked.promise
    keep()
    const lease = await leased()
    const readers = Array.from({ length: 20 }, () =>
      far.pool.query(sql.unsafe`select pg_advisory_xact_lock_shared(71)`).then(
        () => 'answered',
        (error: Error) => error.name,
      ),
    )
    await expect.poll(() => far.pool.state().waitingClients).toBe(10)
    const from = lease.trustedFrom
    pass(leaseMs / 3)
    await expect.poll(() => lease.trustedFrom).toBeGreaterThan(from)
    const claim = { kind: 'nobody', limit: 1, leaseMs, fullLanes: [] }
    expect(await claimFor(far, claim, { owner: worker.owner, held: () => [] })).toEqual([])
    over.resolve()
    await held
    await Promise.all(readers)
    await stop()
  })

  it('ends while its renewal hangs', async () => {
    keep()
    const lease = await leased()
    pass(leaseMs / 3)
    await expect.poll(() => asked).toBeGreaterThan(0)
    await expect.poll(() => asked - answered).toBe(0)
    proxy.turn({ stalled: true })
    pass(leaseMs / 3)
    await expect.poll(() => asked - answered).toBe(1)
    pass(leaseMs)
    await expect.poll(() => lease.abort.signal.reason).toBeInstanceOf(LeaseLost)
    expect(asked - answered).toBe(1)
    await stop()
  })

  it('ends while nobody renews: the loop that does waits for the database', async () => {
    keep()
    const lease = await leased()
    proxy.turn({ refusing: true })
    proxy.reset()
    pass(leaseMs / 3)
    expect(await keeping).toBeInstanceOf(Error)
    pass(leaseMs)
    await expect.poll(() => lease.abort.signal.reason).toBeInstanceOf(LeaseLost)
    await stop()
  })
})

describe('a lease whose row is locked from outside', () => {
  let fresh: FreshDatabase
  let worker: Worker
  let runtime: Runtime
  let passedMs = 0
  const monotonic = (): number => instruments.monotonic() + passedMs
  const pass = (ms: number): void => void (passedMs += ms)
  /** What the work waits for before it commits something, and after it has. */
  let commits: PromiseWithResolvers<void>
  let committed: PromiseWithResolvers<void>

  const follower = setup({ actors: { follow: work<{ readonly kind: 'done' }>() } }).createMachine({
    id: 'follower',
    version: '1',
    initial: 'following',
    states: { following: { invoke: { id: 'follow', src: 'follow' } } },
  })
  const spawn = spawning(newToken())
  const untilAborted = async (signal: AbortSignal): Promise<void> => {
    if (!signal.aborted) await once(signal, 'abort')
  }

  beforeEach(async () => {
    fresh = await freshDatabase('postgresql')
    ;[commits, committed] = [Promise.withResolvers(), Promise.withResolvers()]
    const places = { pollMs: 1000, leaseMs, concurrency: 8, laneLimit: 8, claimLimit: 8 }
    const repeatable = new Set(['follow'])
    const report = { agentId: newToken(), tenant: '', source: 'stream', command: null, remoteTaskId: 't' } as const
    const follow: WorkHandler = async (_actor, held) => {
      await commits.promise
      await held.record({ ...report, observations: [] })
      committed.resolve()
      await untilAborted(held.signal)
      return { output: { kind: 'done' } }
    }
    const kinds: Kinds = { follower: { machine: follower, ...places, work: { follow }, repeatable } }
    const o = { db: fresh.db, kinds, instruments: { ...instruments, monotonic }, log: capturedLog().log }
    worker = new Worker(o, () => runtime)
    const launch = (launched: Launch): void => worker.launch(launched)
    runtime = new Runtime({ ...o, reactions: [], changes: new Changes(), intake: worker, launch })
    worker.open()
  })
  afterEach(async () => {
    commits.resolve()
    await worker.drain()
    await fresh.close()
  })

  /** At work under a lease. */
  async function atWork(): Promise<HeldLease> {
    const ref = { kind: 'follower', id: newToken() }
    await runtime.perform(spawn, ref)
    const lease = worker.leases.list().find((held) => held.ref.id === ref.id)
    if (!lease) throw new Error('It does not work.')
    return lease
  }
  const renewDue = () => worker.leases.renewDue(fresh.db, monotonic)

  it('costs no other its renewal, is not taken for lost, and is renewed once the row is free', async () => {
    const [mine, other] = [await atWork(), await atWork()]
    const free = await lockedBy(fresh.db, mine.ref)
    for (const _turn of [1, 2]) {
      const from = mine.trustedFrom
      pass(leaseMs / 3)
      const asked = monotonic()
      await renewDue()
      expect(other.trustedFrom).toBeGreaterThanOrEqual(asked)
      expect(mine).toMatchObject({ trustedFrom: from, isLocked: true })
      expect(mine.abort.signal.aborted).toBe(false)
    }
    await free()
    const asked = monotonic()
    await renewDue()
    expect(mine.trustedFrom).toBeGreaterThanOrEqual(asked)
    expect(mine.isLocked).toBe(false)
  })

  it('runs out by its own time where it is being given back, and its neighbours do not', async () => {
    const [mine, other] = [await atWork(), await atWork()]
    const from = mine.trustedFrom
    mine.isGoingBack = true
    pass(leaseMs / 3)
    const asked = monotonic()
    await renewDue()
    expect(mine.trustedFrom).toBe(from)
    expect(other.trustedFrom).toBeGreaterThanOrEqual(asked)
  })

  it('ends by the trust watch and by nothing else', async () => {
    const [mine, other] = [await atWork(), await atWork()]
    const free = await lockedBy(fresh.db, mine.ref)
    for (let spentMs = 0; spentMs < leaseMs; spentMs += leaseMs / 3) {
      pass(leaseMs / 3)
      await renewDue()
    }
    await expect.poll(() => mine.abort.signal.reason).toBeInstanceOf(LeaseLost)
    expect(other.abort.signal.aborted).toBe(false)
    await free()
  })

  it('is renewed right after a commit of its own work, which has the row to itself then', async () => {
    const lease = await atWork()
    const free = await lockedBy(fresh.db, lease.ref)
    pass(leaseMs / 3)
    await renewDue()
    expect(lease.isLocked).toBe(true)
    const asked = monotonic()
    await free()
    commits.resolve()
    await committed.promise
    expect(lease.trustedFrom).toBeGreaterThanOrEqual(asked)
    expect(lease.isLocked).toBe(false)
  })
})

describe('a process that stands still', () => {
  const held = {
    ref: { kind: 'test', id: newToken() },
    token: newToken(),
    work: 'follow',
    lane: null,
    isDoubted: false,
    leaseMs,
  }

  it('keeps a lease that is its own all the same, if it is renewed at once', async () => {
    const leases = new Leases()
    const lease = leases.hold({ ...held, trustedFrom: 0 })
    let looks = 0
    const stop = leases.watch(() => {
      if (looks++ === 0) return 0
      // What came meanwhile is heard after the first look.
      queueMicrotask(() => (lease.trustedFrom = leaseMs))
      return leaseMs
    })
    await expect.poll(() => looks).toBeGreaterThan(3)
    expect(lease.abort.signal.aborted).toBe(false)
    stop()
  })

  it('keeps none for ever by standing still again and again', async () => {
    const leases = new Leases()
    const lease = leases.hold({ ...held, trustedFrom: 0 })
    let now = 0
    const stop = leases.watch(() => (now += leaseMs))
    await expect.poll(() => lease.abort.signal.reason).toBeInstanceOf(LeaseLost)
    stop()
  })

  it('keeps all of them on the embedded database: nobody else can have taken one over', async () => {
    const fresh = await freshDatabase('pglite')
    let [now, looks] = [0, 0]
    const monotonic = (): number => {
      looks += 1
      return (now += leaseMs)
    }
    const o = { db: fresh.db, kinds: {}, instruments: { ...instruments, monotonic }, log: capturedLog().log }
    const worker = new Worker(o, () => {
      throw new Error('Nothing is committed here.')
    })
    worker.open()
    const lease = worker.leases.hold({ ...held, trustedFrom: 0 })
    await expect.poll(() => looks).toBeGreaterThan(3)
    expect(worker.leases.isOurs(lease, now)).toBe(true)
    await worker.leases.renew([lease], fresh.db.direct, monotonic)
    expect(worker.leases.isOurs(lease, now)).toBe(false)
    await fresh.close()
  })
})
