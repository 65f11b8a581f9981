/** Event streams through the one door: how they end, and every way in which they break. Loopback only. */
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StreamBroken } from '../../actors/outbound.ts'
import type { Sent, Streaming } from '../../actors/outbound.ts'
import { canary, door, head, post, streamBounds, web } from './listeners.ts'

function streamingOf(sent: Sent | Streaming): Streaming {
  if (sent.kind !== 'streaming') throw new Error(`not a stream: ${JSON.stringify(sent)}`)
  return sent
}

describe('a stream', () => {
  const sse = (extra = '') => `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n${extra}\r\n`
  const read = async (stream: Streaming): Promise<string> => {
    let text = ''
    for await (const chunk of stream.chunks) text += Buffer.from(chunk).toString()
    return text
  }
  const firstOf = async (stream: Streaming): Promise<string> => {
    for await (const chunk of stream.chunks) return Buffer.from(chunk).toString()
    return ''
  }
  const broken = async (stream: Streaming): Promise<StreamBroken> =>
    read(stream).then(
      () => expect.unreachable('the stream ended well'),
      (error: unknown) => {
        if (error instanceof StreamBroken) return error
        throw error
      },
    )

  it('is read as it comes, and ends where the agent ends it', async () => {
    const url = await web((_request, response) => {
      response.writeHead(200, { 'content-type': 'Text/Event-Stream' })
      response.write('data: 1\n\n')
      setImmediate(() => response.end('data: 2\n\n'))
    })
    const stream = streamingOf(await door().openStream(post(url), streamBounds))
    expect(await read(stream)).toBe('data: 1\n\ndata: 2\n\n')
  })

  it('compressed against our wish is decoded as it comes', async () => {
    const url = await web((_q, response) =>
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
        .end(gzipSync('data: 1\n\n')),
    )
    expect(await read(streamingOf(await door().openStream(post(url), streamBounds)))).toBe('data: 1\n\n')
  })

  it.each([200, 404])('that is JSON with %s instead comes back as an answer', async (status) => {
    const url = await web((_q, response) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"error":1}'),
    )
    const sent = await door().openStream(post(url), streamBounds)
    expect(sent).toMatchObject({ kind: 'answered', status, contentType: 'application/json' })
  })

  it.each([
    ['before the head', 'reset', (socket: Socket) => socket.destroy()],
    ['no head in time', 'timeout', () => undefined],
    ['JSON that never ends', 'timeout', (socket: Socket) => socket.write(`${head('content-length: 9\r\n')}{`)],
  ])('cut %s is lost: %s', async (_case, code, misbehave) => {
    const listener = await canary((socket) => misbehave(socket))
    const sent = await door().openStream(post(listener.url), { ...streamBounds, headDeadlineMs: 200 })
    expect(sent).toMatchObject({ kind: 'lost', code })
  })

  it.each([
    [
      'the agent resets it',
      'reset',
      (socket: Socket) =>
        socket.write(`${sse('transfer-encoding: chunked\r\n')}3\r\n: a\r\n`, () => socket.resetAndDestroy()),
    ],
    [
      'the agent leaves without the last chunk',
      'reset',
      (socket: Socket) => socket.end(`${sse('transfer-encoding: chunked\r\n')}3\r\n: a\r\n`),
    ],
    ['the agent falls silent', 'timeout', (socket: Socket) => socket.write(`${sse()}: a`)],
    ['it grows over the limit', 'too-large', (socket: Socket) => socket.write(sse() + ': a'.repeat(1024 * 1024))],
  ])('breaks when %s: %s', async (_case, code, misbehave) => {
    const listener = await canary((socket) => misbehave(socket))
    const stream = streamingOf(await door().openStream(post(listener.url), { ...streamBounds, idleMs: 200 }))
    expect((await broken(stream)).code).toBe(code)
  })

  it('that drips for ever breaks at its total deadline', async () => {
    let drip: NodeJS.Timeout | undefined
    onTestFinished(() => clearInterval(drip))
    const listener = await canary((socket) => {
      socket.write(sse())
      drip = setInterval(() => socket.write(':\n'), 20)
    })
    const stream = streamingOf(await door().openStream(post(listener.url), { ...streamBounds, deadlineMs: 300 }))
    expect((await broken(stream)).code).toBe('timeout')
  })

  it('closed, aborted or left by its reader hangs up', async () => {
    for (const end of ['close', 'abort', 'leave', 'door']) {
      const gone = Promise.withResolvers<void>()
      const listener = await canary((socket) => {
        socket.on('close', () => gone.resolve())
        socket.write(`${sse()}data: 1\n\n`)
      })
      const cancel = new AbortController()
      const outbound = door()
      const stream = streamingOf(await outbound.openStream(post(listener.url), streamBounds, cancel.signal))
      const ended = end === 'leave' ? firstOf(stream) : broken(stream).then(({ code }) => code)
      if (end === 'close') await stream.close()
      if (end === 'abort') cancel.abort()
      if (end === 'door') await outbound.close()
      expect(await ended).toBe(end === 'leave' ? 'data: 1\n\n' : 'aborted')
      await gone.promise
    }
  })

  it('waits for its reader: what nobody reads is not received without bound', async () => {
    let written = 0
    const gone = Promise.withResolvers<void>()
    const listener = await canary((socket) => {
      socket.write(sse())
      const more = (): void => {
        while (written < 200 * 1024 * 1024 && socket.write(Buffer.alloc(64 * 1024, 58))) written += 64 * 1024
      }
      socket.on('drain', more)
      socket.on('close', () => gone.resolve())
      more()
    })
    const unread = { ...streamBounds, maxBytes: 1024 * 1024 * 1024, deadlineMs: 500 }
    streamingOf(await door().openStream(post(listener.url), unread))
    // Until the deadline the agent could write; what it got rid of is the kernel's buffers and ours.
    await gone.promise
    expect(written).toBeLessThan(50 * 1024 * 1024)
  })
})
