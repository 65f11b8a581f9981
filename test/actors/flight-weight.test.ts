/** One commit carries a bounded number of items and a bounded amount of words, and nobody waits for ever because of it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { charactersLimit, seated, weightOf } from '../../actors/loop/flight-weight.ts'
import type { Fact } from '../../domain/fact.ts'
import type { Observation } from '../../domain/observation.ts'

const waiting = fc.array(fc.record({ weight: fc.oneof(fc.constant(0), fc.nat(1000), fc.nat(2 * charactersLimit)) }), {
  maxLength: 150,
})

it('takes whoever is first, and then no more than there are seats and words', () => {
  fc.assert(
    fc.property(waiting, fc.integer({ min: 1, max: 100 }), (queue, seats) => {
      const n = seated(queue, seats)
      expect(n).toBeLessThanOrEqual(Math.min(seats, queue.length))
      expect(n).toBeGreaterThanOrEqual(Math.min(1, queue.length))
      const carried = queue.slice(0, n).reduce((sum, { weight }) => sum + weight, 0)
      if (n > 1) expect(carried).toBeLessThanOrEqual(charactersLimit)
      // And it leaves nobody behind whom it could have taken.
      const next = queue[n]
      if (next && n < seats) expect(carried + next.weight).toBeGreaterThan(charactersLimit)
    }),
    { seed: 7 },
  )
})

it('weighs the words that a step reports, with a reply those that were sent, and messages by their number', () => {
  const observation: Observation = {
    kind: 'message',
    taskId: 't',
    contextId: null,
    event: 'x'.repeat(10),
    status: null,
    messages: [],
    artifacts: [],
    stored: [],
  }
  const report = { agentId: 'a', tenant: '', source: 'stream' as const, command: null, remoteTaskId: 't' }
  const told: Fact[] = [
    { type: 'agent.registered' },
    { type: 'agent.reported', report: { ...report, observations: [observation, observation] } },
  ]
  expect(weightOf({ ref: { kind: 'k', id: 'i' }, event: null, told, lease: null, cause: 'test' })).toBe(20)
  expect(weightOf(null)).toBe(0)

  const command = {
    id: 'c',
    title: null,
    skillId: null,
    referenceTaskIds: [],
    sent: observation,
    reply: '',
    continues: null,
  }
  const replied: Fact = { type: 'agent.reported', report: { ...report, command, observations: [observation] } }
  expect(weightOf({ ref: { kind: 'k', id: 'i' }, event: null, told: [replied], lease: null, cause: 'test' })).toBe(20)

  const said = { id: 'm', role: 'agent' as const, parts: '[]', timestamp: null, fromStatus: false }
  const messages = Array.from({ length: charactersLimit / 1024 }, () => said)
  const long: Fact = { type: 'agent.reported', report: { ...report, observations: [{ ...observation, messages }] } }
  const weight = weightOf({ ref: { kind: 'k', id: 'i' }, event: null, told: [long], lease: null, cause: 'test' })
  expect(weight).toBeGreaterThan(charactersLimit)
})
