/**
 * Every shortest path of every durable machine, replayed through the real runtime and a real database: what is stored
 * after each step is what the pure machine says, the log tells the whole way but for loops that go round by
 * themselves, and what is finished is in the archive.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { v7 as uuidv7 } from 'uuid'
import { initialTransition, transition, type AnyStateMachine, type EventObject } from 'xstate'
import { Changes } from '../../actors/loop/changes.ts'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { planFrom } from '../../actors/loop/plan.ts'
import { isRoutine } from '../../actors/loop/routine.ts'
import type { Operation } from '../../actors/loop/operation.ts'
import { Runtime } from '../../actors/loop/runtime.ts'
import type { ActorRef } from '../../persistence/actors.ts'
import { claimActors } from '../../persistence/leases.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { durableMachines, shortestPaths } from '../support/machine-events.ts'
import { capturedLog } from '../support/system.ts'

const organizationId = uuidv7()

const spawnActor: Operation<ActorRef, null> = {
  name: 'spawnActor',
  run: (_batch, refs) =>
    Promise.resolve(
      refs.map((ref) => ({
        kind: 'done' as const,
        result: null,
        effects: { spawns: [{ ref, lane: null, isNew: true, organizationId, cause: 'test' }] },
      })),
    ),
}

/** Every step of a path but those of a loop that goes round by itself. */
function eventsLogged(machine: AnyStateMachine, events: readonly EventObject[]): EventObject[] {
  let [state] = initialTransition(machine)
  return events.filter((event) => {
    const before = machine.resolveState({ value: state.value, context: state.context })
    const [after, actions] = transition(machine, before, event)
    state = after
    const plan = planFrom(actions, { work: null, timers: {} }, new Date(0))
    return !isRoutine(before, after, plan, causeOf(event))
  })
}

const isWorks = ({ type }: EventObject): boolean => type === 'interrupted' || type.includes('.actor.')
const causeOf = (event: EventObject): string =>
  event.type.startsWith('xstate.after.') ? 'timer' : isWorks(event) ? 'worker' : 'test'

const Stored = z.object({
  snapshot: z.object({ value: z.unknown(), context: z.unknown(), status: z.string() }),
  revision: z.number(),
  archived: z.boolean(),
})

describe.each(eitherDatabase)('machines through the runtime on %s', (kind) => {
  let fresh: FreshDatabase
  let runtime: Runtime

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    const kinds: Kinds = Object.fromEntries(
      durableMachines.map(({ machine }) => [
        machine.id,
        {
          machine,
          pollMs: 250,
          leaseMs: 60_000,
          concurrency: 1000,
          laneLimit: 1000,
          claimLimit: 1000,
          work: {},
          repeatable: new Set(),
        },
      ]),
    )
    runtime = new Runtime({
      db: fresh.db,
      kinds,
      reactions: [],
      changes: new Changes(),
      instruments: { now: () => new Date(), monotonic: () => performance.now(), newToken: () => uuidv7() },
      intake: { owner: 'test', takeRoom: () => false, giveBack: () => undefined, newToken: () => uuidv7() },
      log: capturedLog().log,
      launch: () => undefined,
    })
  })
  afterAll(() => fresh.close())

  const stored = (ref: ActorRef) =>
    fresh.db.pool.one(sql.type(Stored)`
      select snapshot, revision, false as archived from actor where kind = ${ref.kind} and id = ${ref.id}
      union all
      select snapshot, revision, true from actor_archive where kind = ${ref.kind} and id = ${ref.id}`)

  /** Sends an event the way it really comes: work reports under a lease, timers ring when due, people just send. */
  async function happen(ref: ActorRef, event: EventObject): Promise<void> {
    if (event.type.startsWith('xstate.after.')) {
      // Timers ring when the test says so, however long they would have been.
      await runtime.step({ ref, event, told: [], lease: null, cause: 'timer', dueBy: '9999-01-01T00:00:00.000Z' })
      return
    }
    if (!isWorks(event)) {
      await runtime.send(ref, event, 'test')
      return
    }
    const claim = { kind: ref.kind, limit: 1000, leaseMs: 60_000, fullLanes: [] }
    const due = await claimActors(fresh.db.pool, claim, { owner: uuidv7(), exclusive: true, held: [] })
    const mine = due.find((actor) => actor.id === ref.id)
    if (!mine?.leaseToken || mine.work === null) throw new Error(`${ref.kind} wants no work before ${event.type}`)
    await runtime.step({
      ref,
      event,
      told: [],
      lease: { token: mine.leaseToken, work: mine.work },
      cause: 'worker',
    })
  }

  describe.each(durableMachines.map(({ machine, events }) => ({ name: machine.id, machine, events })))(
    '$name',
    ({ name, machine, events }) => {
      const paths = shortestPaths(machine, events)

      it.each(paths.map((path) => [JSON.stringify(path.state.value), path] as const))('reaches %s', async (_, path) => {
        const ref = { kind: name, id: uuidv7() }
        await runtime.perform(spawnActor, ref)
        for (const event of path.events) await happen(ref, event)
        const { state } = path
        expect(await stored(ref)).toEqual({
          snapshot: { value: state.value, context: state.context, status: state.status },
          revision: path.events.length + 1,
          archived: state.status === 'done',
        })
        const logged = await fresh.db.pool.anyFirst(sql.type(z.object({ event: z.string() }))`
          select event from actor_log where kind = ${name} and actor_id = ${ref.id} order by revision`)
        expect(logged.map((text) => (JSON.parse(text) as EventObject).type)).toEqual([
          'xstate.init',
          ...eventsLogged(machine, path.events).map((event) => event.type),
        ])
      })
    },
  )
})
