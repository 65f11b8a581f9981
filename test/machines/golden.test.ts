/**
 * Golden snapshots of every released machine version: the shortest way to each state and what is stored there. A renamed
 * state or context field changes a file here, and so needs a new machine version and a migration of rows.
 */
import { describe, expect, it } from 'vitest'
import { durableMachines, shortestPaths, stateIds } from '../support/machine-events.ts'

describe.each(durableMachines.map(({ machine, events }) => ({ name: machine.id, machine, events })))(
  'the $name machine',
  ({ name, machine, events }) => {
    const paths = shortestPaths(machine, events)

    it('reaches every state, and stores the same there as when it was released', async () => {
      const golden = paths
        .map(({ events: by, state }) => ({
          state: state.value,
          status: state.status,
          by: by.map((event) => event.type),
          context: state.context,
        }))
        .toSorted((a, b) => JSON.stringify(a.state).localeCompare(JSON.stringify(b.state)))
      expect(machine.version).toMatch(/^\d+$/)
      await expect(`${JSON.stringify(golden, null, 2)}\n`).toMatchFileSnapshot(`golden/${name}@${machine.version}.json`)
    })

    it('has no state that no path reaches', () => {
      const reached = new Set(paths.flatMap(({ state }) => state._nodes.map((node) => node.id)))
      expect(stateIds(machine.root).filter((id) => !reached.has(id))).toEqual([])
    })
  },
)
