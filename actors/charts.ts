/** The durable machines as charts, by `<kind>@<version>`: what the actor debugger reads logs with. Owns nothing that runs. */
import type { ChartDefinition } from '../domain/chart.ts'
import { chartOf, refusedBy, type Refused } from '../machines/chart.ts'
import type { Kinds } from './loop/kinds.ts'

/** A chart that has its machine at hand: it can tell which of its edges an event cannot have taken. */
export interface LivingChart extends ChartDefinition {
  readonly refused: Refused
}

export function chartsOf(kinds: Kinds): ReadonlyMap<string, LivingChart> {
  return new Map(
    Object.entries(kinds).map(([kind, { machine }]) => {
      const definition = chartOf(machine)
      return [`${kind}@${definition.version}`, { ...definition, refused: refusedBy(machine) }]
    }),
  )
}
