/** A machine as a definition, and what the definition then says about a log: checked against XState's own steps. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  and,
  assign,
  createActor,
  emit,
  fromPromise,
  initialTransition,
  not,
  raise,
  setup,
  SimulatedClock,
  transition,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
} from 'xstate'
import {
  activeNodes,
  describeEvent,
  durationWords,
  edgesTaken,
  liveLeaves,
  pathsOf,
  pathWords,
  statesOf,
  whatCanHappen,
  type StateValue,
} from '../../domain/chart.ts'
import { chartOf, refusedBy } from '../../machines/chart.ts'
import { durableMachines, shortestPaths } from '../support/machine-events.ts'

/** A parcel: work, delays, guards, a fact, an attention tag, an eventless hop. */
const parcelMachine = setup({
  types: {
    context: {} as { attempts: number },
    events: {} as { type: 'claim' } | { type: 'interrupted' } | { type: 'settle' },
  },
  actors: { discover: fromPromise(async () => 'card'), deliver: fromPromise(async () => 'reply') },
  guards: { attemptsLeft: ({ context }) => context.attempts < 2, neverSent: () => false },
  actions: { count: assign({ attempts: ({ context }) => context.attempts + 1 }), project: () => undefined },
}).createMachine({
  id: 'parcel',
  version: '3',
  description: 'One send, at most once.',
  context: { attempts: 0 },
  initial: 'pending',
  states: {
    pending: { on: { claim: 'dispatching' } },
    dispatching: {
      initial: 'discovering',
      on: { interrupted: { target: 'uncertain', guard: not('neverSent') } },
      states: {
        discovering: {
          invoke: {
            id: 'discover',
            src: 'discover',
            onDone: 'delivering',
            onError: [
              { guard: and(['attemptsLeft', not('neverSent')]), target: 'waiting', actions: 'count' },
              { target: '#parcel.failed' },
            ],
          },
        },
        waiting: { after: { 1000: 'discovering' } },
        delivering: {
          invoke: { id: 'deliver', src: 'deliver', onDone: '#parcel.succeeded', onError: '#parcel.uncertain' },
        },
      },
    },
    uncertain: { tags: 'attention', entry: 'project', on: { settle: 'settling' } },
    settling: { always: 'succeeded' },
    succeeded: { type: 'final', entry: ['project', emit({ type: 'parcel.succeeded' } as never)] },
    failed: { type: 'final' },
  },
})

/** A stream: regions, a transition without a target, a self-transition, a wildcard, a region's end that ends the whole. */
const streamMachine = setup({
  types: {
    context: {} as { frames: number },
    events: {} as {
      type: 'open' | 'frame' | 'drop' | 'lose' | 'renew' | 'pause' | 'finish' | 'restart' | 'agent.said'
    },
  },
  actions: { store: assign({ frames: ({ context }) => context.frames + 1 }) },
}).createMachine({
  id: 'stream',
  version: '1',
  context: { frames: 0 },
  initial: 'live',
  on: { pause: '.idle' },
  states: {
    idle: { on: { open: 'live' } },
    live: {
      type: 'parallel',
      onDone: 'over',
      on: { restart: { target: 'live', reenter: true } },
      states: {
        connection: {
          initial: 'connecting',
          states: {
            connecting: { on: { open: 'streaming' }, after: { 5000: 'closed' } },
            streaming: {
              on: { frame: { actions: 'store' }, drop: 'connecting', finish: 'closed', 'agent.*': 'connecting' },
            },
            closed: { type: 'final' },
          },
        },
        lease: {
          initial: 'held',
          states: {
            held: {
              on: { renew: 'renewing', lose: 'lost', finish: 'lost' },
              entry: raise({ type: 'renew' }, { delay: 9e6, id: 'r' }),
            },
            renewing: { always: 'held' },
            lost: { type: 'final' },
          },
        },
      },
    },
    over: { type: 'final' },
  },
})

test('a definition is JSON: it survives a round trip and holds no function and no plumbing', () => {
  for (const machine of [parcelMachine, streamMachine]) {
    const definition = chartOf(machine)
    const wire = JSON.stringify(definition)
    expect(JSON.parse(wire)).toEqual(definition)
    expect(wire).not.toMatch(/"(entry|exit|actions)":\[[^\]]*xstate\./)
  }
})

test('a machine is read with its version, work, guards, tags, facts and initial states', () => {
  const definition = chartOf(parcelMachine)
  expect(definition).toMatchObject({ id: 'parcel', version: '3', description: 'One send, at most once.' })
  const states = new Map([...statesOf(definition.root)].map((node) => [node.id, node]))
  expect(states.get('parcel')).toMatchObject({ kind: 'compound', initial: 'parcel.pending' })
  expect(states.get('parcel.dispatching.discovering')?.work).toEqual(['discover'])
  expect(states.get('parcel.uncertain')).toMatchObject({ tags: ['attention'], entry: ['project'] })
  expect(states.get('parcel.succeeded')).toMatchObject({ kind: 'final', entry: ['project', 'say parcel.succeeded'] })
  const discovering = states.get('parcel.dispatching.discovering')?.edges ?? []
  expect(discovering.map(({ label, guard, kind }) => [label, guard, kind])).toEqual([
    ['discover done', undefined, 'done'],
    ['discover failed', 'attemptsLeft and (not neverSent)', 'error'],
    ['discover failed', undefined, 'error'],
  ])
  expect(states.get('parcel.dispatching.waiting')?.edges[0]).toMatchObject({ label: 'after 1 s', kind: 'after' })
})

test('events and delays are said in words', () => {
  const said = [
    'xstate.init',
    'xstate.after.90000.a.b',
    'xstate.after.backoff.a',
    'xstate.error.actor.deliver',
    '',
    '*',
    'x.*',
    'claim',
  ]
  expect(said.map((type) => describeEvent(type).label)).toEqual([
    'created',
    'after 1.5 min',
    'after backoff',
    'deliver failed',
    'always',
    'any event',
    'x.*',
    'claim',
  ])
  expect([20, 1000, 5500, 60_000, 3_600_000].map(durationWords)).toEqual(['20 ms', '1 s', '5.5 s', '1 min', '1 h'])
})

test('a value is read as paths and leaves, one a region', () => {
  const value = { live: { connection: 'streaming', lease: 'held' } }
  expect(pathsOf(value)).toEqual([
    ['live', 'connection', 'streaming'],
    ['live', 'lease', 'held'],
  ])
  const leaves = liveLeaves(activeNodes(chartOf(streamMachine), value))
  expect(leaves.map((node) => node.key)).toEqual(['streaming', 'held'])
})

test('what can happen next is innermost first, says where it leads, and names guards without running them', () => {
  const next = whatCanHappen(chartOf(parcelMachine), { dispatching: 'discovering' })
  expect(next.map(({ label, guard, to }) => [label, guard, to])).toEqual([
    ['discover done', undefined, ['delivering']],
    ['discover failed', 'attemptsLeft and (not neverSent)', ['waiting']],
    ['discover failed', undefined, ['failed']],
    ['interrupted', 'not neverSent', ['uncertain']],
  ])
})

test('nothing can happen to a finished machine, not even what its root would answer', () => {
  expect(whatCanHappen(chartOf(parcelMachine), 'failed')).toEqual([])
  expect(whatCanHappen(chartOf(streamMachine), 'over')).toEqual([])
  expect(whatCanHappen(chartOf(streamMachine), 'idle').map(({ event }) => event)).toEqual(['open', 'pause'])
})

test('a retried discovery and a lost delivery name the edges that were taken', () => {
  const definition = chartOf(parcelMachine)
  const failed = 'xstate.error.actor.discover'
  const at = (state: string): StateValue => ({ dispatching: state })
  expect(edgesTaken(definition, null, 'xstate.init', 'pending')).toEqual([])
  expect(edgesTaken(definition, 'pending', 'claim', at('discovering'))).toEqual(['parcel.pending|claim|0'])
  expect(edgesTaken(definition, at('discovering'), failed, at('waiting'))).toEqual([
    `parcel.dispatching.discovering|${failed}|0`,
  ])
  expect(edgesTaken(definition, at('discovering'), failed, 'failed')).toEqual([
    `parcel.dispatching.discovering|${failed}|1`,
  ])
  expect(edgesTaken(definition, 'uncertain', 'settle', 'succeeded')).toEqual([
    'parcel.uncertain|settle|0',
    'parcel.settling||0',
  ])
  expect(edgesTaken(definition, 'pending', 'unheard.of', 'pending')).toEqual([])
})

test.each(durableMachines.map(({ machine, events }) => ({ id: machine.id, machine, events })))(
  'every step of every shortest path through $id has an edge that leads where it led',
  ({ machine, events }) => {
    const definition = chartOf(machine)
    const edges = new Map([...statesOf(definition.root)].flatMap((node) => node.edges.map((edge) => [edge.id, edge])))
    for (const path of shortestPaths(machine, events)) {
      let [before] = initialTransition(machine)
      for (const event of path.events) {
        const [after] = transition(machine, before, event)
        const taken = edgesTaken(definition, before.value as StateValue, event.type, after.value as StateValue)
        const active = new Set(activeNodes(definition, after.value as StateValue).map((node) => node.id))
        const targets = edges.get(taken.at(-1) ?? '')?.targets
        expect(
          targets?.every((target) => active.has(target)),
          `${JSON.stringify(before.value)} + ${event.type}`,
        ).toBe(true)
        before = after
      }
    }
  },
)

/** The edges that XState chooses for an event. */
function chosen(machine: AnyStateMachine, before: AnyMachineSnapshot, event: EventObject): string[] {
  return machine.getTransitionData(before, event).map((taken) => {
    const siblings = taken.source.transitions.get(taken.eventType) ?? []
    return `${taken.source.id}|${taken.eventType}|${siblings.indexOf(taken)}`
  })
}

test.each(durableMachines.map(({ machine, events }) => ({ id: machine.id, machine, events })))(
  'of every step of every shortest path through $id the edge is named that XState chose',
  ({ machine, events }) => {
    const definition = chartOf(machine)
    const refused = refusedBy(machine)
    for (const path of shortestPaths(machine, events)) {
      let [before] = initialTransition(machine)
      for (const event of path.events) {
        const [after] = transition(machine, before, event)
        const taken = edgesTaken(
          definition,
          before.value as StateValue,
          event.type,
          after.value as StateValue,
          (edge) => refused(edge, event),
        )
        const first = chosen(machine, before, event)
        expect(taken, `${JSON.stringify(before.value)} + ${JSON.stringify(event)}`).toEqual(
          expect.arrayContaining(first),
        )
        expect(taken.length > 0).toBe(first.length > 0)
        before = after
      }
    }
  },
)

/** What XState says it took: only its inspection events carry transitions, in a field that is not public. */
interface Microstep {
  readonly type: string
  readonly _transitions?: readonly { readonly source: Source; readonly eventType: string }[]
}
interface Source {
  readonly id: string
  readonly transitions: ReadonlyMap<string, readonly unknown[]>
  readonly always?: readonly unknown[]
}

function edgesSeen(step: Microstep): string[] {
  return (step._transitions ?? []).map((transition) => {
    const { source, eventType } = transition
    const siblings = source.transitions.get(eventType) ?? source.always ?? []
    return `${source.id}|${eventType}|${siblings.indexOf(transition)}`
  })
}

/** Sends the events to a real actor: for every step, the edges derived from the log and the ones that XState took. */
function stepsOf(machine: AnyStateMachine, eventTypes: readonly string[]): { derived: string[]; taken: string[] }[] {
  const definition = chartOf(machine)
  const steps: { derived: string[]; taken: string[] }[] = []
  let seen: string[] = []
  const actor = createActor(machine, {
    clock: new SimulatedClock(),
    inspect: (event) => {
      if (event.type === '@xstate.microstep') seen.push(...edgesSeen(event as Microstep))
    },
  })
  actor.start()
  for (const type of eventTypes) {
    const before: StateValue = actor.getSnapshot().value
    seen = []
    actor.send({ type })
    const after: StateValue = actor.getSnapshot().value
    steps.push({ derived: edgesTaken(definition, before, type, after).toSorted(), taken: seen.toSorted() })
    if (actor.getSnapshot().status !== 'active') break
  }
  actor.stop()
  return steps
}

test('on every walk through regions, self-transitions and always-hops, the derived edges are the ones XState took', () => {
  const events = ['open', 'frame', 'drop', 'lose', 'renew', 'pause', 'finish', 'restart', 'agent.said', 'nonsense']
  const walks = fc.array(fc.constantFrom(...events), { maxLength: 12 })
  fc.assert(
    fc.property(walks, (walk) => {
      for (const { derived, taken } of stepsOf(streamMachine, walk)) expect(derived).toEqual(taken)
    }),
    { numRuns: 300 },
  )
})

test('states are told in words', () => {
  expect(pathsOf({ polling: 'backingOff' }).map(pathWords)).toEqual(['polling › backing off'])
  expect(pathsOf('not_sent').map(pathWords)).toEqual(['not sent'])
})
