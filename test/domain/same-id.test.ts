/** Messages of one task under an id that was used before: other words are kept beside those that were known, each once. */
import { describe, expect, it } from 'vitest'
import type { Source } from '../../domain/fact.ts'
import { Fold, type Folded, type KnownTask } from '../../domain/fold.ts'
import { decodeText } from '../../domain/json-text.ts'
import type { Observation } from '../../domain/observation.ts'
import { namesOf, withoutWords, type KnownMessage } from '../../domain/same-id.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { observe, unseen } from '../support/observing.ts'

const at = '2026-11-21T12:00:00.000Z'
const second = (n: number): string => new Date(Date.parse(at) + n * 1000).toISOString()
const own = { messageId: 'q', role: 'ROLE_AGENT' as const }
const statusOf = (state: string, n: number | null, text: string) => ({
  state: `TASK_STATE_${state}`,
  ...(n === null ? {} : { timestamp: second(n) }),
  message: { ...own, parts: [{ text }] },
})
const ids = { taskId: 't', contextId: 'c' }
const status = (...said: Parameters<typeof statusOf>): Observation =>
  observe({ statusUpdate: { ...ids, status: statusOf(...said) } })
const shown = (...said: Parameters<typeof statusOf>): Observation =>
  observe({ task: { id: 't', contextId: 'c', status: statusOf(...said) } })
const message = (text: string, role: 'ROLE_USER' | 'ROLE_AGENT'): Observation =>
  observe({ message: { ...ids, messageId: 'q', role, parts: [{ text }] } })
const chunk = (text: string, append: boolean, lastChunk: boolean): Observation =>
  observe({ artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text }] }, append, lastChunk } })

const textsOf = (folded: Pick<Folded, 'messages'>): readonly string[] =>
  folded.messages.map(({ parts }) => String((JSON.parse(decodeText(parts)) as { value: unknown }[])[0]?.value))

type Told = readonly [Observation, Source]
function foldedAtOnce(told: readonly Told[]): Folded {
  const fold = new Fold(unseen, at, chainParts)
  for (const [observation, source] of told) fold.add(observation, source)
  return fold.result()
}

/** Each in a commit of its own, as a rebuild folds them: of what was known only names and digests are left. */
function foldedOneByOne(told: readonly Told[]): readonly string[] {
  const remembered = new Map<string, KnownMessage>()
  const texts: string[] = []
  let known: Omit<KnownTask, 'messages'> = unseen
  for (const [observation, source] of told) {
    const names = observation.messages.flatMap((said) => namesOf(said, chainParts, source === 'sent'))
    const messages = new Map(names.flatMap((name) => [...remembered].filter(([id]) => id === name)))
    const fold = new Fold({ ...known, messages }, at, chainParts)
    fold.add(observation, source)
    const folded = fold.result()
    for (const said of folded.messages) remembered.set(said.id, withoutWords(said, chainParts))
    texts.push(...textsOf(folded))
    known = { ...folded, events: folded.eventCount, artifacts: new Map() }
  }
  return texts
}

describe('what is said under an id that was used before', () => {
  const first = status('INPUT_REQUIRED', 1, 'Which account?')
  const account = 'Which account?'
  const pay = 'Really pay?'
  it.each<[string, readonly Told[], readonly string[]]>([
    [
      'a second question, behind some work',
      [
        [first, 'stream'],
        [status('WORKING', 2, pay), 'stream'],
      ],
      [account, pay],
    ],
    [
      'a second question of a later time',
      [
        [first, 'poll'],
        [shown('INPUT_REQUIRED', 2, pay), 'poll'],
      ],
      [account, pay],
    ],
    [
      'a second question without a time',
      [
        [first, 'stream'],
        [status('INPUT_REQUIRED', null, pay), 'reply'],
      ],
      [account, pay],
    ],
    [
      'the same question, asked again',
      [
        [first, 'stream'],
        [shown('INPUT_REQUIRED', 2, account), 'poll'],
      ],
      [account],
    ],
    [
      'an older question, late',
      [
        [first, 'stream'],
        [status('INPUT_REQUIRED', 0, 'Hm?'), 'push'],
      ],
      [account],
    ],
    [
      'the last words',
      [
        [first, 'stream'],
        [status('COMPLETED', 2, 'Paid.'), 'push'],
      ],
      [account, 'Paid.'],
    ],
    [
      'words that grow while it works',
      [
        [status('WORKING', 1, 'Thin'), 'stream'],
        [status('WORKING', 2, 'Thinking'), 'stream'],
      ],
      ['Thin'],
    ],
    [
      'an answer under the name of what was asked',
      [
        [message('Pay.', 'ROLE_USER'), 'sent'],
        [message('Paid.', 'ROLE_AGENT'), 'reply'],
      ],
      ['Pay.', 'Paid.'],
    ],
    [
      'an echo that is taken for the agent’s own words',
      [
        [message('Pay.', 'ROLE_USER'), 'sent'],
        [message('Pay.', 'ROLE_AGENT'), 'poll'],
      ],
      ['Pay.'],
    ],
    [
      'a person’s answer under the name of the question',
      [
        [first, 'stream'],
        [message('The second.', 'ROLE_USER'), 'sent'],
      ],
      [account, 'The second.'],
    ],
    [
      'a person’s other words under one name',
      [
        [message('Pay.', 'ROLE_USER'), 'sent'],
        [message('Pay both.', 'ROLE_USER'), 'sent'],
        [message('Pay both.', 'ROLE_USER'), 'poll'],
        [message('Pay both.', 'ROLE_USER'), 'sent'],
      ],
      ['Pay.', 'Pay both.'],
    ],
    [
      'words that grow under the name of what was asked',
      [
        [message('Pay.', 'ROLE_USER'), 'sent'],
        [status('WORKING', 1, 'Pay'), 'stream'],
        [status('WORKING', 2, 'Paying'), 'stream'],
        [status('WORKING', 3, 'Paying it'), 'stream'],
        [status('COMPLETED', 4, 'Paid.'), 'stream'],
        [status('WORKING', 2, 'Late.'), 'push'],
      ],
      ['Pay.', 'Pay', 'Paid.'],
    ],
    [
      'a history under the name of what was asked',
      [
        [message('Pay.', 'ROLE_USER'), 'sent'],
        [message('One.', 'ROLE_AGENT'), 'reply'],
        [message('Two.', 'ROLE_AGENT'), 'poll'],
      ],
      ['Pay.', 'One.'],
    ],
    [
      'what is too long to be compared',
      [
        [first, 'stream'],
        [status('INPUT_REQUIRED', 2, 'x'.repeat(40_000)), 'stream'],
      ],
      [account],
    ],
  ])('is kept: %s', (_what, told, texts) => {
    // Whatever came before comes again with the next look.
    const [again] = told
    const all = again ? [...told, again, ...told.slice(1)] : told
    expect(textsOf(foldedAtOnce(all))).toEqual(texts)
    expect(foldedOneByOne(all)).toEqual(texts)
  })
})

describe('an artifact that was complete and is begun anew by a stream', () => {
  const begun: readonly Told[] = [
    [chunk('draft', false, true), 'stream'],
    [chunk('new 1', false, false), 'stream'],
  ]
  const artifactOf = (told: readonly Told[]) => foldedAtOnce(told).artifacts.get('a')

  it('is not complete until that is said again', () => {
    expect(artifactOf(begun)).toMatchObject({ complete: false, partCount: 1 })
    expect(artifactOf([...begun, [chunk('new 2', true, true), 'stream']])).toMatchObject({
      complete: true,
      partCount: 2,
    })
  })

  it('is told to its last chunk, also where the task’s end came before by another way', () => {
    const end: Told = [observe({ statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED' } } }), 'push']
    expect(artifactOf([...begun, end, [chunk('new 2', true, true), 'stream']])).toMatchObject({ partCount: 2 })
  })
})
