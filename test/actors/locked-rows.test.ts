/**
 * A row that somebody else keeps locked is the trouble of who asks for it: whoever is committed together with them is answered all
 * the same, and they are told within seconds. On PostgreSQL; the embedded database has one session.
 */
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assign, setup } from 'xstate'
import type { Runtime } from '../../actors/loop/runtime.ts'
import type { ActorRef } from '../../persistence/actors.ts'
import { isOutage } from '../../persistence/outage.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { kindOf, loneRuntime } from '../support/lone-runtime.ts'
import { lockedBy } from '../support/row-lock.ts'
import { spawning } from '../support/spawning.ts'

const organizationId = newToken()
const counter = setup({ types: { context: {} as { asked: number }, events: {} as { type: 'ask' } } }).createMachine({
  id: 'counter',
  context: { asked: 0 },
  on: { ask: { actions: assign({ asked: ({ context }) => context.asked + 1 }) } },
})
const spawn = spawning(organizationId)

describe('a row that somebody keeps locked', () => {
  let fresh: FreshDatabase
  let runtime: Runtime
  let flights = 0
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    const fly: typeof fresh.db.fly = (work) => {
      flights += 1
      return fresh.db.fly(work)
    }
    runtime = loneRuntime({ db: { ...fresh.db, fly }, kinds: { counter: kindOf(counter) } })
  })
  afterAll(() => fresh.close())

  const born = async (): Promise<ActorRef> => {
    const ref = { kind: 'counter', id: newToken() }
    await runtime.perform(spawn, ref)
    return ref
  }
  const ask = (ref: ActorRef) => runtime.send(ref, { type: 'ask' }, 'test')

  it('keeps nobody waiting who is committed together with it, and whoever asked for it is told of an outage', async () => {
    const [locked, ...others] = [await born(), await born(), await born(), await born()]
    const free = await lockedBy(fresh.db, locked)
    // Under way alone; what comes meanwhile leaves together.
    const before = flights
    const first = ask(others[0])
    const slow = ask(locked).catch((error: unknown) => error)
    const answers = await Promise.all(others.map(ask))
    expect(flights - before).toBeGreaterThan(2)
    expect(answers.map(({ context }) => context['asked'])).toEqual([2, 1, 1])
    await first
    const refused = await slow
    expect(refused).toSatisfy(isOutage)
    expect(runtime.isUndone(refused)).toBe(true)
    await free()
    expect((await ask(locked)).context).toEqual({ asked: 1 })
  })

  it('is known to be undone; a commit whose fate nobody can tell is not, and is not done again', async () => {
    const ref = await born()
    const broken = Object.assign(new Error('The line broke.'), { code: 'ECONNRESET' })
    const fly: typeof fresh.db.fly = async (work) => {
      await fresh.db.fly(work)
      throw broken
    }
    const pool = new Proxy(fresh.db.pool, {
      get: () => () => Promise.reject(new Error('Nobody can be asked.')),
    })
    const blind = loneRuntime({ db: { ...fresh.db, fly, pool }, kinds: { counter: kindOf(counter) } })
    const told = await blind.send(ref, { type: 'ask' }, 'test').catch((error: unknown) => error)
    expect(told).toBeInstanceOf(Error)
    expect(blind.isUndone(told)).toBe(false)
    expect((await ask(ref)).context).toEqual({ asked: 2 })
  })
})
