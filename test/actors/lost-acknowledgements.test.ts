/**
 * COMMIT was sent and its acknowledgement never came: what became of it is asked for, whatever the line died of and whatever the
 * commit wrote, and nothing is done twice. With a network that loses acknowledgements: test/chaos.
 */
import { BackendTerminatedUnexpectedlyError, sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assign, fromPromise, setup } from 'xstate'
import type { Runtime } from '../../actors/loop/runtime.ts'
import type { Launch } from '../../actors/loop/step.ts'
import type { ActorRef, Snapshot } from '../../persistence/actors.ts'
import type { Database } from '../../persistence/database.ts'
import { claimActors } from '../../persistence/leases.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { kindOf, loneRuntime } from '../support/lone-runtime.ts'
import { spawning } from '../support/spawning.ts'

const organizationId = newToken()

/** Goes round by its own work, which is routine, and counts what people ask of it, which is not. */
const counter = setup({
  types: { context: {} as { asked: number }, events: {} as { type: 'ask' } },
  actors: { look: fromPromise(() => Promise.resolve()), read: fromPromise(() => Promise.resolve()) },
}).createMachine({
  id: 'counter',
  context: { asked: 0 },
  initial: 'looking',
  on: { ask: { actions: assign({ asked: ({ context }) => context.asked + 1 }) } },
  states: {
    looking: { tags: 'round of looks', invoke: { id: 'look', src: 'look', onDone: 'reading' } },
    reading: { tags: 'round of looks', invoke: { id: 'read', src: 'read', onDone: 'looking' } },
  },
})

const spawn = spawning(organizationId)

describe.each(bothDatabases)('a commit that nobody acknowledged on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())

  /** A runtime whose next commits are executed and then said to have failed with `losses`, one each, not before `heard`. */
  function losingRuntime(losses: Error[], questions: Error[] = [], heard: Promise<void> = Promise.resolve()) {
    const launches: Launch[] = []
    const pool = new Proxy(fresh.db.pool, {
      get(target, name, receiver) {
        const error = name === 'oneFirst' ? questions.shift() : undefined
        if (error) return () => Promise.reject(error)
        return Reflect.get(target, name, receiver) as unknown
      },
    })
    const db: Database = {
      ...fresh.db,
      pool,
      async fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
        const result = await fresh.db.fly(work)
        await heard
        const lost = losses.shift()
        if (lost) throw lost
        return result
      },
    }
    const runtime = loneRuntime({
      db,
      kinds: { counter: kindOf(counter) },
      launch: (launch) => void launches.push(launch),
    })
    return { runtime, launches }
  }

  async function born(runtime: Runtime): Promise<ActorRef> {
    const ref = { kind: 'counter', id: newToken() }
    await runtime.perform(spawn, ref)
    return ref
  }
  const asked = (ref: ActorRef) =>
    fresh.db.pool.oneFirst(sql.unsafe`select (snapshot->'context'->>'asked')::int from actor where id = ${ref.id}`)

  it('is found though its step was routine, and left nothing but a row: the work it began is begun', async () => {
    const losses: Error[] = []
    const { runtime, launches } = losingRuntime(losses)
    const ref = await born(runtime)
    const token = launches.at(-1)?.token ?? ''
    losses.push(new BackendTerminatedUnexpectedlyError(new Error('Connection terminated')))
    const event = { type: 'xstate.done.actor.look', output: { kind: 'done' } }
    const after: Snapshot = await runtime.step({
      ref,
      event,
      told: [],
      lease: { token, work: 'look' },
      cause: 'worker',
    })
    expect(after.value).toBe('reading')
    expect(launches.map(({ work }) => work)).toEqual(['look', 'read'])
    const [row] = await fresh.db.pool.any(sql.unsafe`
      select a.revision, count(l.*)::int as logged from actor a join actor_log l on l.actor_id = a.id
      where a.id = ${ref.id} group by a.revision`)
    expect(row).toEqual({ revision: 2, logged: 1 })
  })

  it.each(['acknowledged', 'lost'])(
    'holds the leases that it grants while nobody knows: a clock that jumps meanwhile ends none (then %s)',
    async (end) => {
      const losses = end === 'lost' ? [new BackendTerminatedUnexpectedlyError(new Error('Connection terminated'))] : []
      const heard = Promise.withResolvers<void>()
      const { runtime, launches } = losingRuntime(losses, [], heard.promise)
      const isThere = async (ref: ActorRef): Promise<boolean> =>
        fresh.db.pool.exists(sql.unsafe`select from actor where id = ${ref.id}`)
      const ref = { kind: 'counter', id: newToken() }
      const spawned = runtime.perform(spawn, ref)
      await expect.poll(() => isThere(ref)).toBe(true)
      const { unheard } = runtime
      // As if the clock had been set forward: by the row alone, the lease of work that is about to begin is over.
      await fresh.db.pool.query(sql.unsafe`
        update actor set lease_until = lease_until - interval '1 hour', wake_at = wake_at - interval '1 hour'
        where id = ${ref.id}`)
      const claimed = async (held: readonly string[]): Promise<boolean> => {
        const claim = { kind: 'counter', limit: 100, leaseMs: 60_000, fullLanes: [] }
        const due = await claimActors(fresh.db.pool, claim, { owner: 'test', exclusive: true, held })
        return due.some((each) => each.id === ref.id && each.claimed)
      }
      expect(await claimed(unheard)).toBe(false)
      heard.resolve()
      await spawned
      expect(unheard).toEqual(launches.map(({ token }) => token))
      expect(runtime.unheard).toEqual([])
    },
  )

  it('is found when the line died of something that has no name', async () => {
    const losses: Error[] = []
    const { runtime } = losingRuntime(losses)
    const refs = await Promise.all([born(runtime), born(runtime)])
    losses.push(Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' }))
    await Promise.all(refs.map((ref) => runtime.send(ref, { type: 'ask' }, 'somebody')))
    expect(await Promise.all(refs.map(asked))).toEqual([1, 1])
  })

  it('is not repeated when not even the question can be asked', async () => {
    const losses: Error[] = []
    const questions: Error[] = []
    const { runtime } = losingRuntime(losses, questions)
    const refs = await Promise.all([born(runtime), born(runtime)])
    losses.push(new BackendTerminatedUnexpectedlyError(new Error('Connection terminated')))
    questions.push(new TypeError('a defect'))
    const answers = await Promise.allSettled(refs.map((ref) => runtime.send(ref, { type: 'ask' }, 'somebody')))
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await Promise.all(refs.map(asked))).toEqual([1, 1])
  })
})
