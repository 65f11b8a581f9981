/**
 * What a chart has to show of one actor at one step: where it is, what it took to get there, what it could take next.
 * Derived from the definition and the log alone; nothing is run again.
 */
import { activeNodes, liveLeaves, statesOf, whatCanHappen } from '../../domain/chart.ts'
import type { ActorStep, ChartDefinition, StateValue } from '../../domain/chart.ts'

export interface Trace {
  readonly active: ReadonlySet<string>
  readonly leaves: ReadonlySet<string>
  /** States that the actor has been in, up to this step; all of them when there is no actor. */
  readonly seen: ReadonlySet<string>
  /** Edges of the step that is looked at. */
  readonly last: ReadonlySet<string>
  /** How often each edge was taken, up to this step. */
  readonly counts: ReadonlyMap<string, number>
  readonly possible: ReadonlySet<string>
}

/**
 * `steps` up to and with the one that is looked at; `value` is where the actor is after it, null when nothing is known; `last`
 * the step that brought it there, undefined where that was not kept.
 */
export function traceOf(
  definition: ChartDefinition,
  steps: readonly ActorStep[],
  value: StateValue | null,
  last: ActorStep | undefined,
): Trace {
  const counts = new Map<string, number>()
  const seen = new Set<string>()
  for (const step of steps) {
    for (const edge of step.edges) counts.set(edge, (counts.get(edge) ?? 0) + 1)
    for (const node of activeNodes(definition, step.value)) seen.add(node.id)
  }
  const active = value === null ? [] : activeNodes(definition, value)
  // A machine alone has no history that could set its states apart.
  for (const node of value === null ? statesOf(definition.root) : active) seen.add(node.id)
  return {
    active: new Set(active.map((node) => node.id)),
    leaves: new Set(liveLeaves(active).map((node) => node.id)),
    seen,
    last: new Set(last?.edges),
    counts,
    possible: new Set(value === null ? [] : whatCanHappen(definition, value).map((next) => next.edge)),
  }
}
