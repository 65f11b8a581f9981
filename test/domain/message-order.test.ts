/** Where messages stand that were missed when they were said: where the agent's own history has them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Source } from '../../domain/fact.ts'
import { Fold, type KnownTask } from '../../domain/fold.ts'
import { placed } from '../../domain/message-order.ts'
import type { Observation } from '../../domain/observation.ts'
import { withoutWords, type KnownMessage } from '../../domain/same-id.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { observe, unseen } from '../support/observing.ts'

const at = '2026-11-21T12:00:00.000Z'
/** A person's where its id begins with u. */
const message = (id: string) => ({
  messageId: id,
  role: id.startsWith('u') ? ('ROLE_USER' as const) : ('ROLE_AGENT' as const),
  parts: [{ text: id }],
})
/** A question where its id begins with q. */
const status = (id: string | null) => ({
  state: id?.startsWith('q') ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_WORKING',
  ...(id === null ? {} : { message: message(id) }),
})

type Told = readonly [Observation, Source]
const sent = (id: string): Told => [observe({ message: { taskId: 't', contextId: 'c', ...message(id) } }), 'sent']
const said = (id: string): Told => [observe({ message: { taskId: 't', contextId: 'c', ...message(id) } }), 'stream']
const says = (id: string): Told => [
  observe({ statusUpdate: { taskId: 't', contextId: 'c', status: status(id) } }),
  'stream',
]
/** A look at the task: its history, and what stands in its status. */
const seen = (ids: string, present: string | null = null): Told => {
  const history = ids.split(' ').map(message)
  return [observe({ task: { id: 't', contextId: 'c', status: status(present), history } }), 'poll']
}

/** Each in a commit of its own. */
function rowsOf(told: readonly Told[]): readonly (readonly [id: string, position: number])[] {
  const messages = new Map<string, KnownMessage>()
  let task: Omit<KnownTask, 'messages'> = unseen
  for (const [observation, source] of told) {
    const fold = new Fold({ ...task, messages: new Map(messages) }, at, chainParts)
    fold.add(observation, source)
    const folded = fold.result()
    for (const each of folded.messages) messages.set(each.id, withoutWords(each, chainParts))
    task = { ...folded, events: folded.eventCount }
  }
  const rows = [...messages].map(([id, { position }]) => [id, position] as const)
  return rows.toSorted(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))
}
const orderOf = (told: readonly Told[]): readonly string[] => rowsOf(told).map(([id]) => id)

describe('messages of a task', () => {
  it.each<[string, readonly Told[], string]>([
    ['as they are told', [sent('u'), said('b'), said('a')], 'u b a'],
    ['a missed one between those around it', [sent('u'), said('a'), said('c'), seen('a b c')], 'u a b c'],
    ['several missed ones in their order', [sent('u'), said('a'), said('e'), seen('u a d c b e')], 'u a d c b e'],
    ['what was before the first that is known', [sent('u'), said('c'), seen('a b c')], 'u a b c'],
    ['what is new behind all that is known', [sent('u'), said('a'), seen('u a b')], 'u a b'],
    ['a cut history behind what it leaves out', [sent('u'), said('a'), said('c'), seen('b c')], 'u a b c'],
    ['between messages of one event', [sent('u'), seen('a c'), seen('a b c'), seen('a aa b c')], 'u a aa b c'],
    ['beside a message of the same event that is left out later', [sent('u'), seen('p q'), seen('x q')], 'u p x q'],
    ['a new question last, wherever a history has it', [sent('u'), said('a'), seen('q a b', 'q')], 'u a b q'],
    ['what was missed before a question that is known', [sent('u'), says('q'), seen('u a b', 'q')], 'u a b q'],
    ['so, too, where the history ends with the question', [sent('u'), says('q'), seen('u a b q', 'q')], 'u a b q'],
    ['an answer behind its question that still stands', [sent('u'), says('q'), seen('u a u2', 'q')], 'u q a u2'],
    [
      'what a person said before the words of a task at work, which answer it',
      [sent('u'), says('s'), seen('u a u2', 's'), sent('u2')],
      'u a u2 s',
    ],
    [
      'what follows an answer behind a question that still stands',
      [sent('u'), says('q'), sent('u2'), seen('u u2 a', 'q')],
      'u q u2 a',
    ],
    [
      'between others, beside an old status that still stands',
      [sent('u'), says('s'), sent('u2'), sent('u3'), seen('u2 x u3', 's')],
      'u s u2 x u3',
    ],
    [
      'between others, where the history ends with an id that was used before',
      [sent('u'), said('q'), sent('u2'), sent('u3'), seen('u2 x u3 q')],
      'u q u2 x u3',
    ],
    [
      'of an agent that tells the newest first, as heard',
      [sent('u'), said('a'), said('b'), seen('c b a u')],
      'u a b c',
    ],
    [
      'of such an agent, beside its present status',
      [sent('u'), said('a'), said('b'), says('s'), seen('c b a u', 's')],
      'u a b s c',
    ],
    [
      'before what comes later, where the one between was told too early',
      [sent('u'), said('c'), said('a'), says('e'), seen('u a x c', 'e')],
      'u c a x e',
    ],
    ['one before another that was missed before it', [sent('u'), said('c'), seen('b c'), seen('a b c')], 'u a b c'],
    ['so, too, before a question', [sent('u'), says('q'), seen('b', 'q'), seen('a b', 'q')], 'u a b q'],
    [
      'between others, where the history begins with what stands last',
      [sent('u'), said('a'), said('b'), said('x'), seen('x u a y b')],
      'u a y b x',
    ],
    ['an answer behind what was asked, whatever its agent says', [sent('u'), seen('a u')], 'u a'],
    ['what a person says behind what opened the task', [sent('u'), said('a'), seen('u2 u a'), sent('u2')], 'u a u2'],
    [
      'before the next that stands later, of an agent that changes its order',
      [sent('u'), seen('a b c'), seen('a c x b c')],
      'u a b x c',
    ],
  ])('stand: %s', (_, told, order) => {
    expect(orderOf(told).join(' ')).toBe(order)
  })

  it('stand before the question that stands, and not before an earlier one of its name', () => {
    const question = (text: string, n: number) => ({
      state: 'TASK_STATE_INPUT_REQUIRED',
      timestamp: new Date(Date.parse(at) + n * 1000).toISOString(),
      message: { ...message('q'), parts: [{ text }] },
    })
    const asks = (text: string, n: number): Told => [
      observe({ statusUpdate: { taskId: 't', contextId: 'c', status: question(text, n) } }),
      'stream',
    ]
    const asked = (ids: string, text: string, n: number): Told => {
      const history = ids.split(' ').map(message)
      return [observe({ task: { id: 't', contextId: 'c', status: question(text, n), history } }), 'poll']
    }
    const story = [sent('u'), said('a'), asks('Which?', 1), sent('u2')]
    const second = expect.stringMatching(/^q#agent-/)
    // Beside the question as it is asked, and beside one that was asked before.
    expect(orderOf([...story, asked('a x', 'Really?', 2)])).toEqual(['u', 'a', 'q', 'u2', 'x', second])
    expect(orderOf([...story, asks('Really?', 2), asked('a u2 x', 'Really?', 2)])).toEqual([
      'u',
      'a',
      'q',
      'u2',
      'x',
      second,
    ])
  })

  it('stand as their agent has them, whichever were missed and however much of its history each look shows', () => {
    const nameOf = (n: number): string => `m${String(n).padStart(2, '0')}`
    const moments = fc.array(
      fc.record({
        how: fc.constantFrom('heard', 'heard in its status', 'missed'),
        shown: fc.option(fc.nat(12), { nil: null }),
        isStill: fc.boolean(),
      }),
      { minLength: 1, maxLength: 12 },
    )
    fc.assert(
      fc.property(moments, (all) => {
        let present: string | null = null
        const told = all.flatMap(({ how, shown, isStill }, now): Told[] => {
          const so = ['u', ...all.slice(0, now + 1).map((_, n) => nameOf(n))]
          present = how === 'heard in its status' ? nameOf(now) : isStill ? null : present
          return [
            ...(how === 'heard' ? [said(nameOf(now))] : []),
            ...(how === 'heard in its status' ? [says(nameOf(now))] : []),
            // The present status is the last of the history, or is cleared.
            ...(shown === null ? [] : [seen(so.slice(-shown - 1).join(' '), present === so.at(-1) ? present : null)]),
          ]
        })
        const whole = ['u', ...all.map((_, n) => nameOf(n))]
        expect(orderOf([sent('u'), ...told])).toEqual(
          orderOf([sent('u'), ...told]).toSorted((a, b) => whole.indexOf(a) - whole.indexOf(b)),
        )
        expect(orderOf([sent('u'), ...told, seen(whole.join(' '))])).toEqual(whole)
      }),
    )
  })

  it('keep their order however many come at once', () => {
    const many = Array.from({ length: 5_000 }, (_, n) => `m${(n * 7919) % 5_000}`)
    expect(orderOf([sent('u'), seen(['u', ...many].join(' '))])).toEqual(['u', ...many])
    expect(orderOf([sent('u'), said('z'), seen([...many, 'z'].join(' '))])).toEqual(['u', ...many, 'z'])
  })

  it('have places of their own, also where a gap is filled one by one', () => {
    const filled = Array.from({ length: 20 }, (_, n) => `m${String(n).padStart(2, '0')}`)
    const looks = filled.map((_, n) => seen(['a', ...filled.slice(0, n + 1), 'z'].join(' ')))
    const rows = rowsOf([sent('u'), said('a'), said('z'), ...looks])
    expect(rows.map(([id]) => id)).toEqual(['u', 'a', ...filled, 'z'])
    expect(new Set(rows.map(([, position]) => position)).size).toBe(rows.length)
  })

  it('have places that a double holds exactly, for eight million events of a million messages', () => {
    const last = placed(2 ** 23 - 1, 2 ** 20 - 1)
    expect([Number.isSafeInteger(last), placed(2 ** 23 - 1, 2 ** 20 - 2) < last]).toEqual([true, true])
  })
})

it('artifacts stand where the agent has them among all that it made, also one that was missed', () => {
  const made = (artifactId: string) => ({ artifactId, parts: [{ text: artifactId }] })
  const makes = (id: string): Told => [
    observe({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: made(id), append: false, lastChunk: true } }),
    'stream',
  ]
  const shows = (ids: string): Told => {
    const artifacts = ids.split(' ').map(made)
    return [observe({ task: { id: 't', contextId: 'c', status: status(null), artifacts } }), 'poll']
  }
  const fold = new Fold(unseen, at, chainParts)
  for (const [observation, source] of [sent('u'), makes('b'), makes('d'), shows('a b c d e'), shows('e d c b a')])
    fold.add(observation, source)
  const order = [...fold.result().artifacts].toSorted(([, x], [, y]) => x.position - y.position)
  expect(order.map(([id]) => id).join(' ')).toBe('a b c d e')
})
