/** Where messages stand that were missed when they were said: where the agent's own history has them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Source } from '../../domain/fact.ts'
import { Fold, type KnownTask } from '../../domain/fold.ts'
import { placed } from '../../domain/message-order.ts'
import type { Observation } from '../../domain/observation.ts'
import { withoutWords, type KnownMessage } from '../../domain/same-id.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { observe } from '../support/observing.ts'

const at = '2026-11-21T12:00:00.000Z'
const message = (id: string) => ({ messageId: id, role: 'ROLE_AGENT' as const, parts: [{ text: id }] })
const said = (id: string): Observation => observe({ message: { taskId: 't', contextId: 'c', ...message(id) } })
const history = (...ids: readonly string[]): Observation =>
  observe({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' }, history: ids.map(message) } })
const asks = (id: string, ...before: readonly string[]): Observation => {
  const status = { state: 'TASK_STATE_INPUT_REQUIRED', message: message(id) }
  return observe({ task: { id: 't', contextId: 'c', status, history: before.map(message) } })
}

/** Each in a commit of its own. Ids in the order of the view. */
function orderOf(told: readonly (readonly [Observation, Source])[]): readonly string[] {
  const messages = new Map<string, KnownMessage>()
  let task: Omit<KnownTask, 'messages'> = {
    state: 'TASK_STATE_UNSPECIFIED',
    stateAt: null,
    version: 0,
    events: 0,
    artifacts: new Map(),
  }
  for (const [observation, source] of told) {
    const fold = new Fold({ ...task, messages: new Map(messages) }, at, chainParts)
    fold.add(observation, source)
    const folded = fold.result()
    for (const each of folded.messages) messages.set(each.id, withoutWords(each, chainParts))
    task = { ...folded, events: folded.eventCount }
  }
  const places = [...messages].toSorted(([a, { position: x }], [b, { position: y }]) => x - y || (a < b ? -1 : 1))
  return places.map(([id]) => id)
}

describe('messages of a task', () => {
  it.each<[string, readonly (readonly [Observation, Source])[], string]>([
    [
      'as they are told',
      [
        [said('b'), 'stream'],
        [said('a'), 'stream'],
      ],
      'b a',
    ],
    [
      'a missed one between those around it',
      [
        [said('a'), 'stream'],
        [said('c'), 'stream'],
        [history('a', 'b', 'c'), 'poll'],
      ],
      'a b c',
    ],
    [
      'several missed ones in their order',
      [
        [said('a'), 'stream'],
        [said('e'), 'stream'],
        [history('a', 'd', 'c', 'b', 'e'), 'poll'],
      ],
      'a d c b e',
    ],
    [
      'what was before the first that is known',
      [
        [said('c'), 'stream'],
        [history('a', 'b', 'c'), 'poll'],
      ],
      'a b c',
    ],
    [
      'what is new behind all that is known',
      [
        [said('a'), 'stream'],
        [history('a', 'b'), 'poll'],
      ],
      'a b',
    ],
    [
      'a part of a history, behind what it leaves out',
      [
        [said('a'), 'stream'],
        [said('c'), 'stream'],
        [history('b', 'c'), 'poll'],
      ],
      'a b c',
    ],
    [
      'between messages of one event',
      [
        [history('a', 'c'), 'poll'],
        [history('a', 'b', 'c'), 'poll'],
        [history('a', 'aa', 'b', 'c'), 'poll'],
      ],
      'a aa b c',
    ],
    [
      'the present question last, wherever a history has it',
      [
        [said('a'), 'stream'],
        [asks('q', 'q', 'a', 'b'), 'poll'],
      ],
      'a b q',
    ],
    [
      'of an agent that tells the newest first, as they were heard',
      [
        [said('a'), 'stream'],
        [said('b'), 'stream'],
        [history('c', 'b', 'a'), 'poll'],
      ],
      'a b c',
    ],
    [
      'of an agent that changes its order, as they come',
      [
        [history('a', 'b', 'c'), 'poll'],
        [history('a', 'c', 'x', 'b', 'c'), 'poll'],
      ],
      'a b c x',
    ],
  ])('stand: %s', (_, told, order) => {
    expect(orderOf(told).join(' ')).toBe(order)
  })

  it('stand as their agent has them, whichever were missed and however much of its history each look shows', () => {
    const nameOf = (n: number): string => `m${String(n).padStart(2, '0')}`
    const moments = fc.array(fc.record({ isHeard: fc.boolean(), shown: fc.option(fc.nat(12), { nil: null }) }), {
      minLength: 1,
      maxLength: 12,
    })
    fc.assert(
      fc.property(moments, (all) => {
        const told = all.flatMap(({ isHeard, shown }, now): (readonly [Observation, Source])[] => {
          const so = all.slice(0, now + 1).map((_, n) => nameOf(n))
          return [
            ...(isHeard ? [[said(nameOf(now)), 'stream'] as const] : []),
            ...(shown === null ? [] : [[history(...so.slice(-shown - 1)), 'poll'] as const]),
          ]
        })
        const whole = [...told, [history(...all.map((_, n) => nameOf(n))), 'poll'] as const]
        expect(orderOf(told)).toEqual(orderOf(told).toSorted())
        expect(orderOf(whole)).toEqual(all.map((_, n) => nameOf(n)))
      }),
    )
  })

  it('keep their order however many come at once', () => {
    const many = Array.from({ length: 5_000 }, (_, n) => `m${(n * 7919) % 5_000}`)
    expect(orderOf([[history(...many), 'reply']])).toEqual(many)
  })

  it('have places that a double holds exactly, for eight million events of a million messages', () => {
    const last = placed(2 ** 23 - 1, 2 ** 20 - 1)
    expect([Number.isSafeInteger(last), placed(2 ** 23 - 1, 2 ** 20 - 2) < last]).toEqual([true, true])
  })
})
