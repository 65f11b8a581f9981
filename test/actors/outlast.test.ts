/** What an outage does to repeatable work: it is begun anew, for a while, and who heard of it says so once. */
import { BackendTerminatedError, BackendTerminatedUnexpectedlyError, ConnectionError } from 'slonik'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Bell } from '../../actors/loop/bell.ts'
import type { Held } from '../../actors/loop/kinds.ts'
import { LeaseLost } from '../../actors/loop/lease.ts'
import { ifPossible, repeated } from '../../actors/loop/outlast.ts'
import { ArtifactsUnavailable } from '../../persistence/artifacts.ts'
import { DatabaseBusy } from '../../persistence/admission.ts'
import { DatabaseClosed } from '../../persistence/database.ts'

const ref = { kind: 'subscription', id: '00000000-0000-7000-8000-000000000001' }
const heldFor = (tries: number, turn = new AbortController()): Held => {
  let left = tries
  return {
    signal: new AbortController().signal,
    turn: turn.signal,
    isHeld: () => left-- > 0,
    news: new Bell(),
    beforehand: () => Promise.resolve(),
    busy: () => undefined,
    record: () => Promise.resolve(),
    note: () => Promise.resolve(),
  }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs work that fails as it is told, then is done; says how it ended and how often it was begun. */
async function run(held: Held, failures: readonly Error[]) {
  const left = [...failures]
  let begun = 0
  const work = (): Promise<string> => {
    begun += 1
    const failure = left.shift()
    return failure ? Promise.reject(failure) : Promise.resolve('done')
  }
  let met = 0
  const ended = repeated(ref, held, work, () => (met += 1)).catch((error: unknown) => error)
  await vi.runAllTimersAsync()
  return { ended: await ended, begun, met }
}

const times = (n: number, failure: () => Error): Error[] => Array.from({ length: n }, failure)
const away = (n: number): Error[] => times(n, () => new DatabaseClosed())
const locked = (): Error => Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
const slow = (): Error => new BackendTerminatedUnexpectedlyError(new Error('Query read timeout'))

it('is outlasted by work that may be done again, and told once', async () => {
  expect(await run(heldFor(Infinity), away(3))).toEqual({ ended: 'done', begun: 4, met: 1 })
})

it.each<[string, () => Error]>([
  ['refuses connections', () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
  ['gives no connection', () => new ConnectionError('Connection terminated unexpectedly')],
  ['has no connection left', () => Object.assign(new Error('sorry, too many clients already'), { code: '53300' })],
  ['crashed', () => Object.assign(new Error('terminating connection'), { code: '57P02' })],
  ['is starting', () => Object.assign(new Error('the database system is starting up'), { code: '57P03' })],
  ['has all connections in use', () => new DatabaseBusy()],
  ['is closed', () => new DatabaseClosed()],
])(
  'of a database that %s is waited for while the lease is held, and uses up none of the tries',
  async (_what, failure) => {
    expect(await run(heldFor(Infinity), times(20, failure))).toEqual({ ended: 'done', begun: 21, met: 1 })
  },
)

it.each([
  ['by a lock', locked],
  ['by a statement that takes too long', slow],
  ['by a statement that a pooler ends', () => Object.assign(new Error('query_timeout'), { code: '08P01' })],
  ['by a session that somebody ends', () => new BackendTerminatedError(new Error('terminating connection'))],
  ['by a connection that is reset', () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
])('%s, that does not end while the lease does, is one row’s and the machine’s to judge', async (_what, failure) => {
  const { ended, begun } = await run(heldFor(Infinity), times(100, failure))
  expect([ended, begun]).toEqual([failure(), 6])
})

it('as a whole, in the middle of one row’s trouble, makes that neither shorter nor endless', async () => {
  const failures = [...times(3, locked), ...away(10), ...times(2, locked), ...away(10), ...times(100, locked)]
  const { ended, begun } = await run(heldFor(Infinity), failures)
  expect([ended, begun]).toEqual([locked(), 26])
})

it('that outlasts the lease gives the work back unbegun', async () => {
  for (const failures of [away(100), times(100, locked)]) {
    const { ended, begun } = await run(heldFor(2), failures)
    expect([ended, begun]).toEqual([expect.any(LeaseLost), 3])
  }
})

it('costs a place that somebody else waits for', async () => {
  const turn = new AbortController()
  turn.abort()
  expect(await run(heldFor(Infinity, turn), away(1))).toEqual({ ended: expect.any(LeaseLost), begun: 1, met: 1 })
})

it('of the artifact directory is no outage of this kind', async () => {
  const full = new ArtifactsUnavailable(Object.assign(new Error('No space.'), { code: 'ENOSPC' }))
  expect(await run(heldFor(Infinity), [full])).toEqual({ ended: full, begun: 1, met: 0 })
})

it('leaves out what nothing hangs on, as does a lease that is lost, and hides no defect', async () => {
  for (const error of [new DatabaseClosed(), locked(), new LeaseLost(ref)])
    await expect(ifPossible(Promise.reject(error))).resolves.toBeUndefined()
  await expect(ifPossible(Promise.reject(new Error('a defect')))).rejects.toThrow('a defect')
})
