/**
 * The life of a command against a model in memory, through the real runtime: accept, claim, reports of every kind, late
 * reports, leases that run out, timers, replays; in any order fast-check thinks of. The model is the promise in a few lines:
 * three tries to find the agent, one delivery, and doubt wherever a delivery's end was not heard.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventObject } from 'xstate'
import { LeaseLost } from '../../../actors/loop/lease.ts'
import { reactions } from '../../../actors/reactions.ts'
import { commandErrors, discoveryInterrupted, type CommandStatus } from '../../../domain/command.ts'
import type { DueActor } from '../../../persistence/leases.ts'
import { bothDatabases } from '../../support/databases.ts'
import { explore } from './exploring.ts'
import { openModelStage, type Stage } from './stage.ts'

const shortRuns = 12

interface Modelled {
  readonly key: string
  status: CommandStatus
  error: string | null
  /** What it wants done, or a timer, or nothing any more. */
  wants: 'discover' | 'deliver' | 'timer' | null
  attempts: number
  /** Ends of whoever looked for its agent. */
  interruptions: number
  /** `lapsed`: it ran out, and nobody has taken it over yet. */
  lease: 'none' | 'held' | 'lapsed'
}
type Model = Modelled[]

interface Real {
  readonly stage: Stage
  /** The agent is at hand when something is accepted: nobody looks for it first. */
  readonly isDiscovered: boolean
  readonly prefix: string
  readonly ids: string[]
  readonly claims: Map<number, DueActor[]>
}

type Command = fc.AsyncCommand<Model, Real>

const ref = (real: Real, i: number) => ({ kind: 'command', id: real.ids[i] ?? '' })
const body = { action: 'send' as const, tenant: '', text: 'Do it.' }
const done = (work: string, output: object): EventObject & { readonly output: object } => ({
  type: `xstate.done.actor.${work}`,
  output,
})

async function agree(model: Model, real: Real): Promise<void> {
  for (const [i, { status, error }] of model.entries()) {
    const found = await real.stage.commands.find(real.stage.viewer, real.ids[i] ?? '')
    expect({ status: found.status, error: found.error }).toEqual({ status, error })
  }
}

const end = (command: Modelled, status: CommandStatus, error: string | null): void => {
  Object.assign(command, { status, error, wants: null, lease: 'none' })
}

function missed(command: Modelled): void {
  if (command.attempts >= 3) return end(command, 'failed', commandErrors.discovery)
  Object.assign(command, { wants: 'timer', lease: 'none' })
}

/** A new command, or the old one by its key. */
const accept = (which: number): Command => ({
  check: () => true,
  async run(model, real) {
    const i = which % (model.length + 1)
    const idempotencyKey = `${real.prefix}-${i}`
    const { agentId, commands, viewer } = real.stage
    const { command, replayed } = await commands.accept(viewer, { agentId, body, idempotencyKey })
    expect(replayed).toBe(i < model.length)
    if (replayed) expect(command.id).toBe(real.ids[i])
    else {
      real.ids.push(command.id)
      model.push({
        key: idempotencyKey,
        status: real.isDiscovered ? 'dispatching' : 'pending',
        error: null,
        wants: real.isDiscovered ? 'deliver' : 'discover',
        attempts: 1,
        interruptions: 0,
        lease: 'none',
      })
    }
    await agree(model, real)
  },
  toString: () => `accept(${which})`,
})

const on = (
  which: number,
  name: string,
  act: (command: Modelled, real: Real, i: number) => Promise<void>,
): Command => ({
  check: (model) => model.length > 0,
  async run(model, real) {
    const i = which % model.length
    const command = model[i]
    if (command) await act(command, real, i)
    await agree(model, real)
  },
  toString: () => `${name}(${which})`,
})

const claim = (which: number): Command =>
  on(which, 'claim', async (command, real, i) => {
    const isDue = command.lease !== 'held' && (command.wants === 'discover' || command.wants === 'deliver')
    const claimed = await real.stage.claim(ref(real, i))
    expect(claimed !== null).toBe(isDue)
    if (!claimed) return
    const begun = command.lease === 'lapsed'
    expect({ work: claimed.work, begun: claimed.begun }).toEqual({ work: command.wants, begun })
    real.claims.set(i, [...(real.claims.get(i) ?? []), claimed])
    command.lease = 'held'
    if (!begun) return
    // What had begun is never begun again: the machine is asked, and doubts a delivery. A discovery starts over at once.
    await real.stage.report(claimed, { type: 'interrupted' })
    if (command.wants === 'deliver') end(command, 'uncertain', commandErrors.leaseExpired)
    else if (command.interruptions >= 10) end(command, 'failed', discoveryInterrupted)
    else command.interruptions += 1
  })

const outcomes = {
  found: { kind: 'found' },
  missed: { kind: 'missed' },
  unavailable: { kind: 'unavailable' },
  ruledOut: { kind: 'refused', message: 'Ruled out.' },
  replied: { kind: 'replied' },
  refused: { kind: 'refused', message: 'No.' },
  unsent: { kind: 'unsent', message: 'Agent network request failed.' },
  unknown: { kind: 'unknown', cause: 'Agent network request failed.' },
} as const
type Outcome = keyof typeof outcomes
const ofDiscovery: readonly Outcome[] = ['found', 'missed', 'unavailable', 'ruledOut']

function heard(command: Modelled, outcome: Outcome): void {
  const output = outcomes[outcome]
  if (outcome === 'found') Object.assign(command, { status: 'dispatching', wants: 'deliver' })
  else if (outcome === 'missed') missed(command)
  else if (outcome === 'unavailable') end(command, 'failed', commandErrors.unavailable)
  else if (outcome === 'replied') end(command, 'succeeded', null)
  else if (outcome === 'unknown') end(command, 'uncertain', commandErrors.uncertain)
  else end(command, 'failed', 'message' in output ? output.message : null)
}

/**
 * The last holder reports: what it knows is the truth, until somebody else has taken over. `late`: the holder before, whose
 * word counts for nothing any more.
 */
const report = (which: number, outcome: Outcome, late: boolean): Command =>
  on(which, `report ${outcome}${late ? ' late' : ''}`, async (command, real, i) => {
    const claims = real.claims.get(i) ?? []
    const isLate = late || command.lease === 'none'
    const claimed = claims.at(command.lease === 'none' ? -1 : late ? -2 : -1)
    const work = ofDiscovery.includes(outcome) ? 'discover' : 'deliver'
    if (!claimed || claimed.work !== work) return
    const reported = real.stage.report(claimed, done(work, outcomes[outcome]))
    if (isLate) return expect(reported).rejects.toBeInstanceOf(LeaseLost)
    await reported
    heard(command, outcome)
    if (outcome !== 'found') return
    // The lease of a discovery goes on to the delivery that follows, in the same commit.
    command.lease = 'held'
    real.claims.set(i, [...claims, { ...claimed, work: 'deliver' }])
  })

/** Our own code failed: before the delivery that is one more try, in it nobody knows. */
const fail = (which: number): Command =>
  on(which, 'fail', async (command, real, i) => {
    const claimed = real.claims.get(i)?.at(-1)
    if (!claimed || command.lease === 'none') return
    await real.stage.report(claimed, { type: `xstate.error.actor.${claimed.work}`, error: 'a defect' } as EventObject)
    if (claimed.work === 'deliver') end(command, 'uncertain', commandErrors.uncertain)
    else missed(command)
  })

/** The process that held it is gone, or stood still for too long. */
const expire = (which: number): Command =>
  on(which, 'expire', async (command, real, i) => {
    await real.stage.expire(ref(real, i))
    if (command.lease === 'held') command.lease = 'lapsed'
  })

const ring = (which: number): Command =>
  on(which, 'ring', async (command, real, i) => {
    if (command.wants !== 'timer') return
    await real.stage.ring(ref(real, i), { type: 'xstate.after.backoff.command.pending.waiting' })
    Object.assign(command, { wants: 'discover', attempts: command.attempts + 1 })
  })

const index = fc.nat(5)
const commands = fc.commands(
  [
    index.map(accept),
    index.map(claim),
    index.map(claim),
    fc
      .tuple(index, fc.constantFrom(...(Object.keys(outcomes) as Outcome[])))
      .map(([i, outcome]) => report(i, outcome, false)),
    fc
      .tuple(index, fc.constantFrom(...(Object.keys(outcomes) as Outcome[])))
      .map(([i, outcome]) => report(i, outcome, false)),
    fc
      .tuple(index, fc.constantFrom(...(Object.keys(outcomes) as Outcome[])))
      .map(([i, outcome]) => report(i, outcome, true)),
    index.map(expire),
    index.map(fail),
    index.map(ring),
  ],
  { maxCommands: 40, size: 'max' },
)

const ways = bothDatabases.flatMap((kind) => [
  { kind, isDiscovered: false, agents: 'have to be looked for' },
  { kind, isDiscovered: true, agents: 'are at hand' },
])

describe.each(ways)('commands on $kind to agents that $agents', ({ kind, isDiscovered }) => {
  let stage: Stage
  let runs = 0
  beforeAll(async () => {
    stage = await openModelStage(kind, reactions, isDiscovered)
  })
  afterAll(() => stage.close())

  it('live as the model says, whatever happens to them', async () => {
    await explore(
      stage,
      fc.asyncProperty(commands, (plan) =>
        fc.asyncModelRun(() => {
          const real: Real = { stage, isDiscovered, prefix: `run-${++runs}`, ids: [], claims: new Map() }
          return { model: [], real }
        }, plan),
      ),
      shortRuns,
    )
  })
})
