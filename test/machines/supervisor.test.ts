/**
 * The supervisor's machine against a model in memory: loops fail and are started again, one that keeps failing ends the
 * process, a drain is the end of everything else, and what comes late changes nothing. Time is a number in the events.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { initialTransition, transition, type AnyMachineSnapshot, type EventObject } from 'xstate'
import { z } from 'zod'
import { loopNames, supervisorFor, supervisorMachine, workersLoops, type LoopName } from '../../machines/supervisor.ts'

const numRuns = 60

interface Model {
  phase: 'starting' | 'running' | 'draining' | 'stopped' | 'broken'
  readonly restarting: Set<LoopName>
  /** When each failed, monotonic milliseconds. */
  readonly failures: Map<LoopName, number[]>
  restarts: number
  nowMs: number
}
interface Real {
  state: AnyMachineSnapshot
}
type Command = fc.Command<Model, Real>

const hear = (real: Real, event: EventObject): void => {
  ;[real.state] = transition(supervisorMachine, real.state as never, event as never)
}

const agree = ({ phase, restarting, restarts }: Model, { state }: Real): void => {
  const loops = Object.fromEntries(loopNames.map((name) => [name, restarting.has(name) ? 'restarting' : 'up']))
  expect(state.value).toEqual(phase === 'running' ? { running: loops } : phase)
  expect(state.status).toBe(phase === 'stopped' || phase === 'broken' ? 'done' : 'active')
  expect((state.context as { restarts: number }).restarts).toBe(restarts)
}

const step = (name: string, run: (model: Model, real: Real) => void): Command => ({
  check: () => true,
  run(model, real) {
    run(model, real)
    agree(model, real)
  },
  toString: () => name,
})

/** What a loop's runner does (actors/loop/supervisor.ts): it tells of the failure, then fails. */
const fail = (name: LoopName): Command =>
  step(`fail ${name}`, (model, real) => {
    if (model.phase === 'running' && model.restarting.has(name)) return
    hear(real, { type: 'failed', name, at: model.nowMs, message: 'Error' } as EventObject)
    // Late: its region is gone, and whoever ran it is not heard any more.
    if (model.phase !== 'running') return
    const earlier = model.failures.get(name) ?? []
    model.failures.set(name, [...earlier, model.nowMs])
    model.restarts += 1
    if (earlier.filter((at) => model.nowMs - at < 30_000).length >= 4) return void (model.phase = 'broken')
    hear(real, { type: `xstate.error.actor.${name}`, error: new Error('a defect') } as EventObject)
    model.restarting.add(name)
  })
const restart = (name: LoopName): Command =>
  step(`restart ${name}`, (model, real) => {
    if (model.phase === 'running' && !model.restarting.has(name)) return
    hear(real, { type: `xstate.after.500.supervisor.running.${name}.restarting` })
    model.restarting.delete(name)
  })
const pass = (ms: number): Command => step(`pass ${ms} ms`, (model) => void (model.nowMs += ms))
const ends = (phase: 'starting' | 'draining', how: 'done' | 'error', next: Model['phase']): Command =>
  step(`${phase} ${how}`, (model, real) => {
    if (model.phase !== phase) return
    hear(real, { type: `xstate.${how}.actor.0.supervisor.${phase}`, output: undefined } as EventObject)
    model.phase = next
  })
const drain = step('drain', (model, real) => {
  hear(real, { type: 'drain' })
  if (model.phase === 'starting' || model.phase === 'running') model.phase = 'draining'
})

const loop = fc.constantFrom<LoopName>('command', 'leases', 'housekeeping')
const plan = fc.commands(
  [
    ...Array.from({ length: 4 }, () => [loop.map(fail), loop.map(restart)]).flat(),
    fc.constantFrom(500, 6_000, 29_000).map(pass),
    fc.constant(drain),
    fc.constant(ends('draining', 'done', 'stopped')),
    fc.constant(ends('draining', 'error', 'broken')),
    fc.constant(ends('starting', 'error', 'broken')),
  ],
  { maxCommands: 40, size: 'max' },
)

describe('the supervisor', () => {
  it.each(['started', 'starting'])('starts again, gives up and drains as the model says, once %s', (from) => {
    const setup = () => {
      const [state] = initialTransition(supervisorMachine)
      const [model, real]: [Model, Real] = [
        { phase: 'starting', restarting: new Set(), failures: new Map(), restarts: 0, nowMs: 0 },
        { state },
      ]
      if (from === 'started') ends('starting', 'done', 'running').run(model, real)
      return { model, real }
    }
    const property = fc.property(plan, (commands) => fc.modelRun(setup, commands))
    fc.assert(property, { numRuns, seed: 3 })
  })

  it('gives up at the fifth failure of one loop in thirty seconds, and not for as many of several', () => {
    const after = (...failing: readonly (readonly [LoopName, number])[]): unknown => {
      const [state] = initialTransition(supervisorMachine)
      const real: Real = { state }
      hear(real, { type: 'xstate.done.actor.0.supervisor.starting', output: undefined } as EventObject)
      for (const [name, at] of failing) hear(real, { type: 'failed', name, at, message: 'Error' } as EventObject)
      return real.state.status
    }
    const at = (name: LoopName, ...seconds: number[]) => seconds.map((s) => [name, s * 1000] as const)
    expect(after(...at('command', 0, 7, 14, 21, 29))).toBe('done')
    expect(after(...at('command', 0, 7, 14, 21, 30))).toBe('active')
    expect(after(...at('command', 0, 1, 2, 3), ...at('push', 4, 5, 6, 7))).toBe('active')
  })

  it('leaves to workers what a web replica does not run, and nothing else', () => {
    const machine = supervisorFor(workersLoops)
    const [starting] = initialTransition(machine)
    const prepared = { type: 'xstate.done.actor.0.supervisor.starting', output: undefined } as EventObject
    const [{ value }] = transition(machine, starting, prepared as never)
    const { running } = z.object({ running: z.record(z.string(), z.string()) }).parse(value)
    const own = Object.entries(running).flatMap(([name, state]) => (state === 'up' ? [name] : []))
    expect(own.toSorted()).toEqual(['audit', 'freshness', 'housekeeping', 'presence'])
  })
})
