/**
 * An outcome that no row can hold is told to its machine as a failure, so that it counts it and pauses: unheard, its work would be begun
 * anew each time its lease ran out, for ever.
 */
import { sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { assign, setup } from 'xstate'
import { Changes } from '../../actors/loop/changes.ts'
import type { Done, Kinds } from '../../actors/loop/kinds.ts'
import { Leases } from '../../actors/loop/lease.ts'
import { Outcomes } from '../../actors/loop/outcomes.ts'
import { Runtime } from '../../actors/loop/runtime.ts'
import { Worker } from '../../actors/loop/worker.ts'
import { instruments } from '../../actors/system.ts'
import { work } from '../../machines/work.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { kindOf } from '../support/lone-runtime.ts'
import { spawning } from '../support/spawning.ts'
import { capturedLog } from '../support/system.ts'

const reader = setup({
  types: { context: {} as { failures: number; error: string | null; read: string | null } },
  actors: { read: work<Done['output']>() },
}).createMachine({
  id: 'reader',
  version: '1',
  context: { failures: 0, error: null, read: null },
  initial: 'reading',
  states: {
    reading: {
      invoke: {
        id: 'read',
        src: 'read',
        onDone: { target: 'read', actions: assign({ read: ({ event }) => event.output.kind }) },
        onError: {
          target: 'waiting',
          actions: assign({
            failures: ({ context }) => context.failures + 1,
            error: ({ event }) => String(event.error),
          }),
        },
      },
    },
    waiting: { after: { 60_000: 'reading' } },
    read: {},
  },
})
const Snapshot = z.object({
  value: z.string(),
  context: z.object({ failures: z.number(), error: z.nullable(z.string()), read: z.nullable(z.string()) }),
})
const plain = 'The outcome could not be stored.'
const half = String.fromCharCode(0xd800)

describe.each(bothDatabases)('an outcome on %s', (kind) => {
  let fresh: FreshDatabase
  let worker: Worker
  let runtime: Runtime
  const { log, lines } = capturedLog()
  const outcomes = new Map<string, Done | Error>()
  const spawn = spawning(newToken())

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    const read = ({ ref }: { readonly ref: { readonly id: string } }): Promise<Done> => {
      const outcome = outcomes.get(ref.id) ?? new Error('Nothing is to be read.')
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome)
    }
    const kinds: Kinds = { reader: { ...kindOf(reader), work: { read }, repeatable: new Set(['read']) } }
    const o = { db: fresh.db, kinds, instruments, log }
    worker = new Worker(o, () => runtime)
    const launch = worker.launch.bind(worker)
    runtime = new Runtime({ ...o, reactions: [], changes: new Changes(), intake: worker, launch })
    worker.open()
  })
  afterAll(async () => {
    await worker.drain()
    await fresh.close()
  })

  /** Where its machine stands once its work has ended. */
  async function after(outcome: Done | Error) {
    const ref = { kind: 'reader', id: newToken() }
    outcomes.set(ref.id, outcome)
    await runtime.perform(spawn, ref)
    await expect.poll(() => worker.leases.size).toBe(0)
    const snapshot = await fresh.db.pool.oneFirst(sql.type(z.object({ snapshot: Snapshot }))`
      select snapshot from actor where kind = 'reader' and id = ${ref.id}`)
    const said = lines.splice(0).filter(({ level }) => level === 'error')
    return { snapshot, said: said.map(({ message }) => message) }
  }

  it.each([
    ['NUL', '\0'],
    ['half a character', half],
  ])('that holds %s is heard as a failure, in our own words, and said in the log', async (_what, words) => {
    expect(await after({ output: { kind: words } })).toEqual({
      snapshot: { value: 'waiting', context: { failures: 1, error: plain, read: null } },
      said: ['an outcome could not be recorded, and is told as a failure'],
    })
  })

  it('whose own words of a failure hold such a thing is heard, too', async () => {
    const { snapshot, said } = await after(new Error(half))
    expect(snapshot).toEqual({ value: 'waiting', context: { failures: 1, error: plain, read: null } })
    expect(said).toEqual(['work failed', 'an outcome could not be recorded, and is told as a failure'])
  })

  it('that can be stored is heard as it is', async () => {
    expect(await after({ output: { kind: 'whole' } })).toMatchObject({
      snapshot: { value: 'read', context: { read: 'whole' } },
      said: [],
    })
    expect((await after(new Error('Away.'))).snapshot.context).toEqual({ failures: 1, error: 'Away.', read: null })
  })
})

it('of which nothing can be recorded is tried once more and left to its lease', async () => {
  const { log, lines } = capturedLog()
  const events: unknown[] = []
  const step = ({ event }: { readonly event: unknown }): Promise<never> => {
    events.push(event)
    return Promise.reject(new Error('A defect.'))
  }
  const ref = { kind: 'reader', id: newToken() }
  const held = { ref, token: newToken(), work: 'read', lane: null, isDoubted: false, leaseMs: 60_000, trustedFrom: 0 }
  const outcomes = new Outcomes({ isOurs: () => true, isGivenBack: () => false, step, log })
  expect(await outcomes.report(new Leases().hold(held), { output: { kind: 'whole' } })).toBe('unrecorded')
  expect(events).toEqual([
    { type: 'xstate.done.actor.read', output: { kind: 'whole' } },
    { type: 'xstate.error.actor.read', error: plain },
  ])
  expect(lines.at(-1)?.message).toBe('an outcome could not be recorded')
})
