/** A lease that cannot be renewed is distrusted in time, whatever its renewal does: hang on a line that went silent, or fail. */
import { sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LeaseLost, Leases, type HeldLease } from '../../actors/loop/lease.ts'
import { instruments } from '../../actors/system.ts'
import { Worker } from '../../actors/loop/worker.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { fair, startProxy, type Proxy } from '../chaos/proxy.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
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
    const o = { db: far, kinds: {}, instruments: { ...instruments, monotonic }, log: capturedLog().log }
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

  it('ends while its renewal hangs', async () => {
    keep()
    const lease = await leased()
    await far.pool.query(sql.unsafe`select 1`)
    proxy.turn({ stalled: true })
    pass(leaseMs / 3)
    await expect.poll(() => far.pool.state().acquiredConnections).toBe(1)
    pass(leaseMs)
    await expect.poll(() => lease.abort.signal.reason).toBeInstanceOf(LeaseLost)
    expect(far.pool.state().acquiredConnections).toBe(1)
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

describe('a process that stands still', () => {
  const held = { ref: { kind: 'test', id: newToken() }, token: newToken(), work: 'follow', lane: null, leaseMs }

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
})
