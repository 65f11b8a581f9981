/** The codec against an agent that frames its streams in every way seen in the wild, and answers as broken agents do. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Endpoint } from '../../a2a/operations.ts'
import { deepJson, garbage, wrongTypes } from '../support/peers/raw-faults.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import type { RawPeer } from '../support/peers/raw.ts'
import { call, refusalOf, say, stream, valueOf } from './calls.ts'

const framings = ['lf', 'crlf', 'cr', 'pretty', 'noted', 'sliced', 'unterminated', 'bom'] as const

describe.each([
  { binding: 'JSONRPC', path: '/a2a/jsonrpc' },
  { binding: 'HTTP+JSON', path: '/a2a/rest' },
] as const)('a raw agent over $binding', ({ binding, path }) => {
  let peer: RawPeer
  let endpoint: Endpoint
  beforeAll(async () => {
    peer = await startRawPeer({ binding })
    endpoint = { url: `${peer.origin}${path}`, binding, version: '1.0' }
  })
  afterAll(() => peer.close())

  it.each(framings)('frames its events as %s', async (framing) => {
    peer.script.fault('SendStreamingMessage', { fault: 'framing', framing })
    const texts: (string | undefined)[] = []
    for await (const answer of stream(endpoint, 'stream', say('stream 12'))) {
      const event = valueOf(answer)
      if ('artifactUpdate' in event) texts.push(event.artifactUpdate.artifact.parts[0]?.text)
    }
    expect(texts).toEqual(Array.from({ length: 12 }, (_, index) => `chunk ${index + 1} `))
  })

  it.each([
    ['half a body', garbage],
    ['wrong types', wrongTypes],
    ['100,000 levels', deepJson(100_000)],
  ])('answers with %s, which proves nothing', async (_, fault) => {
    peer.script.fault('SendMessage', fault)
    expect(await call(endpoint, 'send', say('hello'))).toMatchObject({ kind: 'invalid' })
  })

  it.each([
    ['an event that is no JSON', 'data: {"half\n\n'],
    ['an event of 100,000 levels', `data: ${'['.repeat(100_000)}${']'.repeat(100_000)}\n\n`],
  ])('sends %s, and the rest is read', async (_, frame) => {
    peer.script.fault('SendStreamingMessage', { fault: 'inject', beforeEvent: 1, frame })
    const kinds: string[] = []
    for await (const answer of stream(endpoint, 'stream', say('hello'))) kinds.push(answer.kind)
    expect(kinds[1]).toBe('invalid')
    expect(kinds.filter((kind) => kind !== 'ok')).toHaveLength(1)
    expect(kinds.length).toBeGreaterThan(2)
  })

  it('refuses in its words', async () => {
    expect(refusalOf(await call(endpoint, 'get', { id: 'nobody' })).message).toBe('Task not found')
  })
})
