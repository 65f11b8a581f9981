/** What is said of sends that are accepted and not delivered yet. */
import { expect, it } from 'vitest'
import type { CommandStatus } from '../../domain/command.ts'
import { underWayWords, type UnderWaySend } from '../../domain/under-way.ts'

const send = (status: CommandStatus): UnderWaySend => ({
  id: '1',
  agentId: '2',
  agentName: 'Agent',
  action: 'send',
  status,
  title: 'words',
  createdAt: '2026-11-22T09:00:00.000Z',
})

it.each([
  [['pending'], 1, true, '1 message waits to be delivered'],
  [['dispatching'], 1, true, '1 message is on its way'],
  [['pending', 'pending'], 49, true, '49 messages wait to be delivered'],
  [['pending', 'dispatching'], 2, true, '2 messages are on their way'],
  [['pending'], 1, false, '1+ messages wait to be delivered'],
] as const)('%j of %d', (statuses, count, isWhole, words) => {
  expect(underWayWords({ sends: statuses.map(send), count, isWhole }, false)).toBe(words)
})

it.each([
  [['pending'], 1, true, '1 message waits to be delivered'],
  [['dispatching'], 1, true, '1 message has no answer yet'],
  [['dispatching', 'dispatching'], 2, true, '2 messages have no answer yet'],
  // Those that are not listed may all wait.
  [['dispatching', 'dispatching'], 30, false, '30+ messages wait to be delivered or have no answer yet'],
  [['dispatching', 'pending', 'pending'], 3, true, '2 messages wait to be delivered, 1 message has no answer yet'],
  [['pending', 'dispatching'], 49, true, '49 messages wait to be delivered or have no answer yet'],
] as const)(
  '%j of %d, for long: nobody is known to be at it, so none is on its way',
  (statuses, count, isWhole, words) => {
    expect(underWayWords({ sends: statuses.map(send), count, isWhole }, true)).toBe(words)
  },
)

it('counts a cancel as what it is', () => {
  const cancel = { ...send('pending'), action: 'cancelTask' as const }
  expect(underWayWords({ sends: [cancel], count: 1, isWhole: true }, false)).toBe('1 cancel waits to be delivered')
  const both = { sends: [cancel, send('dispatching')], count: 2, isWhole: true }
  expect(underWayWords(both, false)).toBe('1 message and 1 cancel are on their way')
})
