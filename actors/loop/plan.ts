/**
 * What a transition asks for, as data: XState's actions become facts, at most one piece of work, and timers. Pure; this is
 * the table of ARCHITECTURE.md, "The loop", in code. Does not write anything.
 */
import type { ExecutableActionObject } from 'xstate'
import type { MachineFact } from '../../domain/fact.ts'
import { Refusal, refusals, type RefusalCode } from '../../domain/refusal.ts'
import type { Timer } from '../../persistence/actors.ts'

export interface Plan {
  readonly facts: readonly MachineFact[]
  readonly work: string | null
  /** The state was entered anew, so work of the same name is not the work that was under way. */
  readonly workChanged: boolean
  readonly timers: Readonly<Record<string, Timer>>
}

/** Thrown when a machine asks for something the runtime has no word for: a defect of the machine, never of its input. */
class UnknownAction extends Error {
  constructor(type: string) {
    super(`The runtime cannot plan the action "${type}".`)
  }
}

/** Params of the actions that XState returns from a pure transition (xstate 5.33, src/actions/*.ts). */
type Params<T> = { readonly params: T }

/** `at`: the database's clock, by which a timer's delay is counted. */
export function planFrom(
  actions: readonly ExecutableActionObject[],
  before: { readonly work: string | null; readonly timers: Readonly<Record<string, Timer>> },
  at: Date,
): Plan {
  const facts: MachineFact[] = []
  let work = before.work
  let workChanged = false
  const timers = new Map(Object.entries(before.timers))
  for (const action of actions) {
    switch (action.type) {
      case 'xstate.emit':
        facts.push((action as Params<{ event: MachineFact }>).params.event)
        break
      case 'xstate.spawnChild':
        work = (action as Params<{ id: string }>).params.id
        workChanged = true
        break
      case 'xstate.stopChild':
        work = null
        workChanged = true
        break
      case 'xstate.raise': {
        const { id, event, delay } = (action as Params<{ id: string; event: { type: string }; delay: number }>).params
        timers.set(id, { event, dueAt: new Date(at.getTime() + delay).toISOString() })
        break
      }
      case 'xstate.cancel':
        timers.delete((action as Params<{ sendId: string }>).params.sendId)
        break
      case 'refuse': {
        const { code } = (action as Params<{ code: RefusalCode }>).params
        throw new Refusal(code, refusals[code])
      }
      default:
        throw new UnknownAction(action.type)
    }
  }
  return { facts, work, workChanged, timers: Object.fromEntries(timers) }
}
