/** When a task was looked at: no pass of its agent's reconciliation looked at a task that was not there yet. */
import { expect, it } from 'vitest'
import type { StateValue } from '../../domain/chart.ts'
import { lookedAt } from '../../domain/task-actors.ts'
import { actorIn, at } from './seen-actors.ts'

const looked = (value: StateValue, begunAt: string, kind = 'reconciliation') =>
  lookedAt(actorIn(kind, value, { updatedAt: at(0) }), begunAt)

it.each(['pausing', 'listing'])('is the end of the last pass, in %s, where the task was there by then', (value) => {
  expect(looked(value, at(-5000))).toBe(at(0))
  expect(looked(value, at(0))).toBe(at(0))
  expect(looked(value, at(1))).toBeNull()
})

it('is not told by a pass that goes on, or did not go well, or by another actor', () => {
  for (const value of ['checking', 'yielding', 'backingOff', 'resting']) expect(looked(value, at(-5000))).toBeNull()
  expect(looked({ polling: 'pausing' }, at(-5000), 'subscription')).toBeNull()
})
