/** Folding: whatever arrives twice, late, shuffled or after the end gives the view that the ordered, single delivery gives. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeText } from '../../domain/json-text.ts'
import { Fold, partsLimit, type Folded, type KnownTask } from '../../domain/fold.ts'
import type { Observation } from '../../domain/observation.ts'
import { longValue } from '../../domain/part-text.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { observe, unseen } from '../support/observing.ts'

const at = '2026-11-21T12:00:00.000Z'

const second = (n: number): string => new Date(Date.parse(at) + n * 1000).toISOString()
const status = (state: string, n: number, text?: string): Observation =>
  observe({
    statusUpdate: {
      taskId: 't',
      contextId: 'c',
      status: {
        state,
        timestamp: second(n),
        ...(text === undefined ? {} : { message: { messageId: `m${n}`, role: 'ROLE_AGENT', parts: [{ text }] } }),
      },
    },
  })
const chunk = (text: string, append: boolean): Observation =>
  observe({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text }] }, append } })
const task = (state: string, n: number, texts: readonly string[], artifactId = 'a'): Observation =>
  observe({
    task: {
      id: 't',
      contextId: 'c',
      status: { state, timestamp: second(n) },
      artifacts: [{ artifactId, parts: texts.map((text) => ({ text })) }],
    },
  })

const fold = (observations: readonly Observation[], known: KnownTask = unseen): Folded => {
  const folding = new Fold(known, at, chainParts)
  for (const observation of observations) folding.add(observation, 'stream')
  return folding.result()
}
const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
const seenOf = (folded: Folded) => ({
  state: folded.state,
  transitions: folded.transitions.map((t) => t.state),
  messages: folded.messages.map((m) => m.id).toSorted(),
})

describe('folding', () => {
  it('keeps the state that it knows when an agent has a word of its own for another, and takes in what it says', () => {
    const told = [status('TASK_STATE_WORKING', 1), status('TASK_STATE_PONDERING', 2, 'Hm.'), status('MESSAGE_ONLY', 3)]
    const seen = { state: 'TASK_STATE_WORKING', transitions: ['TASK_STATE_WORKING'], messages: ['m2'] }
    expect(seenOf(fold(told))).toEqual(seen)
    expect(seenOf(fold(told.toReversed()))).toEqual(seen)
    const [, kept] = fold(told).events
    expect(kept?.event).toContain('TASK_STATE_PONDERING')
    expect(seenOf(fold([...told, status('TASK_STATE_COMPLETED', 4)])).state).toBe('TASK_STATE_COMPLETED')
  })

  const story = [
    status('TASK_STATE_SUBMITTED', 0),
    status('TASK_STATE_WORKING', 1, 'Looking into it.'),
    status('TASK_STATE_INPUT_REQUIRED', 2, 'Which one?'),
    status('TASK_STATE_WORKING', 3, 'Thanks.'),
    status('TASK_STATE_COMPLETED', 4, 'Done.'),
  ]

  it('ends in the same state and with the same words, however events are repeated and reordered', () => {
    const shuffled = fc
      .array(fc.nat(story.length - 1), { maxLength: 20 })
      .chain((extra) => fc.shuffledSubarray([...story.keys(), ...extra], { minLength: story.length + extra.length }))
    fc.assert(
      fc.property(shuffled, (order) => {
        const folded = fold(order.flatMap((i) => story[i] ?? []))
        const ordered = fold(story)
        expect(folded.state).toBe('TASK_STATE_COMPLETED')
        expect(seenOf(folded).messages).toEqual(seenOf(ordered).messages)
      }),
    )
  })

  it('changes nothing when the whole story is told again', () => {
    const once = fold(story)
    const known: KnownTask = {
      state: once.state,
      stateAt: once.stateAt,
      version: once.version,
      events: once.eventCount,
      messages: new Map(once.messages.map((m) => [m.id, m])),
      artifacts: once.artifacts,
    }
    expect(fold(story, known).changed).toBe(false)
  })

  it('never reopens a finished task', () => {
    const folded = fold([...story, status('TASK_STATE_WORKING', 9), status('TASK_STATE_FAILED', 10)])
    expect(folded.state).toBe('TASK_STATE_COMPLETED')
  })

  it('takes a snapshot that says what the chunks said as nothing new', () => {
    const chunks = ['one ', 'two ', 'three'].map((text, i) => chunk(text, i > 0))
    const streamed = fold(chunks)
    const snapshot = observe({
      task: {
        id: 't',
        status: { state: 'TASK_STATE_UNSPECIFIED' },
        artifacts: [{ artifactId: 'a', parts: [{ text: 'one ' }, { text: 'two ' }, { text: 'three' }] }],
      },
    })
    const artifact = streamed.artifacts.get('a')
    expect([...(artifact?.newParts.keys() ?? [])]).toEqual([0, 1, 2])
    const closed = new Map([...streamed.artifacts].map(([id, a]) => [id, { ...a, complete: true }]))
    expect(fold([snapshot], { ...unseen, artifacts: closed }).changed).toBe(false)
  })

  it('appends only what comes in order: a pushed chunk adds nothing', () => {
    const folding = new Fold(unseen, at, chainParts)
    expect(folding.add(chunk('one', false), 'stream')).toBe(true)
    expect(folding.add(chunk('two', true), 'push')).toBe(false)
    expect(folding.result().artifacts.get('a')?.partCount).toBe(1)
  })

  it('shows so many parts of an artifact and says that there are more, however they came; every event counts', () => {
    const update = (from: number, upTo: number): Observation => {
      const parts = Array.from({ length: upTo - from }, (_, n) => ({ text: `${from + n}` }))
      const artifact = { artifactId: 'a', parts }
      return observe({ artifactUpdate: { taskId: 't', contextId: 'c', artifact, append: from > 0 } })
    }
    const whole = fold([update(0, partsLimit + 7)]).artifacts.get('a')
    const steps = [0, 1, partsLimit - 1, partsLimit, partsLimit + 2, partsLimit + 7]
    const told = steps.slice(1).map((upTo, n) => update(steps[n] ?? 0, upTo))
    const streamed = fold(told)
    // Told in reports of their own, only what is known of it is carried from one to the next.
    let known = unseen
    const rows = new Map<number, string>()
    for (const observation of told) {
      const { artifacts, version, eventCount: events } = fold([observation], known)
      for (const [place, part] of artifacts.get('a')?.newParts ?? []) rows.set(place, decodeText(part.json))
      known = { ...known, artifacts, version, events }
    }
    expect(streamed.events).toHaveLength(told.length)
    expect(known.events).toBe(told.length)
    for (const artifact of [whole, streamed.artifacts.get('a')]) {
      expect(artifact?.partCount).toBe(partsLimit + 1)
      expect(artifact?.partsDigest).toBe(known.artifacts.get('a')?.partsDigest)
      const shown = [...(artifact?.newParts ?? [])].map(([place, { json }]) => [place, decodeText(json)])
      expect(digestOf(shown.join())).toBe(digestOf([...rows].join()))
    }
    expect(JSON.parse(rows.get(partsLimit) ?? '')).toMatchObject({
      kind: 'unknown',
      value: expect.stringMatching(/more than/),
    })
    expect(fold([update(0, partsLimit + 6)]).artifacts.get('a')?.partsDigest).not.toBe(whole?.partsDigest)
    expect(fold([update(0, 2)], known).artifacts.get('a')).toMatchObject({ partCount: 2, isShorter: true })
  })

  it.each([longValue, 1024 * 1024])(
    'takes a part of %i for the same wherever it was said: most of its event, or little of it',
    (length) => {
      const text = 'é'.repeat(length)
      const parts = [{ text }]
      const others = Array.from({ length: 3 }, (_, n) => ({ artifactId: `b${n}`, parts: [{ text: `${n}${text}` }] }))
      const status = { state: 'TASK_STATE_WORKING' }
      const alone = fold([chunk(text, false)])
      const among = fold([observe({ task: { id: 't', status, artifacts: [{ artifactId: 'a', parts }, ...others] } })])
      expect(alone.artifacts.get('a')?.newParts.get(0)?.value).toMatchObject({ event: 0 })
      expect(among.artifacts.get('a')?.newParts.get(0)?.value).toBeNull()
      expect(among.artifacts.get('a')?.partsDigest).toBe(alone.artifacts.get('a')?.partsDigest)
      const other = fold([chunk(`${text}.`, false)])
      expect(other.artifacts.get('a')?.partsDigest).not.toBe(alone.artifacts.get('a')?.partsDigest)
    },
  )

  it('shows so much of what an agent says beside the parts of an artifact; the event has it all', () => {
    const long = 'é'.repeat(50_000)
    const extensions = Array.from({ length: 2_000 }, (_, n) => `https://e.example/${n}`)
    const artifact = { artifactId: 'a', name: long, description: long, extensions, parts: [{ text: 'one' }] }
    const { artifacts, events } = fold([observe({ artifactUpdate: { taskId: 't', contextId: 'c', artifact } })])
    const shown = artifacts.get('a')
    expect([shown?.name?.length, shown?.description?.length]).toEqual([16_384, 16_384])
    expect(shown?.extensions).toEqual(extensions.slice(0, shown?.extensions.length))
    expect(shown?.extensions.length).toBeGreaterThan(500)
    expect(JSON.parse(String(events[0]?.event))).toMatchObject({ artifactUpdate: { artifact } })
  })

  it('takes an end for an end, even when another replica of the agent has a slower clock', () => {
    const folded = fold([status('TASK_STATE_WORKING', 5), status('TASK_STATE_COMPLETED', 4)])
    expect(folded.state).toBe('TASK_STATE_COMPLETED')
  })

  it('takes everything that was made by then with an end, whatever its clock says', () => {
    const folding = new Fold(unseen, at, chainParts)
    folding.add(task('TASK_STATE_WORKING', 5, ['half']), 'poll')
    folding.add(task('TASK_STATE_COMPLETED', 4, ['half', 'whole']), 'poll')
    folding.add(task('TASK_STATE_WORKING', 6, ['late']), 'poll')
    expect(folding.result().state).toBe('TASK_STATE_COMPLETED')
    expect(folding.result().artifacts.get('a')?.partCount).toBe(2)
  })

  it('ignores a status that is older than the one it has', () => {
    const folded = fold([status('TASK_STATE_INPUT_REQUIRED', 5, 'Which?'), status('TASK_STATE_WORKING', 1)])
    expect(folded.state).toBe('TASK_STATE_INPUT_REQUIRED')
  })

  it('takes an older one that is known to be present, marks it, and goes on by its time', () => {
    const folding = new Fold(unseen, at, chainParts)
    folding.add(status('TASK_STATE_WORKING', 5), 'stream')
    expect(folding.add(status('TASK_STATE_INPUT_REQUIRED', 1, 'Which?'), 'poll', { isPresent: true })).toBe(true)
    expect(folding.add(status('TASK_STATE_INPUT_REQUIRED', 1, 'Which?'), 'poll', { isPresent: true })).toBe(false)
    folding.add(status('TASK_STATE_WORKING', 2), 'stream')
    const { state, events, transitions } = folding.result()
    expect(state).toBe('TASK_STATE_WORKING')
    expect(transitions.map((t) => t.state)).toEqual([
      'TASK_STATE_WORKING',
      'TASK_STATE_INPUT_REQUIRED',
      'TASK_STATE_WORKING',
    ])
    expect(events.map(({ isPresent }) => isPresent)).toEqual([false, true, false])
  })

  it('reopens nothing, and takes no word that it does not know, though it be present', () => {
    const finished = [status('TASK_STATE_COMPLETED', 5)]
    for (const said of [status('TASK_STATE_WORKING', 1), status('TASK_STATE_PONDERING', 1)]) {
      const folding = new Fold(unseen, at, chainParts)
      for (const each of said.status?.state === 'TASK_STATE_WORKING' ? finished : [status('TASK_STATE_WORKING', 5)])
        folding.add(each, 'stream')
      expect(folding.add(said, 'poll', { isPresent: true })).toBe(false)
    }
  })
})

describe('an answer that was on its way while more was heard', () => {
  const behind = { answer: { asked: 0, isBehind: true, isOvertaken: (artifactId: string) => artifactId === 'a' } }
  const parts = (folding: Fold): number | undefined => folding.result().artifacts.get('a')?.partCount
  const streamed = (): Fold => {
    const folding = new Fold(unseen, at, chainParts)
    const told = [status('TASK_STATE_WORKING', 1), chunk('one', false), chunk('two', true), chunk('three', true)]
    for (const each of told) folding.add(each, 'stream')
    return folding
  }

  it.each(['poll', 'reply'] as const)('takes no chunk away that came since, told by %s', (source) => {
    const folding = streamed()
    expect(folding.add(task('TASK_STATE_WORKING', 1, ['one']), source, behind)).toBe(false)
    folding.add(chunk('four', true), 'stream')
    expect(parts(folding)).toBe(4)
    // Asked for anew it counts: the agent shows what it has.
    expect(folding.add(task('TASK_STATE_WORKING', 1, ['one']), source)).toBe(true)
    expect(parts(folding)).toBe(1)
  })

  it('brings what nobody knew, and is marked where it brings something', () => {
    const folding = streamed()
    folding.add(task('TASK_STATE_INPUT_REQUIRED', 5, ['one']), 'poll', behind)
    expect(parts(folding)).toBe(3)
    folding.add(task('TASK_STATE_INPUT_REQUIRED', 6, ['other'], 'b'), 'poll', behind)
    const { state, artifacts, events } = folding.result()
    expect([state, [...artifacts.keys()]]).toEqual(['TASK_STATE_INPUT_REQUIRED', ['a', 'b']])
    expect(events.map((event) => event.passedOver)).toEqual([
      null,
      null,
      null,
      null,
      { status: false, artifacts: ['a'] },
      null,
    ])
  })

  it('counts whole where it tells of the end', () => {
    const folding = streamed()
    folding.add(task('TASK_STATE_COMPLETED', 5, ['one and two and three']), 'poll', behind)
    expect([folding.state, parts(folding)]).toEqual(['TASK_STATE_COMPLETED', 1])
  })

  it('moves no state that no time can place, unless it is the answer to what was said', () => {
    const untimed = (state: string): Observation => observe({ task: { id: 't', contextId: 'c', status: { state } } })
    const folding = new Fold(unseen, at, chainParts)
    for (const state of ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED']) folding.add(untimed(state), 'stream')
    expect(folding.add(untimed('TASK_STATE_WORKING'), 'poll', behind)).toBe(false)
    expect(folding.state).toBe('TASK_STATE_INPUT_REQUIRED')
    folding.add(untimed('TASK_STATE_WORKING'), 'reply', behind)
    expect(folding.state).toBe('TASK_STATE_WORKING')
    expect(folding.add(untimed('TASK_STATE_COMPLETED'), 'poll', behind)).toBe(true)
  })
})

it('an artifact that is named later, or described, is shown so', () => {
  const named = (artifact: object): Observation =>
    observe({
      artifactUpdate: {
        taskId: 't',
        contextId: 'c',
        artifact: { artifactId: 'a', parts: [{ text: 'x' }], ...artifact },
      },
    })
  const folding = new Fold(unseen, at, chainParts)
  const both = { extensions: ['urn:x', 'urn:y'] }
  const told = [
    {},
    { name: 'Named' },
    { description: 'Described' },
    both,
    {},
    { extensions: both.extensions.toReversed() },
  ]
  const news = told.map((artifact) => folding.add(named(artifact), 'stream'))
  expect(news).toEqual([true, true, true, true, false, false])
  expect(folding.result().artifacts.get('a')).toMatchObject({
    name: 'Named',
    description: 'Described',
    extensions: ['urn:x', 'urn:y'],
    partCount: 1,
  })
})
