/**
 * A machine's pure transition, as XState's `transition` has it, without the throw-away actor that XState builds for every
 * call (with the machine's initial state computed again): that was half of a transition's time. The scope made here once a
 * machine is never started and keeps nothing between two calls but its place in memory. A transition follows from the state,
 * the context and the event alone, all of them JSON, so it is looked up where it was made before.
 */
import {
  createActor,
  initialTransition,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
} from 'xstate'
import type { Snapshot } from '../../persistence/actors.ts'
import { remember } from '../remember.ts'

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

/** A machine without input is born the same every time; computing it cost as much as a transition. */
const births = new WeakMap<AnyStateMachine, ReturnType<typeof initialTransition>>()

export function birthOf(machine: AnyStateMachine): ReturnType<typeof initialTransition> {
  const known = births.get(machine) ?? initialTransition(machine)
  births.set(machine, known)
  return known
}

export interface Move {
  readonly before: AnyMachineSnapshot
  readonly after: AnyMachineSnapshot
  /** What the machine wants done, as data. */
  readonly actions: readonly Action[]
}

/** Moves of one machine that are remembered: most actors hear the same in the same state, and XState takes 30 µs to say what follows. */
const movesLimit = 200
/** Characters of what was and what was heard; a longer one is not likely to be said again. */
const rememberedLimit = 500
const moves = new WeakMap<AnyStateMachine, Map<string, Move>>()

/** What an actor becomes by an event. Its parts are shared with whoever moves alike, and cannot be changed. */
export function moveOf(
  machine: AnyStateMachine,
  { value, context }: Pick<Snapshot, 'value' | 'context'>,
  event: EventObject,
): Move {
  const text = JSON.stringify([value, context, event])
  if (text.length > rememberedLimit) return moved(machine, { value, context }, event)
  const known = moves.get(machine) ?? new Map<string, Move>()
  moves.set(machine, known)
  const same = known.get(text)
  if (same) return same
  // Of its own: whoever said it may go on with theirs.
  const [ownValue, ownContext, ownEvent] = JSON.parse(text) as [Snapshot['value'], Snapshot['context'], EventObject]
  const move = moved(machine, { value: ownValue, context: ownContext }, ownEvent)
  freeze(move.after.value)
  freeze(move.after.context)
  for (const { params } of move.actions as readonly { readonly params?: unknown }[]) freeze(eventIn(params))
  remember(known, text, move, movesLimit)
  return move
}

/** What an action emits or raises: of its parameters, that which leaves the loop. */
const eventIn = (params: unknown): unknown =>
  typeof params === 'object' && params !== null && 'event' in params ? params.event : null

/** JSON all through: a defect that would change what others hold fails here instead. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.freeze(value)
  for (const part of Object.values(value)) freeze(part)
}

/** No machine of this release has the state: another release wrote it, and only that can move it. */
export class UnknownState extends Error {
  override readonly name = 'UnknownState'
}

function resolved(machine: AnyStateMachine, from: Pick<Snapshot, 'value' | 'context'>): AnyMachineSnapshot {
  try {
    return machine.resolveState(from)
  } catch (cause) {
    throw new UnknownState(`${machine.id} has no state ${JSON.stringify(from.value)}.`, { cause })
  }
}

function moved(machine: AnyStateMachine, from: Pick<Snapshot, 'value' | 'context'>, event: EventObject): Move {
  const before = resolved(machine, from)
  const made = scopeOf(machine)
  const actions: Action[] = []
  made.actions = actions
  return { before, after: machine.transition(before, event, made.scope), actions }
}
