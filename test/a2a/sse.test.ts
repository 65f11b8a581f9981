/** Server-sent events in every framing, cut anywhere, within bounds. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FrameSplitter, FrameTooLarge, formatEvent, parseFrame } from '../../a2a/sse.ts'
import type { SseEvent } from '../../a2a/sse.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const limit = 64 * 1024

/** Everything a stream delivers, cut into chunks at the given places. */
function read(stream: Uint8Array, cuts: readonly number[], maxFrameBytes = limit): SseEvent[] {
  const splitter = new FrameSplitter(maxFrameBytes)
  const frames: Uint8Array[] = []
  let from = 0
  for (const cut of [...cuts, stream.length]) {
    frames.push(...splitter.push(stream.subarray(from, cut)))
    from = cut
  }
  frames.push(...splitter.end())
  return frames.flatMap((frame) => parseFrame(frame) ?? [])
}

const text = fc.string({ unit: 'binary', maxLength: 40 })
const oneLine = text.map((value) => value.replaceAll(/[\r\n\0]/g, ''))
const event = fc.record(
  {
    event: oneLine.filter((value) => value !== ''),
    // A CR in data is a line break on the wire and comes back as LF: not ours to keep.
    data: text.map((value) => value.replaceAll('\r', '').toWellFormed()).filter((value) => value !== ''),
    id: oneLine,
    retry: fc.nat(100_000),
  },
  { requiredKeys: ['event', 'data'] },
)

describe('framing', () => {
  it('gives back what was written, whatever the line ends and however it is cut', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 6 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat(2_000), { maxLength: 12 }),
        (events, lineEnd, places) => {
          const stream = bytes(events.map(formatEvent).join('').replaceAll('\n', lineEnd))
          const cuts = places.map((place) => place % (stream.length + 1)).sort((a, b) => a - b)
          const sent = events.map((e) => ({ ...e, event: e.event.toWellFormed() }))
          const ids = sent.map((e) => (e.id === undefined ? e : { ...e, id: e.id.toWellFormed() }))
          expect(read(stream, cuts)).toEqual(ids)
        },
      ),
    )
  })

  it('cuts byte by byte: comments, mixed line ends, split characters, no last blank line', () => {
    const stream = bytes(': ping\r\n\r\n\r\ndata: grün\rdata: ✓\n\ndata: {"a":\r\ndata: 1}\r\rid: 7\ndata: last')
    const everyByte = Array.from({ length: stream.length }, (_, index) => index)
    const expected = [
      { event: 'message', data: 'grün\n✓' },
      { event: 'message', data: '{"a":\n1}' },
      { event: 'message', data: 'last', id: '7' },
    ]
    expect(read(stream, everyByte)).toEqual(expected)
    expect(read(stream, [])).toEqual(expected)
  })

  it('gives frames memory of their own, so that they can be transferred', () => {
    const chunk = bytes('data: 1\n\ndata: 2\n\n')
    const [first] = new FrameSplitter(limit).push(chunk)
    expect(first?.buffer.byteLength).toBe(first?.length)
  })

  it.each([
    ['one chunk', [bytes('data: '.padEnd(200, 'x'))]],
    ['a complete frame', [bytes(`${'data: '.padEnd(200, 'x')}\n\n`)]],
    ['many chunks', Array.from({ length: 200 }, () => bytes('x'))],
  ])('refuses a frame over the limit: %s', (_, chunks) => {
    const splitter = new FrameSplitter(100)
    const push = () => chunks.flatMap((chunk) => splitter.push(chunk))
    expect(push).toThrow(FrameTooLarge)
    expect(() => splitter.push(bytes('data: 1\n\n'))).toThrow(FrameTooLarge)
    expect(splitter.end()).toEqual([])
  })

  it('stays linear for a large frame in small chunks', () => {
    const size = 8 * 1024 * 1024
    const chunk = new Uint8Array(1024).fill(120)
    const splitter = new FrameSplitter(size * 2)
    const started = performance.now()
    for (let sent = 0; sent < size; sent += chunk.length) splitter.push(chunk)
    const [frame] = splitter.push(bytes('\n\n'))
    expect(frame?.length).toBe(size + 1)
    // Quadratic copying of 8 MiB in 1 KiB steps would be 32 GiB.
    expect(performance.now() - started).toBeLessThan(3_000)
  })
})

describe('one frame', () => {
  it.each<[string, SseEvent | null]>([
    ['data: a', { event: 'message', data: 'a' }],
    ['data:a', { event: 'message', data: 'a' }],
    ['data:  a', { event: 'message', data: ' a' }],
    ['\uFEFFdata: a', { event: 'message', data: 'a' }],
    ['data: {\ndata:   "a": 1\ndata: }', { event: 'message', data: '{\n  "a": 1\n}' }],
    ['event: error\ndata: {}', { event: 'error', data: '{}' }],
    ['id: 3\nretry: 50\ndata: a', { event: 'message', data: 'a', id: '3', retry: 50 }],
    ['id: a\0b\nretry: soon\ndata: a', { event: 'message', data: 'a' }],
    ['data\ndata: a\nunknown: x\nDATA: b', { event: 'message', data: '\na' }],
    [': ping', null],
    ['', null],
    ['event: ping', null],
    ['event: ping\ndata:', null],
  ])('%j', (frame, expected) => {
    expect(parseFrame(frame)).toEqual(expected)
    expect(parseFrame(bytes(frame))).toEqual(expected)
  })

  it('reads any bytes as an event or nothing', () => {
    const readsAnyBytes = fc.property(fc.uint8Array({ maxLength: 200 }), (frame) => parseFrame(frame)?.data !== '')
    expect(fc.check(readsAnyBytes).failed).toBe(false)
  })

  it('writes no line that the caller did not mean', () => {
    expect(formatEvent({ event: 'a\ndata: x', id: 'b\r\nid: c', data: '1\r\n2\r3' })).toBe(
      'event: adata: x\nid: bid: c\ndata: 1\ndata: 2\ndata: 3\n\n',
    )
  })
})
