/** A command's way, where whoever works at it is lost: before anything left that is nobody's fault, after it nobody knows. */
import { describe, expect, it } from 'vitest'
import { initialTransition, transition, type EventObject } from 'xstate'
import { commandErrors, discoveryInterrupted } from '../../domain/command.ts'
import { commandMachine } from '../../machines/command.ts'

const interrupted = { type: 'interrupted' }
const missed = { type: 'xstate.done.actor.discover', output: { kind: 'missed' } }
const again = { type: 'xstate.after.backoff.command.pending.waiting' }
const found = { type: 'xstate.done.actor.discover', output: { kind: 'found' } }

const after = (...events: readonly EventObject[]) =>
  events.reduce(
    (state, event) => transition(commandMachine, state, event as never)[0],
    initialTransition(commandMachine)[0],
  )
const times = (count: number): EventObject[] => Array.from({ length: count }, () => interrupted)

describe('the search for an agent', () => {
  it('goes on when whoever looked is lost, and that takes none of its three tries', () => {
    expect(after(...times(9)).value).toEqual({ pending: 'discovering' })
    expect(after(...times(9), missed, again, interrupted, missed, again).value).toEqual({ pending: 'discovering' })
    expect(after(...times(9), missed, again, missed, again, missed)).toMatchObject({
      value: 'failed',
      context: { error: commandErrors.discovery },
    })
    expect(after(...times(9), found).value).toBe('dispatching')
  })

  it('is given up where it ends process after process', () => {
    expect(after(...times(10)).value).toEqual({ pending: 'discovering' })
    expect(after(...times(11))).toMatchObject({ value: 'failed', context: { error: discoveryInterrupted } })
  })
})

it('a delivery that is interrupted is in doubt at once', () => {
  expect(after(found, interrupted)).toMatchObject({
    value: 'uncertain',
    context: { error: commandErrors.leaseExpired },
  })
})
