/** What is said of an actor that has stopped asking: why, since when, and what would set it going again. */
import { describe, expect, it } from 'vitest'
import { explainActor } from '../../domain/actor-explanation.ts'
import type { StateValue } from '../../domain/chart.ts'
import { agentRemoved, taskForgotten } from '../../domain/unread-agent.ts'
import { actorIn, at, nowMs, seen } from './seen-actors.ts'

const told = (kind: string, value: StateValue, context: Record<string, unknown> = {}) =>
  explainActor(seen(actorIn(kind, value, { context, movedAt: at(-60_000) })), nowMs)[0]
const words = (...of: Parameters<typeof told>) => told(...of)?.sentences.join(' ')

describe('the looks at an agent that was removed', () => {
  it('are not said to rest because nothing is unfinished', () => {
    expect(told('reconciliation', 'resting', { reason: agentRemoved })?.sentences).toEqual([
      'Nothing is asked for any more, whatever of this agent is unfinished.',
      'Reason: The agent was removed.',
    ])
    expect(words('reconciliation', 'resting', { reason: null })).toContain('Nothing of this agent is unfinished')
  })
})

describe('a subscription that stopped', () => {
  const stopped = (reason: string | null) => words('subscription', 'stopped', { reason })
  const vague = 'gone, or too large'

  it('says only the reason that is known', () => {
    expect(stopped(null)).toContain(vague)
    for (const reason of [agentRemoved, taskForgotten, 'Agent response exceeds the safety limit.']) {
      expect(stopped(reason)).toMatch(`Reason: ${reason} The task is not followed any more`)
      expect(stopped(reason)).not.toContain(vague)
    }
  })

  it('names no way to go on that there is not', () => {
    const [reply, look] = ['A reply that is delivered', 'a look that shows the task']
    expect(stopped(agentRemoved)).not.toContain(reply)
    expect(stopped(agentRemoved)).toContain(`Once the agent is added again, ${look} starts following again.`)
    expect(stopped(taskForgotten)).toContain(reply)
    expect(stopped(taskForgotten)).toMatch(/So does a look that shows the task again\.$/)
    expect(stopped('Agent response exceeds the safety limit.')).not.toContain(look)
  })
})

describe('push that is not to be had', () => {
  it('is not said of the card alone: who offers it may have answered that it has none', () => {
    expect(words('push', 'unsupported')).toContain(
      'The agent’s card offers no push, or the agent answered that it does not support it.',
    )
  })

  it('says since when it was given up, and after how many tries where that is known', () => {
    const reason = 'The agent refused: Not such an address.'
    expect(told('push', 'stopped', { failures: 7, reason })).toMatchObject({
      tone: 'warn',
      known: [{ words: 'Given up after 8 tries', at: at(-60_000) }],
    })
    expect(told('push', 'stopped', { reason })?.known).toEqual([{ words: 'Given up', at: at(-60_000) }])
  })
})
