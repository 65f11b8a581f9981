/** Our transition is XState's own, for every step of every path of every durable machine: same snapshot, same actions. */
import { transition as theirs, type AnyMachineSnapshot } from 'xstate'
import { describe, expect, it } from 'vitest'
import { moveOf } from '../../actors/loop/transition.ts'
import { commandMachine } from '../../machines/command.ts'
import { durableMachines, shortestPaths } from '../support/machine-events.ts'

const delivered = (cause: string) => ({
  type: 'xstate.done.actor.deliver',
  output: { kind: 'refused', message: cause },
})
const dispatching = { value: 'dispatching', context: { attempts: 1, error: null } }

describe('a move that was made before', () => {
  it('is looked up, but for one that was heard in other words', () => {
    const first = moveOf(commandMachine, dispatching, delivered('No.'))
    expect(moveOf(commandMachine, dispatching, delivered('No.'))).toBe(first)
    const other = moveOf(commandMachine, dispatching, delivered('Never.'))
    expect(other.after.context).toEqual({ attempts: 1, error: 'Never.' })
  })

  it('is nobody’s to change', () => {
    const heard = delivered('Not today.')
    const { after } = moveOf(commandMachine, dispatching, heard)
    heard.output.message = 'Changed.'
    expect(() => Object.assign(after.context as object, { error: 'Changed.' })).toThrow(TypeError)
    expect(moveOf(commandMachine, dispatching, delivered('Not today.')).after.context).toMatchObject({
      error: 'Not today.',
    })
  })

  it('is made anew where what was heard is long, or others were heard since', () => {
    const long = delivered('No. '.repeat(200))
    expect(moveOf(commandMachine, dispatching, long)).not.toBe(moveOf(commandMachine, dispatching, long))
    const first = moveOf(commandMachine, dispatching, delivered('The first.'))
    for (let n = 0; n < 300; n++) moveOf(commandMachine, dispatching, delivered(`The ${n}th after.`))
    expect(moveOf(commandMachine, dispatching, delivered('The first.'))).not.toBe(first)
  })
})

describe.each(durableMachines.map(({ machine, events }) => ({ id: machine.id, machine, events })))(
  'the machine $id',
  ({ machine, events }) => {
    const living = shortestPaths(machine, events).filter(({ state }) => state.status === 'active')
    const froms = living.map(({ state }) => ({ value: state.value, context: state.context }))

    it('moves as XState moves it, from every state and by every event, whether it was asked before or not', () => {
      expect(froms.length).toBeGreaterThan(2)
      for (const from of froms)
        for (const event of events) {
          const [expected, wanted] = theirs(machine, machine.resolveState(from), event)
          for (const again of [false, true]) {
            const { before, after, actions } = moveOf(machine, from, event)
            expect(outline(before), `${again}`).toEqual(outline(machine.resolveState(from)))
            expect(outline(after)).toEqual(outline(expected))
            expect(actions.map(named)).toEqual(wanted.map(named))
          }
        }
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
