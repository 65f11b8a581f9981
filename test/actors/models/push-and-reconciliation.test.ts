/**
 * Push of a task and reconciliation of a scope against models in memory, through the real runtime and the real reactions: every
 * outcome of their work, leases that run out, timers, and what reaches them from elsewhere (the end of the task, by a push
 * or otherwise; a scope that is wanted). The models know the rules; states, counters and what is told must follow them.
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventObject } from 'xstate'
import { z } from 'zod'
import { pushReactions } from '../../../actors/push-reactions.ts'
import { reactions } from '../../../actors/reactions.ts'
import type { RegisterOutcome } from '../../../machines/push.ts'
import type { CheckOutcome, ListOutcome } from '../../../machines/reconciliation.ts'
import type { ActorRef } from '../../../persistence/actors.ts'
import { bothDatabases } from '../../support/databases.ts'
import { explore } from './exploring.ts'
import { Hand } from './hand.ts'
import { openModelStage, statusOf, type Stage } from './stage.ts'

const shortRuns = 10

const done = (work: string, output: { readonly kind: string }) =>
  ({ type: `xstate.done.actor.${work}`, output }) as EventObject
const defect = (work: string) => ({ type: `xstate.error.actor.${work}`, error: 'a defect' }) as EventObject
const times = <T>(count: number, each: T): T[] => Array.from({ length: count }, () => each)

const Told = z.object({ kind: z.string() })
const factsOf = ({ db }: Stage, id: string, kind: string): Promise<readonly string[]> =>
  db.pool.anyFirst(
    sql.type(Told)`select kind from fact where subject_id = ${id} and kind like ${`${kind}.%`} order by number`,
  )

// --- push ---------------------------------------------------------------------------------------------------------------

interface Push {
  state: string
  failures: number
  reason: string | null
  /** The task ended while it was being registered. */
  settled: boolean
  /** Whether the task has ended at all: it does so once. */
  over: boolean
}
interface PushReal {
  readonly hand: Hand
  readonly teller: ActorRef
  readonly remoteId: string
}
type PushCommand = fc.AsyncCommand<Push, PushReal>

const pushWorks: Readonly<Record<string, string>> = {
  registering: 'register',
  'removing.trying': 'remove',
}
const pushWork = ({ state }: Push): string | null => pushWorks[state] ?? null
const isEnded = ({ state }: Push): boolean => state === 'unsupported' || state === 'ended'
const pathOf = (value: unknown): string =>
  typeof value === 'string' ? value : (Object.entries(value as Record<string, string>)[0]?.join('.') ?? '')

function enter(model: Push, state: string): void {
  Object.assign(model, { state, ...(state.endsWith('.trying') ? { failures: 0, reason: null } : {}) })
}

/** Once the task is over everything leads to taking the registration back. */
const closing = ({ settled }: Push): string | null => (settled ? 'removing.trying' : null)

function registered(model: Push, outcome: RegisterOutcome | 'defect'): void {
  const kind = outcome === 'defect' ? 'missed' : outcome.kind
  if (kind === 'unsupported') return enter(model, 'unsupported')
  if (kind === 'gone') return enter(model, 'ended')
  const next = closing(model)
  if (next) return enter(model, next)
  if (kind === 'registered') return void Object.assign(model, { state: 'registered', failures: 0, reason: null })
  model.reason = outcome === 'defect' ? 'The console failed to register.' : 'reason' in outcome ? outcome.reason : null
  if (model.failures === 7) return enter(model, 'stopped')
  Object.assign(model, { state: 'waiting', failures: model.failures + 1 })
}

/** Three tries, and then on. */
function removed(model: Push, isAnswered: boolean): void {
  if (isAnswered || model.failures === 2) return enter(model, 'ended')
  Object.assign(model, { state: 'removing.pausing', failures: model.failures + 1 })
}

const pushStep = (name: string, run: (model: Push, real: PushReal) => Promise<unknown>): PushCommand => ({
  check: (model) => !isEnded(model),
  async run(model, real) {
    if (isEnded(model)) return
    await run(model, real)
    const { value, context } = await real.hand.stage.snapshot(real.hand.ref)
    const { failures, reason } = model
    expect({ state: pathOf(value), ...context }).toMatchObject({ state: model.state, failures, reason })
  },
  toString: () => name,
})

const pushClaim = pushStep('claim', async (model, { hand }) => {
  if ((await hand.claim(pushWork(model))) === null) return
  const next = model.state === 'registering' ? closing(model) : null
  if (next) enter(model, next)
})
const register = (outcome: RegisterOutcome | 'defect') =>
  pushStep(`register ${typeof outcome === 'string' ? outcome : outcome.kind}`, async (model, { hand }) => {
    if (model.state !== 'registering') return
    const event = outcome === 'defect' ? defect('register') : done('register', outcome)
    if ((await hand.report('register', event)) === 'none') return
    registered(model, outcome)
    hand.moved(pushWork(model))
  })
const remove = (outcome: 'ended' | 'missed' | 'defect') =>
  pushStep(`remove ${outcome}`, async (model, { hand }) => {
    const work = pushWork(model)
    if (work === null || work === 'register') return
    const event = outcome === 'defect' ? defect(work) : done(work, { kind: outcome })
    if ((await hand.report(work, event)) === 'none') return
    removed(model, outcome === 'ended')
    hand.moved(pushWork(model))
  })
const pushRing = pushStep('ring', async (model, { hand }) => {
  if (model.state !== 'waiting' && !model.state.endsWith('.pausing')) return
  await hand.stage.ring(hand.ref, { type: `xstate.after.backoff.push.${model.state}` })
  model.state = model.state === 'waiting' ? 'registering' : model.state.replace('pausing', 'trying')
})
const settle = (source: 'push' | 'stream') =>
  pushStep(`settle by ${source}`, async (model, { hand, teller, remoteId }) => {
    if (model.over) return
    const seen = statusOf(remoteId, 'TASK_STATE_COMPLETED', '2026-11-21T12:00:00.000Z')
    await hand.stage.tell(teller, { source, remoteTaskId: remoteId }, seen)
    model.over = true
    if (model.state === 'registering') model.settled = true
    else enter(model, 'removing.trying')
  })
const pushLate = pushStep('report late', (model, { hand }) => hand.reportLate(pushWork(model)))
const pushExpire = pushStep('expire', (_model, { hand }) => hand.expire())

const missed: RegisterOutcome = { kind: 'missed', reason: 'Agent network request failed.' }
const pushRound = (outcome: RegisterOutcome) =>
  pushStep(`round ${outcome.kind}`, async (model, real) => {
    for (const each of [pushRing, pushClaim, register(outcome)]) await each.run(model, real)
  })

const pushPlan = fc.commands(
  [
    ...times(3, [fc.constant(pushClaim), fc.constant(pushRing)]).flat(),
    // Mostly silence, so that a walk comes as far as eight of them.
    ...times(14, fc.constant(pushRound(missed))),
    fc.constant(pushRound({ kind: 'registered' })),
    ...times(3, fc.constantFrom('ended' as const, 'missed' as const, 'defect' as const).map(remove)),
    fc.constant(register({ kind: 'refused', reason: 'Not today.' })),
    fc.constant(register('defect')),
    fc.constantFrom<RegisterOutcome>({ kind: 'unsupported' }, { kind: 'gone' }).map(register),
    fc.constantFrom('push' as const, 'stream' as const).map(settle),
    fc.constant(pushLate),
    fc.constant(pushExpire),
  ],
  { maxCommands: 40, size: 'max' },
)

// --- reconciliation -----------------------------------------------------------------------------------------------------

interface Scope {
  state: 'resting' | 'checking' | 'yielding' | 'listing' | 'pausing' | 'backingOff'
  after: string | null
  failures: number
  passes: number
  reason: string | null
  listReason: string | null
  /** Quick answers until its agent is not called slow any more; absent before it was. */
  slow?: number
  /** What people are told, in order. */
  readonly told: string[]
}
interface ScopeReal {
  readonly hand: Hand
  readonly agentId: string
}
type ScopeCommand = fc.AsyncCommand<Scope, ScopeReal>

const scopeWork = ({ state }: Scope): string | null =>
  state === 'checking' ? 'check' : state === 'listing' ? 'list' : null
const counted = (passes: number): number => Math.min(4, passes + 1)

function succeeded(model: Scope): void {
  if (model.failures > 1) model.told.push('reconciliation.recovered')
  Object.assign(model, { failures: 0, reason: null })
}

/** One failure is weather, the second is told. */
function failed(model: Scope, reason: string): void {
  Object.assign(model, { failures: Math.min(7, model.failures + 1), reason })
  if (model.failures === 2) model.told.push('reconciliation.failing')
}

/** Slow for ten quick answers from the last that was not. */
function paced(model: Scope, { isSlow }: CheckOutcome | ListOutcome): void {
  if (isSlow === undefined) return
  if (isSlow) model.slow = 10
  else if (model.slow !== undefined) model.slow = Math.max(0, model.slow - 1)
}

function checked(model: Scope, outcome: CheckOutcome): void {
  paced(model, outcome)
  const listIsDue = model.passes >= 3 || outcome.isListOld === true
  if (outcome.kind === 'failed') {
    model.after = outcome.after
    if (outcome.progressed) succeeded(model)
    const isOver = outcome.progressed && (listIsDue || outcome.after === null)
    // Of one task it is said why, and not counted, where the pass does not go on at once.
    if (isOver) model.reason = outcome.reason
    else failed(model, outcome.reason)
    if (listIsDue) return void Object.assign(model, { state: 'listing' })
    return void Object.assign(model, { state: isOver ? 'pausing' : 'backingOff', passes: counted(model.passes) })
  }
  if (outcome.kind === 'gone') {
    Object.assign(model, { state: 'resting', after: null, failures: 0, reason: outcome.reason })
    return void model.told.push('reconciliation.rested')
  }
  succeeded(model)
  if (outcome.kind === 'more')
    return void Object.assign(model, {
      state: outcome.isListOld === true ? 'listing' : 'yielding',
      after: outcome.after,
    })
  model.after = null
  if (outcome.kind === 'idle') {
    model.state = 'resting'
    return void model.told.push('reconciliation.rested')
  }
  if (listIsDue) model.state = 'listing'
  else Object.assign(model, { state: 'pausing', passes: counted(model.passes) })
}

const scopeStep = (name: string, run: (model: Scope, real: ScopeReal) => Promise<unknown>): ScopeCommand => ({
  check: () => true,
  async run(model, real) {
    await run(model, real)
    const { stage, ref } = real.hand
    const { value, context } = await stage.snapshot(ref)
    const { told, state, ...known } = model
    expect({ state: value, ...context }).toMatchObject({ state, ...known })
    expect(await factsOf(stage, ref.id, 'reconciliation')).toEqual(told)
  },
  toString: () => name,
})

const scopeClaim = scopeStep('claim', (model, { hand }) => hand.claim(scopeWork(model)))
const check = (outcome: CheckOutcome) =>
  scopeStep(`check ${JSON.stringify(outcome)}`, async (model, { hand }) => {
    if (model.state !== 'checking' || (await hand.report('check', done('check', outcome))) === 'none') return
    checked(model, outcome)
    hand.moved(scopeWork(model))
  })
const list = (outcome: ListOutcome) =>
  scopeStep(`list ${outcome.kind}`, async (model, { hand }) => {
    if (model.state !== 'listing' || (await hand.report('list', done('list', outcome))) === 'none') return
    paced(model, outcome)
    if (outcome.kind === 'cut') {
      model.state = 'yielding'
      return void hand.moved(null)
    }
    const listReason = outcome.kind === 'failed' ? outcome.reason : null
    const isUnread = model.failures > 0
    const goesOn = outcome.kind !== 'failed' && model.after !== null
    const state = isUnread ? 'backingOff' : goesOn ? 'yielding' : 'pausing'
    Object.assign(model, { state, passes: 0, listReason })
    hand.moved(null)
  })
const scopeFail = scopeStep('fail', async (model, { hand }) => {
  const work = scopeWork(model)
  if (work === null || (await hand.report(work, defect(work))) === 'none') return
  if (work === 'check') {
    failed(model, 'The look could not be finished.')
    model.state = 'backingOff'
  } else Object.assign(model, { state: 'pausing', passes: 0, listReason: 'The list could not be read.' })
  hand.moved(null)
})
const timers: Partial<Record<Scope['state'], string>> = {
  yielding: 'breath',
  pausing: 'checkPause',
  backingOff: 'backoff',
}
const scopeRing = scopeStep('ring', async (model, { hand }) => {
  const timer = timers[model.state]
  if (timer === undefined) return
  await hand.stage.ring(hand.ref, { type: `xstate.after.${timer}.reconciliation.${model.state}` })
  model.state = 'checking'
})
const want = scopeStep('want', async (model, { hand, agentId }) => {
  await hand.stage.runtime.send(hand.ref, { type: 'wanted', agentId, tenant: 'north' } as EventObject, 'test')
  if (model.state === 'resting') model.told.push('reconciliation.woken')
  if (model.state === 'resting' || model.state === 'pausing') Object.assign(model, { state: 'checking', after: null })
})
const scopeLate = scopeStep('report late', (model, { hand }) => hand.reportLate(scopeWork(model)))
const scopeExpire = scopeStep('expire', (_model, { hand }) => hand.expire())

const failure = (progressed: boolean, after: string | null): CheckOutcome => ({
  kind: 'failed',
  reason: progressed ? 'The agent did not answer in time.' : 'Agent network request failed.',
  after,
  progressed,
})
const looks: readonly CheckOutcome[] = [
  { kind: 'busy' },
  { kind: 'busy', isSlow: false },
  { kind: 'busy', isListOld: true },
  { kind: 'more', after: 'hundredth' },
  { kind: 'more', after: 'hundredth', isListOld: true },
  { kind: 'more', after: null, isSlow: true },
  { kind: 'busy', isSlow: true },
  failure(false, null),
  failure(false, 'seventh'),
  failure(true, 'seventh'),
  failure(true, null),
  { ...failure(true, null), isListOld: true },
]
const ends: readonly CheckOutcome[] = [{ kind: 'idle' }, { kind: 'gone', reason: 'The agent was removed.' }]
const scopeRound = (outcome: CheckOutcome) =>
  scopeStep(`round ${JSON.stringify(outcome)}`, async (model, real) => {
    for (const each of [scopeRing, scopeClaim, check(outcome)]) await each.run(model, real)
  })

const scopePlan = fc.commands(
  [
    ...times(5, fc.constantFrom(...looks).map(scopeRound)),
    ...times(2, fc.constant(want)),
    fc.constant(scopeClaim),
    fc.constantFrom(...looks, ...ends).map(check),
    ...times(
      2,
      fc
        .constantFrom<ListOutcome>(
          { kind: 'listed' },
          { kind: 'unsupported' },
          { kind: 'listed', isSlow: true },
          { kind: 'cut', isSlow: true },
          { kind: 'failed', reason: 'No list.' },
        )
        .map(list),
    ),
    fc.constant(scopeRing),
    fc.constant(scopeFail),
    fc.constant(scopeLate),
    fc.constant(scopeExpire),
  ],
  { maxCommands: 40, size: 'max' },
)

describe.each(bothDatabases)('what is asked of agents on %s', (kind) => {
  let stage: Stage
  let teller: ActorRef
  beforeAll(async () => {
    stage = await openModelStage(kind, [...reactions, ...pushReactions])
    teller = { kind: 'subscription', id: await stage.beginTask('teller', 'TASK_STATE_WORKING') }
  })
  afterAll(() => stage.close())

  it('push registers, gives up, looks and takes back as the model says', async () => {
    const property = fc.asyncProperty(pushPlan, async (plan) => {
      const remoteId = uuidv7()
      const ref = { kind: 'push', id: await stage.beginTask(remoteId, 'TASK_STATE_WORKING') }
      const model: Push = { state: 'registering', failures: 0, reason: null, settled: false, over: false }
      await fc.asyncModelRun(() => ({ model, real: { hand: new Hand(stage, ref), teller, remoteId } }), plan)
    })
    await explore(stage, property, shortRuns)
  })

  it('a scope is asked, listed, left alone and taken up again as the model says', async () => {
    const property = fc.asyncProperty(scopePlan, async (plan) => {
      const ref = { kind: 'reconciliation', id: uuidv7() }
      await stage.spawn(ref)
      const blank = { after: null, failures: 0, passes: 0, reason: null, listReason: null, told: [] }
      const model: Scope = { state: 'resting', ...blank }
      await fc.asyncModelRun(() => ({ model, real: { hand: new Hand(stage, ref), agentId: stage.agentId } }), plan)
    })
    await explore(stage, property, shortRuns)
  })
})
