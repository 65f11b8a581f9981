/**
 * Accepting a command in the place of another, among whatever else is in its commit, and where nobody acknowledged that commit: what
 * became of it is asked for, and nothing is accepted, settled or begun twice. What a person is told is specs/replacing.spec.ts.
 */
import { BackendTerminatedUnexpectedlyError, sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { assign, setup } from 'xstate'
import { acceptInPlace } from '../../actors/replacing.ts'
import type { Launch } from '../../actors/loop/step.ts'
import { settlementRefusals } from '../../domain/settlement.ts'
import { commandMachine } from '../../machines/command.ts'
import { projectCommands, type NewCommand } from '../../persistence/commands.ts'
import type { Database } from '../../persistence/database.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { at, idOf, newCommand, ours, placeCommands } from '../support/command-rows.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { kindOf, loneRuntime } from '../support/lone-runtime.ts'
import { spawning } from '../support/spawning.ts'
import { administratorOf } from '../support/viewers.ts'

const viewer = administratorOf(ours)
const lostLine = () => new BackendTerminatedUnexpectedlyError(new Error('Connection terminated'))

/** Counts what it is asked. */
const counter = setup({
  types: { context: {} as { asked: number }, events: {} as { type: 'ask' } },
}).createMachine({
  id: 'counter',
  context: { asked: 0 },
  on: { ask: { actions: assign({ asked: ({ context }) => context.asked + 1 }) } },
})
const spawn = spawning(ours)
const Rows = z.object({ commands: z.number(), settled: z.number(), audits: z.number(), facts: z.number() })

describe.each(bothDatabases)('in the place of another on %s', (kind) => {
  let fresh: FreshDatabase | undefined
  beforeEach(async () => {
    await fresh?.close()
    fresh = await freshDatabase(kind)
    const { db } = fresh
    await placeCommands(db, 4)
    await db.pool.query(sql.unsafe`insert into person (id, display_name) values (${ours}, 'Ada')`)
    const uncertain = { status: 'uncertain', error: 'Nobody knows.', reply: null, taskId: null } as const
    await db.pool.transaction((tx) =>
      projectCommands(
        tx,
        [0, 1, 2].map((n) => ({ id: idOf(n), ...uncertain })),
        at(1),
      ),
    )
  })
  afterAll(() => fresh?.close())

  /**
   * A runtime on it. Of the next commits as many as there are `losses` are executed and then said to have failed, and as many questions
   * for what became of them as there are `questions` fail. `flights` counts commits; none ends before `held`.
   */
  function running(losses: Error[] = [], questions: Error[] = []) {
    if (!fresh) throw new Error('There is no database.')
    const { db: own } = fresh
    const launches: Launch[] = []
    const state = { flights: 0, held: Promise.resolve() }
    const pool = new Proxy(own.pool, {
      get(target, name, receiver) {
        const error = name === 'oneFirst' ? questions.shift() : undefined
        if (error) return () => Promise.reject(error)
        return Reflect.get(target, name, receiver) as unknown
      },
    })
    const db: Database = {
      ...own,
      pool,
      async fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
        const result = await own.fly(work)
        state.flights += 1
        await state.held
        const lost = losses.shift()
        if (lost) throw lost
        return result
      },
    }
    const runtime = loneRuntime({
      db,
      kinds: { counter: kindOf(counter), command: kindOf(commandMachine) },
      instruments: { now: () => new Date(at(2)), monotonic: () => performance.now(), newToken: () => newToken() },
      launch: (launch) => void launches.push(launch),
    })
    const place = (n: number, command: NewCommand) =>
      runtime.perform(acceptInPlace, { viewer, command, replaces: idOf(n) })
    const launched = (id: string) => launches.filter(({ ref }) => ref.id === id).length
    const count = () =>
      own.pool.one(sql.type(Rows)`
        select (select count(*)::int from command) as commands, (select count(*)::int from command_settlement) as settled,
          (select count(*)::int from audit where kind in ('task.send.accepted', 'command.settled')) as audits,
          (select count(*)::int from fact where kind in ('command.accepted', 'command.settled')) as facts`)
    const successors = async () =>
      Object.fromEntries(
        (
          await own.pool.any(
            sql.type(z.object({ id: z.string(), successorId: z.string() }))`
              select command_id as id, successor_id as "successorId" from command_settlement`,
          )
        ).map(({ id, successorId }) => [id, successorId]),
      )
    return { runtime, state, place, launched, count, successors }
  }

  it('a commit that nobody acknowledged is found: one is accepted, the other settled, and its work begins once', async () => {
    const losses = [lostLine()]
    const { place, launched, count, successors } = running(losses)
    const before = await count()
    const taken = await place(0, newCommand(10))
    expect(losses).toEqual([])
    expect([taken.command.id, taken.replayed]).toEqual([idOf(10), false])
    expect(await successors()).toEqual({ [idOf(0)]: idOf(10) })
    const { commands, settled, audits, facts } = before
    expect(await count()).toEqual({
      commands: commands + 1,
      settled: settled + 1,
      audits: audits + 2,
      facts: facts + 2,
    })
    expect(launched(idOf(10))).toBe(1)
  })

  it('where nobody can be asked either, it is not done again; sent again with its key, it is found as it was', async () => {
    const { runtime, place, launched, count, successors } = running([lostLine()], [new TypeError('a defect')])
    await expect(place(0, newCommand(10))).rejects.toThrow('a defect')
    const after = await count()
    // As the same person asks again: by the same key and content, under an id of its own.
    const again = newCommand(11, { idempotencyKey: 'key-10', messageId: 'message-10' })
    const found = await place(0, again)
    expect([found.command.id, found.replayed]).toEqual([idOf(10), true])
    const other = newCommand(12)
    await expect(place(0, other)).rejects.toThrow(settlementRefusals.taken)
    await runtime.idle()
    expect(await count()).toEqual(after)
    expect(await successors()).toEqual({ [idOf(0)]: idOf(10) })
    // Its lease runs out, and its machine hears of it: here nothing is begun of which nobody knows.
    expect([idOf(10), idOf(11), idOf(12)].map(launched)).toEqual([0, 0, 0])
  })

  it('several in one commit with ordinary steps: each is answered for itself, and a no of one is nobody else’s', async () => {
    const { runtime, state, place, launched, count, successors } = running()
    const ref = { kind: 'counter', id: newToken() }
    const before = await count()
    const held = Promise.withResolvers<void>()
    state.held = held.promise
    const first = runtime.perform(spawn, ref)
    await expect.poll(() => state.flights).toBe(1)
    // The commit before is done and not heard of yet: whatever is asked now leaves together.
    const asked = [
      place(2, newCommand(12)),
      runtime.send(ref, { type: 'ask' }, 'somebody'),
      place(0, newCommand(10)),
      place(0, newCommand(20)),
      place(3, newCommand(13)),
      place(99, newCommand(14)),
      place(1, newCommand(11, { agentId: idOf(50) })),
      place(2, newCommand(22, { idempotencyKey: 'key-12' })),
      runtime.send(ref, { type: 'ask' }, 'somebody'),
      place(1, newCommand(21)),
    ]
    held.resolve()
    await first
    const answers = await Promise.allSettled(asked)
    expect(
      answers.map((answer) =>
        answer.status === 'rejected'
          ? String((answer.reason as Error).message)
          : 'command' in answer.value
            ? answer.value.command.id
            : answer.value.value,
      ),
    ).toEqual([
      idOf(12),
      {},
      idOf(10),
      settlementRefusals.taken,
      settlementRefusals.early,
      'Command not found.',
      settlementRefusals.replaces,
      idOf(12),
      {},
      idOf(21),
    ])
    expect(state.flights).toBe(2)
    expect(await successors()).toEqual({ [idOf(0)]: idOf(10), [idOf(1)]: idOf(21), [idOf(2)]: idOf(12) })
    const { commands, settled, audits, facts } = before
    expect(await count()).toEqual({
      commands: commands + 3,
      settled: settled + 3,
      audits: audits + 6,
      facts: facts + 6,
    })
    expect([10, 12, 21, 20, 22].map((n) => launched(idOf(n)))).toEqual([1, 1, 1, 0, 0])
    expect((await runtime.send(ref, { type: 'ask' }, 'somebody')).context).toMatchObject({ asked: 3 })
  })

  it('a commit with several that nobody acknowledged is found for all of them', async () => {
    const losses: Error[] = []
    const { runtime, state, place, launched, successors } = running(losses)
    const ref = { kind: 'counter', id: newToken() }
    await runtime.perform(spawn, ref)
    losses.push(lostLine())
    const asked = [place(0, newCommand(10)), place(0, newCommand(20)), place(1, newCommand(11))]
    const step = runtime.send(ref, { type: 'ask' }, 'somebody')
    const answers = await Promise.allSettled(asked)
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await step).context).toMatchObject({ asked: 1 })
    expect(losses).toEqual([])
    expect(await successors()).toEqual({ [idOf(0)]: idOf(10), [idOf(1)]: idOf(11) })
    expect([10, 11, 20].map((n) => launched(idOf(n)))).toEqual([1, 1, 0])
    expect(state.flights).toBeLessThanOrEqual(3)
  })
})
