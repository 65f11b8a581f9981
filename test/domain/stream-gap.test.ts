/** How much of a look beside a stream may be taken: all that its stream will not tell, and nothing that it will [console-http-api.md: "so missed events heal"]. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutLook, shownParts, shownTask, StreamGaps, toldWithin } from '../../domain/stream-gap.ts'
import { textDigest } from '../../persistence/text-digest.ts'

const few = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 })
const letters = (text: string): string[] => text.split('')

describe('what is missing in the middle of what was told, or stands there twice', () => {
  it.each([
    ['one part', 'abXcd', 'abcd', 5],
    ['the beginning', 'XYab', 'ab', 4],
    ['what the stream is to tell stays with it', 'abXcdEF', 'abcd', 5],
    ['a part that says what the next one told says', 'abccd', 'abcd', 5],
    ['what was taken of a look, and told after it', 'abcdE', 'ababcd', 4],
    ['the same, of which less is told by now', 'abcdeF', 'abcdcde', 5],
  ])('is found: %s', (_name, shown, told, upTo) => {
    expect(toldWithin(letters(shown), letters(told))).toBe(upTo)
  })

  it.each([
    ['nothing is missing', 'abcd', 'abcd'],
    ['the look is ahead', 'abcdEF', 'abcd'],
    ['the look is behind', 'ab', 'abcd'],
    ['the look is behind, and what it shows of it is not all that was told since', 'abXc', 'abcd'],
    ['nothing was told', 'abcd', ''],
    ['nothing is shown', '', 'abcd'],
    ['it may stand in two places', 'abXcYc', 'abc'],
    ['the agent keeps other words than it tells', 'ABCD', 'abcd'],
  ])('is not guessed: %s', (_name, shown, told) => {
    expect(toldWithin(letters(shown), letters(told))).toBeNull()
  })

  it('is never anything else than what is missing, whatever was said', () => {
    fc.assert(
      fc.property(few, few, few, few, (known, missing, told, more) => {
        const whole = [...known, ...missing, ...told]
        const upTo = toldWithin([...whole, ...more], [...known, ...told])
        if (upTo !== null) expect([...whole, ...more].slice(0, upTo)).toEqual(whole)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is always found where every part says something else', () => {
    const length = fc.nat({ max: 30 })
    fc.assert(
      fc.property(length, length, length, length, (known, missing, told, more) => {
        const shown = Array.from({ length: known + missing + told + more + 2 }, (_, i) => String(i))
        const upTo = known + missing + told + 2
        expect(toldWithin(shown, [...shown.slice(0, known), ...shown.slice(known + missing + 1, upTo)])).toBe(upTo)
      }),
    )
  })

  it('is found though something is missing twice, by the last that was told', () => {
    const shown = Array.from({ length: 60 }, (_, i) => String(i))
    const told = shown.slice(0, 55).filter((part) => part !== '3' && part !== '9')
    expect(toldWithin(shown, told)).toBe(55)
    expect(toldWithin(shown, told.slice(0, 30))).toBeNull()
  })

  it('takes no time to speak of where everything looks alike', () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => `row ${i % 9}`)
    expect(toldWithin(['head', ...rows], rows.slice(4, 10_000))).toBeNull()
  })
})

describe('looks beside one stream', () => {
  const artifacts = (texts: Record<string, string>) =>
    new Map(Object.entries(texts).map(([id, text]) => [id, letters(text)]))
  const taken = (gaps: StreamGaps, shown: Record<string, string>, told: Record<string, string>, nowMs: number) =>
    Object.fromEntries(gaps.taken(artifacts(shown), artifacts(told), nowMs))

  it('take what nothing was told of in ten seconds, as far as it was shown then', () => {
    const gaps = new StreamGaps()
    const told = { a: 'ab', b: '' }
    expect(taken(gaps, { a: 'abc', b: 'xy' }, told, 0)).toEqual({})
    expect(taken(gaps, { a: 'abcd', b: 'xyz' }, told, 9_999)).toEqual({})
    expect(taken(gaps, { a: 'abcd', b: 'xyz' }, told, 10_000)).toEqual({ a: 3, b: 2 })
    // Once, and not of one that was begun anew meanwhile.
    expect(taken(gaps, { a: 'abcd', b: 'xyz' }, { a: 'abc', b: 'xy' }, 10_001)).toEqual({})
    expect(taken(gaps, { a: 'klmno', b: 'xyz' }, { a: 'klm', b: 'xy' }, 20_001)).toEqual({ b: 3 })
  })

  it('remember the look before, and none earlier', () => {
    const gaps = new StreamGaps()
    expect(taken(gaps, { a: 'abc' }, { a: 'ab' }, 0)).toEqual({})
    expect(taken(gaps, {}, { a: 'ab' }, 5_000)).toEqual({})
    expect(taken(gaps, { a: 'abc' }, { a: 'ab' }, 10_000)).toEqual({})
  })

  it('leave as it is what was not read', () => {
    const gaps = new StreamGaps()
    expect(taken(gaps, { a: 'abc' }, {}, 0)).toEqual({})
    expect(taken(gaps, { a: 'abc' }, {}, 10_000)).toEqual({})
  })

  it('leave to the stream what it tells', () => {
    const gaps = new StreamGaps()
    expect(taken(gaps, { a: 'abc' }, { a: 'ab' }, 0)).toEqual({})
    expect(taken(gaps, { a: 'abcd' }, { a: 'abc' }, 10_000)).toEqual({})
    expect(taken(gaps, { a: 'abcd' }, { a: 'abcd' }, 20_000)).toEqual({})
  })
})

describe('a look that is cut', () => {
  const event = JSON.stringify({
    task: {
      id: 't',
      contextId: 'c',
      status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00Z' },
      history: [{ messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'A word.' }] }],
      artifacts: [
        { artifactId: 'a', name: 'A', parts: [{ text: 'one' }, { data: { two: 2 } }, { text: 'three' }] },
        { artifactId: 'b', parts: [{ text: 'b' }] },
      ],
      metadata: { skill: 's' },
    },
  })
  const task = shownTask(event)
  if (!task) throw new Error('no task')

  it('shows so many parts of what is missing, its messages, and no state', () => {
    const cut = cutLook(task, new Map([['a', 2]]), textDigest)
    expect(cut.status).toEqual({ state: 'TASK_STATE_UNSPECIFIED', timestamp: null })
    expect(cut.messages.map(({ id }) => id)).toEqual(['m'])
    expect(cut.artifacts.map(({ artifactId, parts, complete }) => [artifactId, parts.length, complete])).toEqual([
      ['a', 2, false],
    ])
    expect(JSON.parse(String(cut.event))).toMatchObject({ task: { metadata: { skill: 's' } } })
  })

  it('is compared by its parts as they are kept', () => {
    const kept = cutLook(task, new Map([['a', 3]]), textDigest).artifacts[0]?.parts
    expect(shownParts(task).get('a')).toEqual(kept)
  })

  it('is of a task only', () => {
    expect(shownTask(JSON.stringify({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [] } }))).toBeNull()
  })
})
