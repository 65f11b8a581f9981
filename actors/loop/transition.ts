/**
 * A machine's pure transition, as XState's `transition` has it, without the throw-away actor that XState builds for every
 * call (with the machine's initial state computed again): that was half of a transition's time. The scope made here once a
 * machine is never started and keeps nothing between two calls but its place in memory.
 */
import {
  createActor,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
} from 'xstate'

export type Action = Parameters<AnyActorScope['actionExecutor']>[0]

interface Scope {
  readonly scope: AnyActorScope
  actions: Action[]
}

const scopes = new WeakMap<AnyStateMachine, Scope>()
const nothing = (): void => undefined

function scopeOf(machine: AnyStateMachine): Scope {
  const known = scopes.get(machine)
  if (known) return known
  const self = createActor(machine)
  const made: Scope = {
    actions: [],
    scope: {
      self,
      id: '',
      sessionId: '',
      system: self.system,
      logger: nothing,
      defer: nothing,
      stopChild: nothing,
      emit: nothing,
      actionExecutor: (action) => void made.actions.push(action),
    },
  }
  scopes.set(machine, made)
  return made
}

/** The next snapshot, and what the machine wants done, as data. */
export function transition(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: EventObject,
): [AnyMachineSnapshot, Action[]] {
  const made = scopeOf(machine)
  const actions: Action[] = []
  made.actions = actions
  return [machine.transition(snapshot, event, made.scope), actions]
}
