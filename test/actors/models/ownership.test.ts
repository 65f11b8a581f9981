/**
 * Ownership against a model in memory, through the runtime's own operations: claims, releases, assignments, deadlines and
 * their ringing, escalations, the end. One task has one owner, the row that people read says who, and nothing follows its end.
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventObject } from 'xstate'
import { ActorGone } from '../../../actors/loop/step.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { ActorRef } from '../../../persistence/actors.ts'
import { bothDatabases } from '../../support/databases.ts'
import { explore } from './exploring.ts'
import { openModelStage, type Stage } from './stage.ts'

const shortRuns = 10
const at = '2026-11-21T12:00:00.000Z'
const dueTimes = ['2026-11-22T12:00:00.000Z', '2026-11-23T12:00:00.000Z'] as const

interface Model {
  owner: string | null
  dueAt: string | null
  /** The deadline rings once, and once it rang the level rises once; setting it winds it up again. */
  clock: 'none' | 'ticking' | 'rung' | 'escalated'
  level: number
  over: boolean
}
interface Real {
  readonly stage: Stage
  readonly ref: ActorRef
}
type Command = fc.AsyncCommand<Model, Real>

const Owned = z.object({ owner: z.string().nullable(), dueAt: z.string().nullable(), level: z.number() })

async function agree(model: Model, { stage, ref }: Real): Promise<void> {
  const { context, status } = await stage.snapshot(ref)
  expect({
    owner: context['assignee'],
    dueAt: context['dueAt'],
    level: context['level'],
    over: status === 'done',
  }).toEqual({
    owner: model.owner,
    dueAt: model.dueAt,
    level: model.level,
    over: model.over,
  })
  const row = await stage.db.pool.maybeOne(sql.type(Owned)`
    select assignee_membership_id as owner, due_at as "dueAt", escalation_level as level from ownership
    where task_id = ${ref.id}`)
  if (row === null) return expect([model.owner, model.dueAt, model.level]).toEqual([null, null, 0])
  expect(row).toEqual({ owner: model.owner, dueAt: model.dueAt, level: model.level })
}

/** Sends an event; `expected`: what must come of it, and of the model. */
const send = (name: string, event: () => EventObject, move: (model: Model) => 'refused' | void): Command => ({
  check: () => true,
  async run(model, real) {
    const sent = real.stage.runtime.send(real.ref, event(), 'test')
    if (model.over) await expect(sent).rejects.toBeInstanceOf(ActorGone)
    else if (move(model) === 'refused') await expect(sent).rejects.toBeInstanceOf(Refusal)
    else await sent
    await agree(model, real)
  },
  toString: () => name,
})

const people = { anna: '', ben: '' }
type Person = keyof typeof people

const claim = (who: Person): Command =>
  send(
    `claim ${who}`,
    () => ({ type: 'claim', membershipId: people[who], at }) as EventObject,
    (model) => {
      if (model.owner !== null && model.owner !== people[who]) return 'refused'
      model.owner = people[who]
    },
  )
const assign = (who: Person): Command =>
  send(
    `assign ${who}`,
    () => ({ type: 'assign', membershipId: people[who], claimedAt: null }) as EventObject,
    (model) => void (model.owner = people[who]),
  )
const release = send(
  'release',
  () => ({ type: 'release' }),
  (model) => void (model.owner = null),
)
const setDue = (dueAt: string): Command =>
  send(
    `setDue ${dueAt}`,
    () => ({ type: 'setDue', dueAt, inMs: 3_600_000 }) as EventObject,
    (model) => {
      if (model.clock === 'ticking' && model.dueAt === dueAt) return
      Object.assign(model, { dueAt, clock: 'ticking' })
    },
  )
const clearDue = send(
  'clearDue',
  () => ({ type: 'clearDue' }),
  (model) => void Object.assign(model, { dueAt: null, clock: 'none' }),
)
const settle = send(
  'settle',
  () => ({ type: 'settle' }),
  (model) => void (model.over = true),
)
/** A deadline that was moved or cleared rings no more. */
const ring: Command = {
  check: (model) => !model.over,
  async run(model, real) {
    await real.stage.ring(real.ref, { type: 'xstate.after.untilDue.ownership.open.deadline.ticking' })
    if (model.clock === 'ticking') model.clock = 'rung'
    await agree(model, real)
  },
  toString: () => 'ring',
}
const escalate = (who: Person | null): Command =>
  send(
    `escalate ${who}`,
    () => ({ type: 'escalate', targetMembershipId: who === null ? null : people[who], at }) as EventObject,
    (model) => {
      if (who !== null) model.owner = people[who]
      if (model.clock === 'rung') Object.assign(model, { level: model.level + 1, clock: 'escalated' })
    },
  )

const person = fc.constantFrom<Person>('anna', 'ben')
const commands = fc.commands(
  [
    // The end is rare, or nothing else would be tried.
    ...Array.from({ length: 4 }, () => [
      person.map(claim),
      person.map(assign),
      fc.constant(release),
      fc.constantFrom(...dueTimes).map(setDue),
      fc.constant(ring),
      fc.option(person, { nil: null }).map(escalate),
    ]).flat(),
    fc.constant(clearDue),
    fc.constant(settle),
  ],
  { maxCommands: 40, size: 'max' },
)

describe.each(bothDatabases)('ownership on %s', (kind) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openModelStage(kind)
    const { organizationId } = stage.viewer
    for (const who of ['anna', 'ben'] as const) {
      const [personId, membershipId] = [uuidv7(), uuidv7()]
      await stage.db.pool.query(sql.unsafe`insert into person (id, display_name) values (${personId}, ${who})`)
      await stage.db.pool.query(sql.unsafe`
        insert into membership (id, organization_id, person_id, role) values (${membershipId}, ${organizationId}, ${personId}, 'operator')`)
      people[who] = membershipId
    }
  })
  afterAll(() => stage.close())

  it('is as the model says, whatever people and clocks do', async () => {
    await explore(
      stage,
      fc.asyncProperty(commands, async (plan) => {
        const ref = { kind: 'ownership', id: await stage.beginTask(uuidv7(), 'TASK_STATE_WORKING') }
        await stage.spawn(ref)
        const model: Model = { owner: null, dueAt: null, clock: 'none', level: 0, over: false }
        await fc.asyncModelRun(() => ({ model, real: { stage, ref } }), plan)
      }),
      shortRuns,
    )
  })
})
