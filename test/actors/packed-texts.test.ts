/** Texts on their way from a parsing thread: whatever is packed comes out as it went in. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { packed, unpacked } from '../../actors/threads/packed-texts.ts'
import type { ParsedEvent } from '../../actors/threads/messages.ts'
import type { Observation } from '../../domain/observation.ts'

const KiB = 1024

const observation = (
  event: string,
  messages: readonly string[],
  artifacts: readonly (readonly string[])[],
): Observation => ({
  kind: 'task',
  taskId: 't',
  contextId: 'c',
  event,
  status: { state: 'working', timestamp: null },
  messages: messages.map((parts, n) => ({ id: `m${n}`, role: 'agent', parts, timestamp: null, fromStatus: false })),
  artifacts: artifacts.map((parts, n) => ({
    artifactId: `a${n}`,
    name: null,
    description: null,
    extensions: [],
    parts,
    append: false,
    complete: true,
  })),
  stored: [],
})
const seen = (of: Observation): ParsedEvent => ({ kind: 'observation', observation: of, blobs: [] })
const across = (events: readonly ParsedEvent[]): ParsedEvent[] => unpacked(structuredClone(packed(events)))

/** Around both limits, and empty; letters that take one byte, two, and half a pair. */
const text = fc
  .tuple(
    fc.constantFrom('a', 'é', '信', '\ud83d'),
    fc.oneof(
      fc.constant(0),
      fc.integer({ min: KiB - 2, max: KiB + 2 }),
      fc.integer({ min: 64 * KiB - 2, max: 64 * KiB + 2 }),
      fc.integer({ min: 128 * KiB - 2, max: 128 * KiB + 2 }),
      fc.nat(8 * KiB),
    ),
  )
  .map(([letter, length]) => letter.repeat(length))
const event = fc.oneof(
  fc
    .tuple(text, fc.array(text, { maxLength: 3 }), fc.array(fc.array(text, { maxLength: 3 }), { maxLength: 3 }))
    .map((made) => seen(observation(...made))),
  fc.constant<ParsedEvent>({ kind: 'invalid', message: 'The event could not be read.' }),
)

describe('texts of a batch', () => {
  it('come out of a thread as they went in', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 5 }), (events) => {
        expect(across(events)).toEqual(events)
      }),
      { numRuns: 60 },
    )
  })

  it('of a middling length travel as one, others in their events', () => {
    const [short, middling, long] = ['s'.repeat(KiB - 1), 'é'.repeat(75 * KiB), 'l'.repeat(128 * KiB)]
    const { events, packs, places } = packed([seen(observation(middling, [short], [[long, middling]]))])
    expect(packs).toEqual({ narrow: middling + middling, wide: '' })
    expect(places).toEqual([['narrow', 75 * KiB], null, null, ['narrow', 75 * KiB]])
    expect(events).toEqual([seen(observation('', [short], [[long, '']]))])
  })

  it('of two bytes a character travel apart, and are long at half the length', () => {
    const [narrow, wide, long] = ['n'.repeat(2 * KiB), '—'.repeat(2 * KiB), '—'.repeat(64 * KiB)]
    const { packs, places } = packed([seen(observation(wide, [narrow], [[long]]))])
    expect(packs).toEqual({ narrow, wide })
    expect(places).toEqual([['wide', 2 * KiB], ['narrow', 2 * KiB], null])
  })
})
