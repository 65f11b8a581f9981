/** When what an agent shows counts against its own clock: not at the first look, nor where looks or what is known differ. */
import { expect, it } from 'vitest'
import { SecondLooks } from '../../actors/second-looks.ts'
import { observe } from '../support/observing.ts'

const known = { id: 't', state: 'TASK_STATE_WORKING', stateAt: '2026-11-21T12:00:05.000Z', version: 3 }
const shown = (state: string, timestamp?: string) =>
  observe({ task: { id: 't', contextId: 'c', status: { state, ...(timestamp === undefined ? {} : { timestamp }) } } })
const older = '2026-11-21T12:00:04.999Z'

function looks() {
  let nowMs = 0
  const second = new SecondLooks(() => nowMs)
  return (atMs: number, observation = shown('TASK_STATE_INPUT_REQUIRED', older), task = known) => {
    nowMs = atMs
    return second.overruled(task, observation)
  }
}

it('counts once it was shown for three seconds, and only while the same is known', () => {
  const look = looks()
  expect([look(0), look(2_999)]).toEqual([null, null])
  expect(look(3_000)).toBe(known.version)
  // A chunk of an artifact is news of the task, too.
  const moved = { ...known, version: 4 }
  expect(look(3_001, shown('TASK_STATE_INPUT_REQUIRED', older), moved)).toBeNull()
  expect(look(6_001, shown('TASK_STATE_INPUT_REQUIRED', older), moved)).not.toBeNull()
})

it('begins anew where another look shows the task as it is known, or otherwise', () => {
  for (const between of [shown('TASK_STATE_WORKING', known.stateAt), shown('TASK_STATE_SUBMITTED', older)]) {
    const look = looks()
    expect([look(0), look(1_000, between), look(3_000), look(5_999)]).toEqual([null, null, null, null])
    expect(look(6_000)).not.toBeNull()
  }
})

it('takes a minute where the state is the same: replicas that stamp their own present time differ at every look', () => {
  const look = looks()
  const same = shown('TASK_STATE_WORKING', older)
  expect([look(0, same), look(59_999, same)]).toEqual([null, null])
  expect(look(60_000, same)).not.toBeNull()
})

it('begins anew after five minutes without a look', () => {
  const look = looks()
  expect([look(0), look(300_000), look(302_999)]).toEqual([null, null, null])
  expect(look(303_000)).not.toBeNull()
})

it('has nothing to decide where time decides: no time, a later one, an end', () => {
  const look = looks()
  for (const observation of [
    shown('TASK_STATE_INPUT_REQUIRED'),
    shown('TASK_STATE_PONDERING', older),
    shown('TASK_STATE_INPUT_REQUIRED', known.stateAt),
    shown('TASK_STATE_COMPLETED', older),
  ])
    expect([look(0, observation), look(90_000, observation)]).toEqual([null, null])
})
