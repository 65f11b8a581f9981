/** The durable machines as charts, by `<kind>@<version>`: what the actor debugger reads logs with. Owns nothing that runs. */
import type { ChartDefinition } from '../domain/chart.ts'
import { chartOf } from '../machines/chart.ts'
import type { Kinds } from './kinds.ts'

export function chartsOf(kinds: Kinds): ReadonlyMap<string, ChartDefinition> {
  return new Map(
    Object.entries(kinds).map(([kind, { machine }]) => {
      const definition = chartOf(machine)
      return [`${kind}@${definition.version}`, definition]
    }),
  )
}
