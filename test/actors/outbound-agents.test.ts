/** Door, codec and pool together against whole agents: the SDK's servers, every framing, and the faults of a raw one. */
import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { parseCard, selectInterface } from '../../a2a/card.ts'
import { encodeRequest } from '../../a2a/client.ts'
import type { Endpoint } from '../../a2a/operations.ts'
import { limits, Outbound, StreamBroken } from '../../actors/outbound.ts'
import type { Sent } from '../../actors/outbound.ts'
import type { ParsedEvent } from '../../actors/threads/messages.ts'
import { ParserPool } from '../../actors/threads/pool.ts'
import { partText } from '../support/observing.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import type { RawFault, RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { development, get } from './listeners.ts'

const outbound = new Outbound(development)
const pool = new ParserPool({ threads: 2 })
afterAll(async () => {
  await outbound.close()
  await pool.close()
})

async function endpointOf(peer: Peer): Promise<Endpoint> {
  const sent = await outbound.exchange(get(peer.cardUrl), limits.card)
  if (sent.kind !== 'answered') throw new Error(sent.message)
  const read = parseCard(JSON.parse(Buffer.from(sent.body).toString()))
  if ('fault' in read) throw new Error(read.fault)
  const selected = selectInterface(read.card)
  if ('refused' in selected) throw new Error(selected.refused)
  return selected.endpoint
}

const said = (text: string) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER' as const, parts: [{ text }] },
})

async function send(endpoint: Endpoint, text: string, bounds = limits.answer as Parameters<Outbound['exchange']>[1]) {
  const request = encodeRequest(endpoint, 'send', said(text), { requestId: randomUUID() })
  const sent = await outbound.exchange(request, bounds)
  if (sent.kind !== 'answered') return sent
  return pool.parseReply(endpoint, 'send', sent, request.requestId)
}

/** The events of one streamed turn, and how the stream ended. */
async function stream(endpoint: Endpoint, text: string, bounds = { ...limits.stream, idleMs: 1_000 }) {
  const request = encodeRequest(endpoint, 'stream', said(text), { requestId: randomUUID() })
  const opened = await outbound.openStream(request, bounds)
  if (opened.kind !== 'streaming') return { events: [], end: opened.kind === 'answered' ? 'answered' : opened.code }
  const parser = pool.openStream({ endpoint, requestId: request.requestId })
  const events: ParsedEvent[] = []
  try {
    for await (const chunk of opened.chunks) events.push(...(await parser.push(chunk).parse()))
    events.push(...(await parser.end().parse()))
    return { events, end: 'whole' }
  } catch (error) {
    if (error instanceof StreamBroken) return { events, end: error.code }
    throw error
  }
}

const textsOf = (events: ParsedEvent[]): string[] =>
  events
    .flatMap((event) => (event.kind === 'observation' ? [event.observation] : []))
    .flatMap(({ event, artifacts }) => artifacts.flatMap(({ parts }) => parts.map((part) => partText(part, event))))
    .map((part) => String((JSON.parse(part) as { value: unknown }).value))
const stateOf = (event: ParsedEvent | undefined): string | undefined =>
  event?.kind === 'observation' ? event.observation.status?.state : event?.kind

describe.each([
  ['1.0', 'JSONRPC'],
  ['1.0', 'HTTP+JSON'],
  ['0.3', 'JSONRPC'],
  ['0.3', 'HTTP+JSON'],
] as const)("the SDK's agent of A2A %s over %s", (version, binding) => {
  it('answers a send and streams in order', async () => {
    const peer = await startSdkPeer({ version, binding })
    onTestFinished(() => peer.close())
    const endpoint = await endpointOf(peer)
    expect(await send(endpoint, 'hello')).toMatchObject({ kind: 'observation' })
    const { events, end } = await stream(endpoint, 'stream 300')
    expect(end).toBe('whole')
    expect(textsOf(events)).toEqual(Array.from({ length: 300 }, (_, index) => `chunk ${index + 1} `))
    expect(stateOf(events.at(-1))).toBe('TASK_STATE_COMPLETED')
    const files = await stream(endpoint, 'files')
    const blobs = files.events.flatMap((event) => (event.kind === 'observation' ? event.blobs : []))
    expect(blobs.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(['a,b\n1,2\n'])
  })
})

describe('a raw agent', () => {
  async function faulty(operation: string, ...faults: RawFault[]): Promise<{ peer: RawPeer; endpoint: Endpoint }> {
    const peer = await startRawPeer()
    onTestFinished(() => peer.close())
    const endpoint = await endpointOf(peer)
    for (const fault of faults) peer.script.fault(operation, fault)
    return { peer, endpoint }
  }

  it.each(['lf', 'crlf', 'cr', 'pretty', 'noted', 'sliced', 'unterminated', 'bom'] as const)(
    'that frames its events as %s is read whole',
    async (framing) => {
      const { endpoint } = await faulty('SendStreamingMessage', { fault: 'framing', framing })
      const { events, end } = await stream(endpoint, 'stream 20')
      expect(end).toBe('whole')
      expect(events.filter(({ kind }) => kind !== 'observation')).toEqual([])
      expect(textsOf(events)).toHaveLength(20)
      expect(stateOf(events.at(-1))).toBe('TASK_STATE_COMPLETED')
    },
  )

  it.each([
    ['reset', 'reset'],
    ['half-close', 'reset'],
    ['hang', 'timeout'],
    ['end', 'whole'],
  ] as const)('that cuts its stream (%s) leaves what came before: %s', async (how, end) => {
    const { endpoint } = await faulty('SendStreamingMessage', { fault: 'cut', afterEvents: 5, how })
    const ended = await stream(endpoint, 'stream 20')
    expect(ended.end).toBe(end)
    expect(ended.events.every(({ kind }) => kind === 'observation')).toBe(true)
  })

  it('that says garbage in its stream loses that event only', async () => {
    const frame = 'data: {"half\n\n'
    const { endpoint } = await faulty('SendStreamingMessage', { fault: 'inject', beforeEvent: 3, frame })
    const { events, end } = await stream(endpoint, 'stream 20')
    expect(end).toBe('whole')
    expect(events.filter(({ kind }) => kind === 'invalid')).toHaveLength(1)
    expect(textsOf(events)).toHaveLength(20)
  })

  it.each([
    [20 * 1024 * 1024, 'whole'],
    [30 * 1024 * 1024, 'too-large'],
  ])('that streams an event of %i bytes: %s', async (bytes, end) => {
    const { endpoint } = await faulty('SendStreamingMessage', { fault: 'huge', bytes })
    expect((await stream(endpoint, 'stream 2', { ...limits.stream, idleMs: 10_000 })).end).toBe(end)
  })

  it.each([
    [{ fault: 'hang-before-head' }, 'timeout'],
    [{ fault: 'hang-after-head' }, 'timeout'],
    [{ fault: 'trickle', everyMs: 20 }, 'timeout'],
    [{ fault: 'reset', performed: true }, 'reset'],
    [{ fault: 'reset', performed: false }, 'reset'],
    [{ fault: 'gzip-bomb', bytes: 200 * 1024 * 1024 }, 'too-large'],
    [{ fault: 'flood', bytes: 60 * 1024 * 1024 }, 'too-large'],
    [{ fault: 'endless-headers', bytes: 1024 * 1024 }, 'too-large'],
    [{ fault: 'redirect', location: 'http://127.0.0.1:9/' }, 'redirect'],
  ] as [RawFault, string][])('that fails a send with %o: lost, sent once', async (fault, code) => {
    const { peer, endpoint } = await faulty('SendMessage', fault)
    const sent = (await send(endpoint, 'hello', {
      ...limits.answer,
      deadlineMs: code === 'timeout' ? 500 : 20_000,
    })) as Sent
    expect(sent).toMatchObject({ kind: 'lost', code })
    expect(peer.receipts).toHaveLength(1)
  })
})
