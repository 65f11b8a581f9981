/**
 * Following a task against a model in memory, through the real runtime and the real reactions: every outcome of a stream and
 * of a read, leases that run out, timers, a person's answers, news by push, an end in another's sight, seen whole or not. The
 * model knows three numbers and a state; what it leaves out, the runtime must not add.
 */
import fc from 'fast-check'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventObject } from 'xstate'
import { LeaseLost } from '../../../actors/loop/lease.ts'
import type { FollowOutcome } from '../../../machines/subscription.ts'
import type { ActorRef } from '../../../persistence/actors.ts'
import type { DueActor } from '../../../persistence/leases.ts'
import { bothDatabases } from '../../support/databases.ts'
import { explore } from './exploring.ts'
import { openModelStage, statusOf, type Stage } from './stage.ts'

const shortRuns = 15
const startMs = Date.parse('2026-11-21T12:00:00.000Z')

type State =
  | 'following'
  | 'backingOff'
  | 'away'
  | 'pausing'
  | 'reading'
  | 'readingAway'
  | 'resting'
  | 'stopped'
  | 'closing'
  | 'closingPause'
  | 'finished'
interface Model {
  state: State
  failures: number
  reason: string | null
  /** A person answered while the stream was followed. */
  rearmed: boolean
  /** Its stream was told to be open. */
  open: boolean
  lease: 'none' | 'held' | 'lapsed'
  /** An answer or a push told of the end: nothing else that is told counts. */
  over: boolean
  /** It was told while somebody was at the stream, of which only this is to come. */
  ended: 'part' | 'whole' | null
  /** Seconds on the agent's clock: every status is newer than the one before. */
  clock: number
}
interface Real {
  readonly stage: Stage
  readonly remoteId: string
  readonly ref: ActorRef
  /** Somebody who lives as long as the test, in whose name a push and a reply are told. */
  readonly teller: ActorRef
  claims: DueActor[]
}
type Command = fc.AsyncCommand<Model, Real>

const stateOf = (value: unknown): State => {
  if (typeof value === 'string') return value as State
  const { polling, closing } = value as { polling: string; closing?: string }
  if (closing !== undefined) return closing === 'trying' ? 'closing' : 'closingPause'
  return polling === 'away' ? 'readingAway' : (polling as State)
}

async function agree(model: Model, { stage, ref }: Real): Promise<void> {
  const { value, context } = await stage.snapshot(ref)
  const { failures, reason, open } = context
  expect({ state: stateOf(value), failures, reason, open: open === true }).toEqual({
    state: model.state,
    failures: model.failures,
    reason: model.reason,
    open: model.open,
  })
}

const works = (state: State): boolean => state === 'following' || state === 'reading' || state === 'closing'
const closes = (state: State): boolean => state === 'closing' || state === 'closingPause'

function enter(model: Model, state: State): void {
  Object.assign(model, { state, lease: 'none', open: false })
  if (state === 'resting') Object.assign(model, { failures: 0, reason: null, rearmed: false })
}

function close(model: Model, state: 'closing' | 'closingPause'): void {
  Object.assign(model, { failures: 1, reason: null })
  enter(model, state)
}

/** The end was noted while the stream was followed: the look at it goes on under the same lease. */
function closeOn(model: Model, claims: DueActor[]): void {
  close(model, 'closing')
  model.lease = 'held'
  claims.push(...claims.slice(-1).map((claimed) => ({ ...claimed, work: 'close' })))
}

/** A look at a finished task that did not show it whole: the eighth is the last. */
function closeAgain(model: Model): void {
  if (model.failures >= 8) return enter(model, 'finished')
  model.failures += 1
  enter(model, 'closingPause')
}

/** What becomes of it after an outcome, by the rules and not by the machine. */
function heard(model: Model, outcome: FollowOutcome, claims: DueActor[]): void {
  const streaming = model.state === 'following'
  if (streaming && model.ended === 'whole') return enter(model, 'finished')
  if (streaming && model.ended === 'part' && outcome.kind !== 'finished' && outcome.kind !== 'unseen')
    return closeOn(model, claims)
  const next = streaming ? 'backingOff' : 'pausing'
  switch (outcome.kind) {
    case 'finished':
      return enter(model, 'finished')
    case 'unseen':
      return streaming ? close(model, 'closingPause') : closeAgain(model)
    case 'waiting':
      if (!streaming || !model.rearmed) return enter(model, 'resting')
      // The answer came while the question was still being told: once more, and the lease goes on.
      return void Object.assign(model, { rearmed: false, lease: 'held', open: false })
    case 'unsupported':
      return enter(model, 'pausing')
    case 'gone':
    case 'unreadable':
      model.reason = outcome.reason
      return enter(model, 'stopped')
    case 'yielded':
      Object.assign(model, { failures: 0, reason: null })
      return enter(model, next)
    case 'ended':
      Object.assign(model, { failures: outcome.news ? 0 : Math.min(6, model.failures + 1), reason: null })
      return enter(model, next)
    case 'broken': {
      Object.assign(model, { failures: Math.min(outcome.heard ? 6 : 14, model.failures + 1), reason: outcome.reason })
      const isAway = model.failures >= 10
      return enter(model, isAway ? (streaming ? 'away' : 'readingAway') : next)
    }
  }
}

const always = (name: string, run: (model: Model, real: Real) => Promise<unknown>): Command => ({
  check: (model) => model.state !== 'finished',
  async run(model, real) {
    await run(model, real)
    await agree(model, real)
  },
  toString: () => name,
})

const claim = always('claim', async (model, real) => {
  const claimed = await real.stage.claim(real.ref)
  expect(claimed !== null).toBe(works(model.state) && model.lease !== 'held')
  if (!claimed) return
  real.claims.push(claimed)
  const begun = model.lease === 'lapsed'
  expect(claimed.begun).toBe(begun)
  model.lease = 'held'
  // Following harms nobody, so what was interrupted begins again, under the same lease.
  if (!begun) return
  await real.stage.report(claimed, { type: 'interrupted' })
  model.open = false
})

const done = (work: string | null, output: FollowOutcome): EventObject & { output: FollowOutcome } => ({
  type: `xstate.done.actor.${work}`,
  output,
})
const report = (outcome: FollowOutcome): Command =>
  always(`report ${JSON.stringify(outcome)}`, async (model, real) => {
    const claimed = real.claims.at(-1)
    const onlyStreams = outcome.kind === 'yielded' || outcome.kind === 'unsupported'
    const isOfClosing = outcome.kind === 'unseen' || outcome.kind === 'finished'
    if (!claimed || model.lease === 'none' || (onlyStreams && model.state !== 'following')) return
    if (model.state === 'closing' ? !isOfClosing : model.state === 'reading' && outcome.kind === 'unseen') return
    await real.stage.report(claimed, done(claimed.work, outcome))
    heard(model, outcome, real.claims)
  })

/** Told for people: nothing follows from it. */
const note = (type: 'opened' | 'closed'): Command =>
  always(type, async (model, real) => {
    const claimed = real.claims.at(-1)
    if (claimed?.work !== 'follow' || model.state !== 'following' || model.lease === 'none') return
    await real.stage.report(claimed, { type })
    model.open = type === 'opened'
  })

/** Our own code failed on it: tried again, and never taken for the agent's silence. */
const fail = always('fail', async (model, real) => {
  const claimed = real.claims.at(-1)
  if (!claimed || model.lease === 'none') return
  await real.stage.report(claimed, { type: `xstate.error.actor.${claimed.work}`, error: 'a defect' } as EventObject)
  if (model.state === 'closing') return closeAgain(model)
  if (model.state === 'following' && model.ended === 'whole') return enter(model, 'finished')
  if (model.state === 'following' && model.ended === 'part') return closeOn(model, real.claims)
  Object.assign(model, { failures: Math.min(14, model.failures + 1), reason: 'Following the task failed.' })
  enter(model, model.state === 'following' ? 'backingOff' : 'pausing')
})

/** Whoever was replaced has nothing to say any more. */
const reportLate = always('report late', async (model, real) => {
  const [late, last] = [real.claims.at(-2), real.claims.at(-1)]
  const old = model.lease === 'none' ? last : late
  if (!old) return
  await expect(real.stage.report(old, done(old.work, { kind: 'finished' }))).rejects.toBeInstanceOf(LeaseLost)
})

const expire = always('expire', async (model, real) => {
  await real.stage.expire(real.ref)
  if (model.lease === 'held') model.lease = 'lapsed'
})

const timers: Partial<Record<State, [event: string, next: State]>> = {
  backingOff: ['xstate.after.backoff.subscription.backingOff', 'following'],
  away: ['xstate.after.absence.subscription.away', 'following'],
  pausing: ['xstate.after.readPause.subscription.polling.pausing', 'reading'],
  readingAway: ['xstate.after.absence.subscription.polling.away', 'reading'],
  closingPause: ['xstate.after.backoff.subscription.closing.pausing', 'closing'],
}
const ring = always('ring', async (model, real) => {
  const timer = timers[model.state]
  if (!timer) return
  await real.stage.ring(real.ref, { type: timer[0] })
  enter(model, timer[1])
})

const status = (model: Model, remoteId: string, state: string) =>
  statusOf(remoteId, state, new Date(startMs + ++model.clock * 1000).toISOString())

/** A person's message was answered: the agent is at work again. */
const answer = always('answer', async (model, real) => {
  const seen = status(model, real.remoteId, 'TASK_STATE_WORKING')
  await real.stage.tell(real.teller, { source: 'reply', remoteTaskId: real.remoteId }, seen, true)
  if (model.over || closes(model.state)) return
  Object.assign(model, { failures: 0, reason: null })
  if (model.state === 'following') model.rearmed = true
  else enter(model, 'following')
})

/**
 * Another tells the end: an answer that shows nothing of what was made, as that to a cancel may; a push, of which others may have
 * been lost; a read, which shows it whole.
 */
const end = (source: 'reply' | 'push' | 'poll'): Command =>
  always(`end by ${source}`, async (model, real) => {
    const seen = status(model, real.remoteId, 'TASK_STATE_CANCELED')
    await real.stage.tell(real.teller, { source, remoteTaskId: real.remoteId }, seen, source === 'reply')
    if (model.over) return
    model.over = true
    if (model.state === 'following' && model.lease !== 'none')
      return void (model.ended = source === 'poll' ? 'whole' : 'part')
    if (source === 'poll') return enter(model, 'finished')
    close(model, 'closing')
  })

const push = (state: string): Command =>
  always(`push ${state}`, async (model, real) => {
    const seen = status(model, real.remoteId, state)
    await real.stage.tell(real.teller, { source: 'push', remoteTaskId: real.remoteId }, seen)
    if (model.over) return
    // What waits for a person goes on without one.
    if (model.state === 'resting' && state === 'TASK_STATE_WORKING') return enter(model, 'following')
    // News of an agent that was given up for away: it is there.
    if (model.state !== 'away' && model.state !== 'readingAway') return
    Object.assign(model, { failures: 0, reason: null })
    enter(model, model.state === 'away' ? 'following' : 'reading')
  })

const network = 'Agent network request failed.'
const silent: FollowOutcome = { kind: 'broken', reason: network, heard: false }
const outcomes: readonly FollowOutcome[] = [
  { kind: 'waiting' },
  { kind: 'unsupported' },
  { kind: 'yielded' },
  { kind: 'ended', news: true },
  { kind: 'ended', news: false },
  { kind: 'broken', reason: 'The event is not JSON.', heard: true },
  silent,
  silent,
  silent,
  { kind: 'unreadable', reason: 'Agent response exceeds the safety limit.' },
  { kind: 'gone', reason: 'The agent was removed.' },
]

/** A whole round, so that a walk comes as far as ten silences. */
const round = (outcome: FollowOutcome): Command =>
  always(`round ${outcome.kind}`, async (model, real) => {
    for (const each of [ring, claim, report(outcome)]) await each.run(model, real)
  })

const closingRound: Command = always('closing round', async (model, real) => {
  if (!closes(model.state)) return
  for (const each of [ring, claim, report({ kind: 'unseen' })]) await each.run(model, real)
})

const commands = fc.commands(
  [
    ...Array.from({ length: 3 }, () => [
      fc.constant(claim),
      fc.constantFrom(...outcomes).map(report),
      fc.constant(ring),
    ]).flat(),
    ...Array.from({ length: 8 }, () => fc.constant(round(silent))),
    fc.constant(round({ kind: 'unsupported' })),
    fc.constant(round({ kind: 'unsupported' })),
    fc.constant(fail),
    fc.constantFrom('opened' as const, 'opened' as const, 'closed' as const).map(note),
    fc.constant(reportLate),
    fc.constant(expire),
    fc.constant(answer),
    fc.constantFrom('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED').map(push),
    fc.constantFrom('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED').map(push),
    fc.constant(report({ kind: 'finished' })),
    fc.constant(report({ kind: 'unseen' })),
    ...Array.from({ length: 2 }, () => fc.constant(closingRound)),
    fc.constantFrom('reply' as const, 'push' as const).map(end),
    fc.constant(end('poll')),
  ],
  { maxCommands: 80, size: 'max' },
)

describe.each(bothDatabases)('subscriptions on %s', (kind) => {
  let stage: Stage
  let teller: ActorRef
  beforeAll(async () => {
    stage = await openModelStage(kind)
    teller = { kind: 'subscription', id: await stage.beginTask('teller', 'TASK_STATE_WORKING') }
  })
  afterAll(() => stage.close())

  it('follow, rest, give up and come back as the model says', async () => {
    await explore(
      stage,
      fc.asyncProperty(commands, async (plan) => {
        const remoteId = uuidv7()
        const ref = { kind: 'subscription', id: await stage.beginTask(remoteId, 'TASK_STATE_WORKING') }
        const model: Model = {
          state: 'following',
          failures: 0,
          reason: null,
          rearmed: false,
          open: false,
          lease: 'none',
          over: false,
          ended: null,
          clock: 0,
        }
        await fc.asyncModelRun(() => ({ model, real: { stage, remoteId, ref, teller, claims: [] } }), plan)
      }),
      shortRuns,
    )
  })
})
