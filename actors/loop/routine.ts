/**
 * Which steps are not worth a line in the log: those of a loop that goes round by itself. A stream that is opened again every
 * minute, and a read every 15 s, were 2,900 and 11,500 lines a day and task. Such a step is saved like any other; the actor's
 * row says where it stands and why. Does not decide which loops there are: a machine says so by a tag.
 */
import type { AnyMachineSnapshot } from 'xstate'
import type { Plan } from './plan.ts'

/** `round of streams`: states with the same such tag are one loop. */
const roundTag = /^round\b/

/** By whom a loop goes round. What a person or another actor causes is never routine. */
const roundCauses: ReadonlySet<string> = new Set(['worker', 'timer'])

export function isRoutine(before: AnyMachineSnapshot, after: AnyMachineSnapshot, plan: Plan, cause: string): boolean {
  if (plan.facts.length > 0 || !roundCauses.has(cause)) return false
  return [...before.tags].some((tag) => roundTag.test(tag) && after.tags.has(tag))
}
