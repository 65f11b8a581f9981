/** Our transition is XState's own, for every step of every path of every durable machine: same snapshot, same actions. */
import { transition as theirs, type AnyMachineSnapshot } from 'xstate'
import { describe, expect, it } from 'vitest'
import { transition } from '../../actors/loop/transition.ts'
import { durableMachines, shortestPaths } from '../support/machine-events.ts'

describe.each(durableMachines.map(({ machine, events }) => ({ id: machine.id, machine, events })))(
  'the machine $id',
  ({ machine, events }) => {
    const living = shortestPaths(machine, events).filter(({ state }) => state.status === 'active')
    const froms = living.map(({ state }) => ({ value: state.value, context: state.context }))

    it('moves as XState moves it, from every state and by every event', () => {
      expect(froms.length).toBeGreaterThan(2)
      for (const from of froms)
        for (const event of events) {
          const [expected, wanted] = theirs(machine, machine.resolveState(from), event)
          const [after, actions] = transition(machine, machine.resolveState(from), event)
          expect(outline(after)).toEqual(outline(expected))
          expect(actions.map(named)).toEqual(wanted.map(named))
        }
    })

    it('keeps nothing of one call for the next', () => {
      const [from] = froms
      if (!from) throw new Error('The machine has no state.')
      const once = events.map((event) => transition(machine, machine.resolveState(from), event)[1].map(named))
      const again = events.map((event) => transition(machine, machine.resolveState(from), event)[1].map(named))
      expect(again).toEqual(once)
    })
  },
)

const outline = ({ value, context, status }: AnyMachineSnapshot) => ({ value, context, status })

/** An action without the actor it was made by: that one has a name of its own each time. */
const named = ({ type, params }: { type: string; params?: unknown }) => ({ type, params: plain(params) })
const plain = (params: unknown): unknown =>
  JSON.parse(
    JSON.stringify(params ?? null, (key, value: unknown) => (key === 'parent' || key === 'self' ? undefined : value)),
  )
