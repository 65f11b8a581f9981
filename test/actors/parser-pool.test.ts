/** The parsing pool: order over threads, what a poisoned frame costs, and the end of the pool. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import fc from 'fast-check'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { decodeText } from '../../domain/json-text.ts'
import type { Endpoint } from '../../a2a/operations.ts'
import type { ParsedEvent } from '../../actors/threads/messages.ts'
import { ParserPool, ParserPoolClosed, placeFor, runsOf, type ParserOptions } from '../../actors/threads/pool.ts'
import type { StreamParser } from '../../actors/threads/pool.ts'
import { partText } from '../support/observing.ts'

const endpoint: Endpoint = { url: 'http://127.0.0.1/', binding: 'JSONRPC', version: '1.0' }
const format = { endpoint, requestId: 'r1' }
const KiB = 1024
const MiB = 1024 * KiB

/** Threads take a moment to start, so most tests share these two. */
const shared = new ParserPool({ threads: 2 })
afterAll(() => shared.close())
function opened(options: ParserOptions): ParserPool {
  const pool = new ParserPool(options)
  onTestFinished(() => pool.close())
  return pool
}
const stream = (): StreamParser => shared.openStream(format)

const envelope = (result: unknown): string => JSON.stringify({ jsonrpc: '2.0', id: 'r1', result })
const artifact = (artifactId: string, part: unknown): unknown => ({
  artifactUpdate: { taskId: 't1', contextId: 'c1', artifact: { artifactId, parts: [part] }, append: false },
})
const frame = (json: string): Buffer => Buffer.from(`data: ${json}\n\n`)
const textFrame = (id: string, size: number): Buffer => frame(envelope(artifact(id, { text: 'x'.repeat(size) })))
const rawFrame = (id: string, raw: string): Buffer => frame(envelope(artifact(id, { raw })))
const withData = (data: string): Buffer =>
  frame(
    `{"jsonrpc":"2.0","id":"r1","result":{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"big","parts":[{"data":${data}}]}}}}`,
  )

const idsOf = (events: ParsedEvent[]): string[] =>
  events.map((event) =>
    event.kind === 'observation' ? (event.observation.artifacts[0]?.artifactId ?? event.observation.kind) : event.kind,
  )
const one = (events: ParsedEvent[]): ParsedEvent => {
  const [event] = events
  if (event === undefined || events.length > 1) throw new Error(`not one event: ${JSON.stringify(idsOf(events))}`)
  return event
}

/** Of each thread of this process, how nice it is. [proc(5): the 19th field of stat] */
const nicenesses = (): readonly number[] =>
  readdirSync('/proc/self/task').map((id) => {
    const text = readFileSync(`/proc/self/task/${id}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])
  })

it.runIf(process.platform === 'linux')('threads let the event loop go first', async () => {
  await stream()
    .push(textFrame('large', 300 * KiB))
    .parse()
  // Of the event loop's own thread; ids of threads begin anew where they ran out, so the lowest need not be its.
  const own = getPriority()
  expect(nicenesses().filter((niceness) => niceness === own + 5).length).toBeGreaterThanOrEqual(1)
})

describe('frames', () => {
  it('weigh nothing until they are whole, however they are cut', async () => {
    const bytes = Buffer.concat([textFrame('a', 100 * KiB), textFrame('b', 3 * KiB)])
    const parser = stream()
    const first = textFrame('a', 100 * KiB).length
    expect(parser.push(bytes.subarray(0, first - 1)).bytes).toBe(0)
    // A frame's blank line is no part of it.
    const whole = parser.push(bytes.subarray(first - 1, first + 100))
    expect(whole.bytes).toBe(first - 1)
    expect(idsOf(await whole.parse())).toEqual(['a'])
    const rest = parser.push(bytes.subarray(first + 100, -2))
    expect([rest.bytes, idsOf(await rest.parse())]).toEqual([0, []])
    const last = parser.end()
    expect(last.bytes).toBe(bytes.length - first - 2)
    expect(idsOf(await last.parse())).toEqual(['b'])
  })

  it('come out in order, whatever their sizes, chunks and neighbours', async () => {
    const size = fc.oneof(
      fc.nat(200),
      fc.integer({ min: 3 * KiB, max: 5 * KiB }),
      fc.integer({ min: 20 * KiB, max: 300 * KiB }),
    )
    const stream = fc.record({
      sizes: fc.array(size, { minLength: 1, maxLength: 20 }),
      cuts: fc.array(fc.nat(), { maxLength: 12 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(stream, { minLength: 1, maxLength: 4 }), async (streams) => {
        await Promise.all(
          streams.map(async ({ sizes, cuts }) => {
            const bytes = Buffer.concat(sizes.map((length, index) => textFrame(String(index), length)))
            const marks = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b), bytes.length]
            const parser = shared.openStream(format)
            // Without waiting for one another: order is the parser's promise, not the caller's.
            const turns = marks.slice(1).map((mark, index) => parser.push(bytes.subarray(marks[index], mark)).parse())
            const events = (await Promise.all([...turns, parser.end().parse()])).flat()
            expect(idsOf(events)).toEqual(sizes.map((_, index) => String(index)))
          }),
        )
      }),
      { numRuns: 40 },
    )
    expect(shared.stats).toMatchObject({ underWay: 0, queued: 0, bytesUnderWay: 0, tasksLost: 0 })
    expect(shared.stats.framesHere).toBeGreaterThan(0)
    expect(shared.stats.framesInThreads).toBeGreaterThan(0)
  })

  it('bring huge texts as bytes of their own, whose length is that of the text', async () => {
    const text = 'é😀"\n'.repeat(300_000)
    const said = { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text }] } } }
    const frame = Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', id: format.requestId, result: said })}\n\n`)
    const event = one(await stream().push(frame).parse())
    if (event.kind !== 'observation') throw new Error(event.kind)
    const { event: whole, artifacts } = event.observation
    expect(typeof whole).toBe('object')
    expect(JSON.parse(decodeText(whole))).toEqual(said)
    expect(whole.length).toBe(decodeText(whole).length)
    // What is most of the event is not brought twice.
    const part = artifacts[0]?.parts[0] ?? ''
    expect(JSON.stringify(part).length).toBeLessThan(300)
    expect(JSON.parse(partText(part, whole))).toMatchObject({ kind: 'text', value: text })
  })

  it('are parsed here when small and few, in a thread otherwise', () => {
    const bytes = (size: number): Uint8Array => new Uint8Array(size)
    expect(placeFor([])).toBe('here')
    expect(placeFor([bytes(4 * KiB - 1)])).toBe('here')
    expect(placeFor([bytes(4 * KiB)])).toBe('thread')
    expect(placeFor([bytes(10), bytes(4 * KiB)])).toBe('thread')
    expect(placeFor(Array.from({ length: 63 }, () => bytes(KiB)))).toBe('here')
    expect(placeFor(Array.from({ length: 64 }, () => bytes(KiB)))).toBe('thread')
  })

  it('are cut into bounded runs without losing one', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(5000), fc.nat(700_000)), { maxLength: 200 }), (sizes) => {
        const frames = sizes.map((size) => new Uint8Array(size))
        const runs = runsOf(frames)
        expect(runs.flat().every((each, index) => each === frames[index])).toBe(true)
        expect(runs.flat()).toHaveLength(frames.length)
        for (const run of runs) {
          expect(run.length).toBeLessThanOrEqual(64)
          const total = run.reduce((sum, { length }) => sum + length, 0)
          expect(run.length === 1 || total <= MiB).toBe(true)
          expect(new Set(run.map(({ length }) => length < 4 * KiB)).size).toBe(1)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('do not start a thread while all are small', async () => {
    const pool = opened({ threads: 2 })
    expect(idsOf(await pool.openStream(format).push(textFrame('a', 100)).parse())).toEqual(['a'])
    expect(pool.stats).toMatchObject({ framesHere: 1, framesInThreads: 0 })
  })

  it('that only keep the connection alive give nothing; one cut off at the end is read', async () => {
    const parser = stream()
    expect(await parser.push(Buffer.from(': ping\n\n\n\nretry: 100\n\n')).parse()).toEqual([])
    const cut = textFrame('last', 10)
    expect(await parser.push(cut.subarray(0, -2)).parse()).toEqual([])
    expect(idsOf(await parser.end().parse())).toEqual(['last'])
  })
})

describe('bytes', () => {
  it.each([10, 100 * KiB, 16 * MiB])('of %i are kept apart under their digest', async (size) => {
    const content = Buffer.alloc(size, 'abc')
    const event = one(
      await stream()
        .push(rawFrame('a', content.toString('base64')))
        .parse(),
    )
    if (event.kind !== 'observation') throw new Error(event.kind)
    const [blob] = event.blobs
    const [artifactSeen] = event.observation.artifacts
    const digest = createHash('sha256').update(content).digest('hex')
    expect(event.blobs.map((blob) => blob.digest)).toEqual([digest])
    expect(content.equals(blob?.bytes ?? Buffer.alloc(0))).toBe(true)
    expect(event.observation.stored.map((bytes) => bytes.digest)).toEqual([digest])
    expect(JSON.parse(partText(artifactSeen?.parts[0] ?? '', ''))).toMatchObject({
      kind: 'raw',
      value: { digest, size, href: `/api/artifacts/${digest}` },
    })
  })

  it('over the limit of a part are left out, and the words of the specification stand in their place', async () => {
    const content = Buffer.alloc(16 * MiB + 1)
    const parser = stream()
    const event = one(await parser.push(rawFrame('a', content.toString('base64'))).parse())
    if (event.kind !== 'observation') throw new Error(event.kind)
    const [seen] = event.observation.artifacts
    expect(event.blobs).toEqual([])
    expect(event.observation.stored).toEqual([])
    expect(JSON.parse(partText(seen?.parts[0] ?? '', ''))).toMatchObject({
      kind: 'unknown',
      value: 'Artifact exceeds the 16 MB persistence limit.',
    })
    expect(event.observation.event.length).toBeLessThan(1_000)
    expect(idsOf(await parser.push(textFrame('next', 10)).parse())).toEqual(['next'])
  })
})

describe('a poisoned frame', () => {
  const deep = (levels: number): string =>
    `{"jsonrpc":"2.0","id":"r1","result":{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"data":${'['.repeat(levels)}${']'.repeat(levels)}}]}}}}`
  it.each([
    ['is not JSON', '{"jsonrpc"'],
    ['is no event', envelope({ nonsense: true })],
    ['answers another request', JSON.stringify({ jsonrpc: '2.0', id: 'r2', result: {} })],
    ['is nested 1,000,000 levels', deep(1_000_000)],
    ['is large and not JSON', `{"a":"${'x'.repeat(100 * KiB)}`],
    ['is large and no event', envelope({ nonsense: 'x'.repeat(100 * KiB) })],
  ])('that %s costs itself, not its stream', async (_case, json) => {
    const parser = stream()
    const events = await parser
      .push(Buffer.concat([textFrame('before', 5_000), frame(json), textFrame('after', 5_000)]))
      .parse()
    expect(idsOf(events)).toEqual(['before', 'invalid', 'after'])
    expect(shared.stats.tasksLost).toBe(0)
  })

  it.each(['ping', 'Heartbeat', 'keepalive', 'keep-alive'])(
    'is none that only keeps the line open: %s',
    async (name) => {
      const alive = Buffer.from(`event: ${name}\ndata: {}\n\n`)
      const events = await stream()
        .push(Buffer.concat([textFrame('before', 10), alive, textFrame('after', 10)]))
        .parse()
      expect(idsOf(events)).toEqual(['before', 'after'])
      // Of another name it may be what the agent said.
      const [other] = await stream().push(Buffer.from('event: progress\ndata: {}\n\n')).parse()
      expect(other?.kind).toBe('invalid')
    },
  )

  it.each([
    ['is nested 1,000 levels', deep(1_000), 'data is nested deeper than 256 levels'],
    ['is not base64', envelope(artifact('a', { raw: '!!!!' })), 'raw must be base64'],
    ['has two contents', envelope(artifact('a', { text: 'x', url: 'https://x' })), 'must have one content'],
  ])('of which a part %s costs that part, and says so in its place', async (_case, json, fault) => {
    const event = one(await stream().push(frame(json)).parse())
    if (event.kind !== 'observation') throw new Error(event.kind)
    expect(event.blobs).toEqual([])
    const [part = ''] = event.observation.artifacts[0]?.parts ?? []
    const shown = JSON.parse(partText(part, '')) as { kind: string; value: string }
    expect(shown.kind).toBe('unknown')
    // Wherever it is told, it is the same part.
    expect(shown.value).toMatch(/^This part cannot be read: part\b.*\.$/)
    expect(shown.value).toContain(fault)
  })

  it.each([
    ['values', withData(`[${'[],'.repeat(6 * MiB)}1]`)],
    ['values behind a string full of quotes', withData(`["${'\\"'.repeat(KiB)}\\\\",${'{},'.repeat(2 * MiB)}1]`)],
    ['lines', Buffer.from(`${':\n'.repeat(6 * MiB)}data: 1\n\n`)],
    ['returns', Buffer.from(`data: 1\n${':\r'.repeat(6 * MiB)}\n\n`)],
  ])('of too many %s is refused before it swells', async (_case, bytes) => {
    const parser = stream()
    expect(one(await parser.push(bytes).parse())).toEqual({
      kind: 'invalid',
      message: 'Agent response exceeds the safety limit.',
      oversized: true,
    })
    expect(idsOf(await parser.push(textFrame('next', 50 * KiB)).parse())).toEqual(['next'])
    expect(shared.stats.tasksLost).toBe(0)
  })

  it('is not mistaken: structure inside of strings does not count', async () => {
    const text = '[{,'.repeat(MiB) + '\\" '.repeat(KiB)
    const events = await stream()
      .push(withData(JSON.stringify({ text })))
      .parse()
    expect(idsOf(events)).toEqual(['big'])
  })

  // With one thread whoever comes after it waits as long as it may take, and then for the thread that comes next.
  it.each([1, 2])('that holds one of %i threads for too long costs its stream one batch', async (threads) => {
    const pool = opened({ threads, taskDeadlineMs: 700 })
    const keys = Array.from({ length: 990_000 }, (_, index) => `"${index.toString(36)}":0`)
    const victim = pool.openStream(format)
    const bystanders = Array.from({ length: 4 }, () => pool.openStream(format))
    const follow = async (parser: StreamParser): Promise<string[]> => {
      const ids: string[] = []
      for (const id of ['1', '2', '3', '4']) ids.push(...idsOf(await parser.push(textFrame(id, 50 * KiB)).parse()))
      return ids
    }
    const [poisoned, ...others] = await Promise.all([
      victim.push(withData(`{${keys.join(',')}}`)).parse(),
      ...bystanders.map(follow),
    ])
    expect(one(poisoned)).toMatchObject({ kind: 'invalid', message: 'The event could not be read.' })
    for (const ids of others) expect(ids).toEqual(['1', '2', '3', '4'])
    expect(pool.stats.tasksLost).toBe(1)
    expect(idsOf(await victim.push(textFrame('again', 50 * KiB)).parse())).toEqual(['again'])
  })

  it('that nobody wants any more is left at once, with what stands behind it, and is no loss', async () => {
    const pool = opened({ threads: 1 })
    const keys = Array.from({ length: 990_000 }, (_, index) => `"${index.toString(36)}":0`)
    const stop = new AbortController()
    const poisoned = withData(`{${keys.join(',')}}`)
    const given = pool.openStream(format).push(poisoned).parse(stop.signal)
    const behind = pool.openStream(format).push(textFrame('behind', 50 * KiB))
    const other = pool
      .openStream(format)
      .push(textFrame('other', 50 * KiB))
      .parse()
    const reason = new Error('given back')
    stop.abort(reason)
    await expect(given).rejects.toBe(reason)
    await expect(behind.parse(stop.signal)).rejects.toBe(reason)
    expect(idsOf(await other)).toEqual(['other'])
    expect(pool.stats).toMatchObject({ underWay: 0, bytesUnderWay: 0, tasksLost: 0 })
  })

  it('larger than any limit ends its stream only', async () => {
    const parser = stream()
    const chunk = Buffer.alloc(MiB, 120)
    const events: ParsedEvent[] = []
    for (let sent = 0; sent < 27; sent += 1) events.push(...(await parser.push(chunk).parse()))
    const message = 'Agent response exceeds the safety limit.'
    expect(one(events)).toEqual({ kind: 'invalid', message, oversized: true })
    expect(await parser.push(textFrame('after', 10)).parse()).toEqual([])
    expect(await parser.end().parse()).toEqual([])
    expect(idsOf(await stream().push(textFrame('other', 10)).parse())).toEqual(['other'])
  })
})

describe('a refusal', () => {
  it('is told from garbage', async () => {
    const error = { code: -32001, message: 'Task not found' }
    const parser = stream()
    const events = await parser.push(frame(JSON.stringify({ jsonrpc: '2.0', id: 'r1', error }))).parse()
    expect(one(events)).toMatchObject({ kind: 'refused', error: { code: -32001, reason: 'TASK_NOT_FOUND' } })
  })
})

describe('a reply', () => {
  const task = (size: number): unknown => ({
    id: 't1',
    contextId: 'c1',
    status: { state: 'TASK_STATE_COMPLETED' },
    artifacts: [{ artifactId: 'a', parts: [{ text: 'x'.repeat(size) }] }],
  })
  it.each([
    ['send', 10, 'here'],
    ['send', 24 * MiB, 'thread'],
    ['get', 10, 'here'],
    ['get', 100 * KiB, 'thread'],
    ['cancel', 100 * KiB, 'thread'],
  ] as const)('to %s of %i bytes is read (%s)', async (operation, size, place) => {
    const before = shared.stats.framesInThreads
    const result = operation === 'send' ? { task: task(size) } : task(size)
    const body = Buffer.from(envelope(result))
    const event = await shared.parseReply(
      endpoint,
      operation,
      { status: 200, contentType: 'application/json', body },
      'r1',
    )
    expect(event).toMatchObject({ kind: 'observation', observation: { kind: 'task', taskId: 't1' } })
    expect(shared.stats.framesInThreads - before).toBe(place === 'here' ? 0 : 1)
  })

  it('that is a page of HTML proves nothing', async () => {
    const body = Buffer.from('<html>')
    const event = await shared.parseReply(endpoint, 'send', { status: 502, contentType: 'text/html', body }, 'r1')
    expect(event).toMatchObject({ kind: 'invalid', message: 'The agent answered HTTP 502.' })
  })
})

describe('close', () => {
  it('lets work in flight finish, and takes no more', async () => {
    // Patience: threads start first, and on a busy machine that takes longer than the moment that a process has.
    const pool = opened({ threads: 2, closeDeadlineMs: 30_000 })
    const parsers = Array.from({ length: 6 }, () => pool.openStream(format))
    const underWay = parsers.map((parser) => parser.push(textFrame('a', 500 * KiB)).parse())
    // One turn of the queue: the work has been given to the threads.
    await Promise.resolve()
    await Promise.resolve()
    expect(pool.stats).toMatchObject({ underWay: 6, bytesUnderWay: expect.toSatisfy((n: number) => n > 6 * 500 * KiB) })
    await pool.close()
    expect((await Promise.all(underWay)).flatMap(idsOf)).toEqual(Array.from({ length: 6 }, () => 'a'))
    await expect(pool.openStream(format).push(textFrame('b', 10)).parse()).rejects.toBeInstanceOf(ParserPoolClosed)
    await pool.close()
  })
})
