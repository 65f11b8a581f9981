/** Parts and their events as texts: whatever is said, the event is its JSON, and a part is read whole from it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Part, StreamResponse } from '../../a2a/messages.ts'
import { observationOf } from '../../domain/observation.ts'
import { comparedBy, elsewhere, longValue, valueStart } from '../../domain/part-text.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { textDigest } from '../../persistence/text-digest.ts'
import { observe, partText } from '../support/observing.ts'
import { sized } from '../support/pass.ts'

/** Beside everything that texts may hold, what stands for a value while its event is written, and what a row holds for it. */
const seed = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 9 }),
  fc.constantFrom('\0a long value', '""', 'é', '\ud83d'),
)
/** A text of a megabyte is one in twenty: of some hundreds there are enough, and each is read and written six times. */
const length = fc.oneof(
  { weight: 19, arbitrary: fc.constantFrom(0, 0, longValue - 1, longValue, 3 * longValue) },
  { weight: 1, arbitrary: fc.constant(1024 * 1024) },
)
const text = fc
  .tuple(seed, length, fc.constantFrom('x', 'é', '😀', '"', '\0'))
  .map(([first, units, unit]) => (units === 0 ? first : `${first}${unit.repeat(units)}`.slice(0, units)))
const part: fc.Arbitrary<Part> = fc.oneof(
  text.map((said): Part => ({ text: said })),
  text.map((said): Part => ({
    text: said,
    mediaType: 'text/markdown',
    metadata: { value: '', kind: said.slice(0, 5) },
  })),
  fc.oneof(text, fc.record({ 2: text, 1: fc.jsonValue({ maxDepth: 2 }) })).map((data): Part => ({ data })),
  fc.constantFrom<Part>({ data: null }, { url: 'https://x.example/' }, { raw: 'AAAA' }, {}),
)
const artifact = fc.record({
  artifactId: fc.constantFrom('a', '\0a long value'),
  parts: fc.array(part, { maxLength: 4 }),
})
const event: fc.Arbitrary<StreamResponse> = fc.oneof(
  artifact.map((made): StreamResponse => ({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: made } })),
  fc
    .record({ artifacts: fc.array(artifact, { maxLength: 3 }), said: text })
    .map(({ artifacts, said }): StreamResponse => ({
      task: {
        id: 't',
        status: { state: 'TASK_STATE_WORKING' },
        history: [{ messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: said }] }],
        artifacts,
      },
    })),
)

describe('an event that is observed', () => {
  it('is its JSON, and each part is read whole from it, whatever is in it', () => {
    fc.assert(
      fc.property(event, (said) => {
        const seen = observe(said)
        const written = JSON.parse(String(seen.event)) as StreamResponse
        expect(JSON.stringify(written) === seen.event).toBe(true)
        const parts = seen.artifacts.flatMap(({ parts: of }) => of)
        const wires =
          'task' in said ? (said.task.artifacts ?? []) : 'artifactUpdate' in said ? [said.artifactUpdate.artifact] : []
        const told = wires.flatMap(({ parts: of }) => of)
        expect(parts).toHaveLength(told.length)
        parts.forEach((each, i) => {
          const whole = partText(each, seen.event)
          const { text: value, data } = told[i] ?? {}
          const read = JSON.parse(whole) as { kind: string; value: unknown }
          if (value !== undefined) expect(read.value === value).toBe(true)
          else if (read.kind === 'data') expect(JSON.stringify(read.value) === JSON.stringify(data)).toBe(true)
          const isLarge = whole.length >= 1024 * 1024
          expect(chainParts('', ...comparedBy(each, seen.event))).toBe(
            chainParts('', isLarge ? textDigest(whole) : whole),
          )
        })
        expect(observationOf(String(seen.event), textDigest)).toEqual(seen)
      }),
      { numRuns: sized(80, 200) },
    )
  })

  it('keeps a long value once, where that is most of the event, and else in its part', () => {
    const long = 'x'.repeat(longValue)
    const update = (parts: Part[]) =>
      observe({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts } } })
    const of = (parts: Part[]) =>
      update(parts).artifacts[0]?.parts.map((each) => (typeof each === 'string' ? 'in the part' : 'in the event'))
    expect(of([{ text: long }])).toEqual(['in the event'])
    expect(of([{ data: { long } }, { text: 'short' }])).toEqual(['in the event', 'in the part'])
    expect(of([{ text: long.slice(1) }])).toEqual(['in the part'])
    expect(of([{ text: long }, { text: long }, { text: long }])).toEqual(['in the part', 'in the part', 'in the part'])
    // An agent that says what stands for a value meanwhile gains nothing by it.
    expect(of([{ text: long }, { text: '\0a long value' }])).toEqual(['in the part', 'in the part'])
  })

  it.each(['short', '\0a long value'])('of another form than ours is as it is stored, and keeps its values', (also) => {
    const parts = [{ text: 'x'.repeat(longValue) }, { text: also }]
    const said = { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts } } }
    const stored = JSON.stringify(said, null, 1)
    const { event, artifacts } = observationOf(stored, textDigest)
    expect(event).toBe(stored)
    expect(artifacts[0]?.parts.map((part) => JSON.parse(partText(part, '')))).toMatchObject(
      parts.map(({ text: value }) => ({ value })),
    )
  })

  it.each([{ text: 'x'.repeat(longValue) }, { data: 'x'.repeat(longValue) }])(
    'has its values where rows say that they begin',
    (one) => {
      const seen = observe({
        artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [one] } },
      })
      const kept = seen.artifacts[0]?.parts[0]
      expect(
        typeof kept === 'object' &&
          String(kept.json).slice(elsewhere.length + valueStart, elsewhere.length + valueStart + 2),
      ).toBe('""')
    },
  )
})
