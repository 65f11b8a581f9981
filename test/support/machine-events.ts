/**
 * Everything that can happen to each durable machine, as events: what paths are made of. A new event of a machine belongs
 * here, or its paths do not cover it (test/machines/golden.test.ts fails when an edge is never taken).
 */
import {
  initialTransition,
  transition,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type EventObject,
} from 'xstate'
import { commandMachine } from '../../machines/command.ts'
import { ownershipMachine } from '../../machines/ownership.ts'
import { reconciliationMachine } from '../../machines/reconciliation.ts'
import { pushMachine } from '../../machines/push.ts'
import { subscriptionMachine } from '../../machines/subscription.ts'

const done = (work: string, output: Record<string, unknown>): EventObject =>
  ({ type: `xstate.done.actor.${work}`, output, actorId: work }) as EventObject
const failed = (work: string): EventObject =>
  ({ type: `xstate.error.actor.${work}`, error: 'a defect', actorId: work }) as EventObject
const after = (delay: string, state: string): EventObject => ({ type: `xstate.after.${delay}.${state}` })
const interrupted: EventObject = { type: 'interrupted' }

const ends = (work: string): EventObject[] => [
  ...['waiting', 'finished'].map((kind) => done(work, { kind })),
  ...[true, false].map((news) => done(work, { kind: 'ended', news })),
  ...[true, false].map((heard) => done(work, { kind: 'broken', reason: 'broken', heard })),
  done(work, { kind: 'gone', reason: 'removed' }),
  done(work, { kind: 'unreadable', reason: 'too large' }),
]

const at = '2026-11-21T12:00:00.000Z'
const anna = '00000000-0000-7000-8000-00000000000a'
const ben = '00000000-0000-7000-8000-00000000000b'

export const durableMachines: readonly {
  readonly machine: AnyStateMachine
  readonly events: readonly EventObject[]
}[] = [
  {
    machine: commandMachine,
    events: [
      done('discover', { kind: 'found' }),
      done('discover', { kind: 'missed' }),
      done('discover', { kind: 'unavailable' }),
      done('discover', { kind: 'refused', message: 'ruled out' }),
      failed('discover'),
      done('deliver', { kind: 'replied' }),
      done('deliver', { kind: 'refused', message: 'no' }),
      done('deliver', { kind: 'unsent', message: 'unreachable' }),
      done('deliver', { kind: 'crossed', message: 'of another skill' }),
      done('deliver', { kind: 'unknown' }),
      failed('deliver'),
      after('backoff', 'command.pending.waiting'),
      interrupted,
    ],
  },
  {
    machine: subscriptionMachine,
    events: [
      ...ends('follow'),
      done('follow', { kind: 'yielded' }),
      done('follow', { kind: 'unsupported' }),
      failed('follow'),
      done('follow', { kind: 'unseen' }),
      ...ends('read'),
      failed('read'),
      done('close', { kind: 'finished' }),
      done('close', { kind: 'unseen' }),
      failed('close'),
      after('backoff', 'subscription.backingOff'),
      after('readPause', 'subscription.polling.pausing'),
      after('absence', 'subscription.away'),
      after('absence', 'subscription.polling.away'),
      after('backoff', 'subscription.closing.pausing'),
      interrupted,
      { type: 'opened' },
      { type: 'closed' },
      { type: 'rearmed' },
      { type: 'rearmed', isUnasked: true } as EventObject,
      { type: 'heard' },
      { type: 'settled', isPartial: false } as EventObject,
      { type: 'settled', isPartial: true } as EventObject,
      { type: 'settled', isPartial: false, isFollowed: true } as EventObject,
      { type: 'settled', isPartial: true, isFollowed: true } as EventObject,
    ],
  },
  {
    machine: pushMachine,
    events: [
      done('register', { kind: 'registered' }),
      done('register', { kind: 'unsupported' }),
      done('register', { kind: 'gone' }),
      done('register', { kind: 'refused', reason: 'no' }),
      done('register', { kind: 'missed', reason: 'unreachable' }),
      failed('register'),
      done('remove', { kind: 'ended' }),
      done('remove', { kind: 'missed' }),
      failed('remove'),
      after('backoff', 'push.waiting'),
      after('backoff', 'push.removing.pausing'),
      interrupted,
      { type: 'settled' } as EventObject,
    ],
  },
  {
    machine: reconciliationMachine,
    events: [
      done('check', { kind: 'more', after: ben }),
      done('check', { kind: 'busy' }),
      done('check', { kind: 'idle' }),
      done('check', { kind: 'gone', reason: 'removed' }),
      done('check', { kind: 'failed', reason: 'unreachable', after: null, progressed: false }),
      done('check', { kind: 'failed', reason: 'refused', after: null, progressed: false }),
      done('check', { kind: 'failed', reason: 'one task', after: ben, progressed: true }),
      failed('check'),
      done('list', { kind: 'listed' }),
      done('list', { kind: 'unsupported' }),
      done('list', { kind: 'failed', reason: 'unreachable' }),
      failed('list'),
      after('checkPause', 'reconciliation.pausing'),
      after('breath', 'reconciliation.yielding'),
      after('backoff', 'reconciliation.backingOff'),
      interrupted,
      { type: 'wanted', agentId: anna, tenant: 'north' } as EventObject,
    ],
  },
  {
    machine: ownershipMachine,
    events: [
      { type: 'claim', membershipId: anna, at } as EventObject,
      { type: 'release' },
      { type: 'assign', membershipId: ben, claimedAt: null } as EventObject,
      { type: 'setDue', dueAt: at, inMs: 1000 } as EventObject,
      { type: 'clearDue' },
      { type: 'escalate', targetMembershipId: ben, at } as EventObject,
      after('untilDue', 'ownership.open.deadline.ticking'),
      { type: 'settle' },
    ],
  },
]

export interface Path {
  readonly events: readonly EventObject[]
  readonly state: AnyMachineSnapshot
}

const pathsLimit = 20_000

/**
 * The shortest way to each state, found breadth-first over values *and* contexts (three failures lead where one does not);
 * `ignored` names a context field that only counts up.
 */
export function shortestPaths(machine: AnyStateMachine, events: readonly EventObject[]): readonly Path[] {
  const known = shortest.get(machine) ?? searched(machine, events)
  shortest.set(machine, known)
  return known
}

/** To search takes seconds, and several files of a worker walk the same paths: a machine's events are those of `durableMachines`. */
const shortest = new WeakMap<AnyStateMachine, readonly Path[]>()

function searched(machine: AnyStateMachine, events: readonly EventObject[]): readonly Path[] {
  const ignored = new Set(['level'])
  const identity = (state: AnyMachineSnapshot): string =>
    JSON.stringify([state.value, state.status, state.context], (key, value: unknown) => (ignored.has(key) ? 0 : value))
  const [first] = initialTransition(machine)
  const seen = new Set([identity(first)])
  const found: Path[] = [{ events: [], state: first }]
  for (const path of found) {
    if (path.state.status !== 'active') continue
    for (const event of events) {
      if (!canHappen(path.state, event.type)) continue
      const [state, actions] = transition(machine, path.state, event)
      const types: readonly string[] = actions.map((action) => action.type)
      if (types.includes('refuse') || seen.has(identity(state))) continue
      seen.add(identity(state))
      found.push({ events: [...path.events, event], state })
      if (found.length > pathsLimit) throw new Error(`${machine.id} has more than ${pathsLimit} states.`)
    }
  }
  const byState = new Map<string, Path>()
  for (const path of found) {
    const key = JSON.stringify([path.state.value, path.state.status])
    if (!byState.has(key)) byState.set(key, path)
  }
  return [...byState.values()]
}

/** Work reports only while it is wanted, and a timer rings only in the state that set it. */
function canHappen(state: AnyMachineSnapshot, type: string): boolean {
  const work = Object.keys(state.children)
  if (type === 'interrupted') return work.length > 0
  if (type.includes('.actor.')) return work.includes(type.slice(type.lastIndexOf('.') + 1))
  if (type.startsWith('xstate.after.')) return state._nodes.some(({ id }) => type.endsWith(`.${id}`))
  return true
}

/** Ids of every state of a machine. */
export function stateIds(node: AnyStateNode): string[] {
  return [node.id, ...Object.values(node.states).flatMap(stateIds)]
}
