/** The one door to the network: what is `unsent` and what is `lost`, and every limit. Loopback only. */
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { generate } from 'selfsigned'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ResolveAll } from '../../actors/outbound/connector.ts'
import { limits } from '../../actors/outbound.ts'
import { openAuthority } from '../support/certificates.ts'
import { bounds, canary, closedPort, development, door, get, head, post, resolvesTo, web } from './listeners.ts'

const answers = (text: string) => canary((socket) => socket.write(text))

describe('unsent', () => {
  it('when the name does not resolve', async () => {
    const resolve: ResolveAll = (_name, done) => done(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
    const sent = await door(development, { resolve }).exchange(post('http://nowhere.test/'), bounds)
    expect(sent).toMatchObject({ kind: 'unsent', code: 'unresolved', message: 'Agent network request failed.' })
  })

  it('when the connection is refused', async () => {
    const sent = await door().exchange(post(`http://127.0.0.1:${await closedPort()}/`), bounds)
    expect(sent).toMatchObject({ kind: 'unsent', code: 'unreachable' })
  })

  it('when the TLS handshake fails: the peer saw a greeting, never the request', async () => {
    const listener = await canary((socket) => socket.end('not tls'))
    const sent = await door().exchange(post(`https://127.0.0.1:${listener.port}/secret-path`, 'secret'), bounds)
    expect(sent).toMatchObject({ kind: 'unsent', code: 'tls' })
    expect(listener.received).not.toContain('secret')
  })

  it('when the TLS handshake hangs until the deadline', async () => {
    const listener = await canary()
    const request = post(`https://127.0.0.1:${listener.port}/secret-path`, 'secret')
    expect(await door().exchange(request, { ...bounds, deadlineMs: 300 })).toMatchObject({
      kind: 'unsent',
      code: 'timeout',
    })
    expect(listener.connections).toBe(1)
    expect(listener.received).not.toContain('secret')
  })

  it('when the signal was aborted before', async () => {
    const listener = await canary()
    const sent = await door().exchange(post(listener.url), bounds, AbortSignal.abort())
    expect(sent).toMatchObject({ kind: 'unsent', code: 'aborted' })
    expect(listener.connections).toBe(0)
  })

  it.each(['deadline', 'signal'])(
    'when the %s ends it while it waits for a connection: nothing is written later',
    async (by) => {
      const listener = await canary((socket, received) => {
        if (received.includes('next')) socket.write(head('content-length: 2\r\n') + '{}')
      })
      let letThrough = (): void => undefined
      const resolve: ResolveAll = (_name, done) => {
        letThrough = () => done(null, [{ address: '127.0.0.1', family: 4 }])
      }
      const outbound = door(development, { resolve })
      const url = `http://slow.test:${listener.port}`
      const cancel = new AbortController()
      const first = outbound.exchange(
        post(`${url}/stopped`),
        { ...bounds, deadlineMs: by === 'deadline' ? 50 : 5_000 },
        cancel.signal,
      )
      if (by === 'signal') cancel.abort()
      expect(await first).toMatchObject({ kind: 'unsent', code: by === 'deadline' ? 'timeout' : 'aborted' })
      const next = outbound.exchange(post(`${url}/next`), bounds)
      letThrough()
      expect(await next).toMatchObject({ kind: 'answered' })
      expect(listener.received).not.toContain('stopped')
    },
  )

  it('when the request cannot be written at all', async () => {
    const listener = await canary()
    const request = { ...post(listener.url), headers: { 'x-bad': 'a\r\nb' } }
    expect(await door().exchange(request, bounds)).toMatchObject({ kind: 'unsent', code: 'invalid-request' })
    expect(listener.received).toBe('')
  })

  it('after close', async () => {
    const listener = await canary()
    const outbound = door()
    await outbound.close()
    expect(await outbound.exchange(post(listener.url), bounds)).toMatchObject({ kind: 'unsent', code: 'aborted' })
    expect(listener.connections).toBe(0)
  })
})

describe('lost', () => {
  const cases: [string, string, (socket: Socket) => void][] = [
    ['the peer hangs up before a head', 'reset', (socket) => socket.end()],
    ['the peer resets before a head', 'reset', (socket) => socket.resetAndDestroy()],
    ['the peer says nothing', 'timeout', () => undefined],
    ['the body stops and hangs', 'timeout', (socket) => socket.write(`${head('content-length: 100\r\n')}{`)],
    [
      'the body is reset',
      'reset',
      (socket) => socket.write(`${head('content-length: 9\r\n')}{`, () => socket.resetAndDestroy()),
    ],
    ['the body is cut short', 'reset', (socket) => socket.end(`${head('content-length: 9\r\n')}{`)],
    [
      'the chunked body has no end',
      'reset',
      (socket) => socket.end(`${head('transfer-encoding: chunked\r\n')}1\r\n{\r\n`),
    ],
    [
      'the chunked body is garbage',
      'malformed',
      (socket) => socket.end(`${head('transfer-encoding: chunked\r\n')}zz\r\n`),
    ],
    ['the head is garbage', 'malformed', (socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n')],
    ['the encoding is unknown', 'malformed', (socket) => socket.end(`${head('content-encoding: rot13\r\n')}{}`)],
    ['the encoding is a lie', 'malformed', (socket) => socket.end(`${head('content-encoding: gzip\r\n')}{}{}{}{}{}{}`)],
    ['the length is announced too large', 'too-large', (socket) => socket.write(head('content-length: 31457280\r\n'))],
    ['one header is endless', 'too-large', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`)],
    [
      'the headers are endless',
      'too-large',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`),
    ],
    [
      'the agent switches protocols',
      'reset',
      (socket) => socket.write('HTTP/1.1 101 OK\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    ],
    ['the hints are endless', 'malformed', (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000))],
    [
      'the invitations to go on are endless',
      'malformed',
      (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000)),
    ],
    [
      'an invitation to go on has endless headers',
      'too-large',
      (socket) => socket.write(`HTTP/1.1 100 Continue\r\n${'a: b\r\n'.repeat(20_000)}`),
    ],
    [
      'the agent only ever invites to go on',
      'timeout',
      (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(3)),
    ],
    ['the peer hangs up after inviting to go on', 'reset', (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n')],
    [
      'the trailers are endless',
      'too-large',
      (socket) => socket.write(`${head('transfer-encoding: chunked\r\n')}0\r\n${'a: b\r\n'.repeat(20_000)}`),
    ],
    ['the agent only ever hints', 'timeout', (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(3))],
  ]
  it.each(cases)('when %s: %s', async (_case, code, misbehave) => {
    const listener = await canary((socket) => misbehave(socket))
    const sent = await door().exchange(post(listener.url), { ...bounds, deadlineMs: 500 })
    expect(sent).toMatchObject({ kind: 'lost', code })
    expect(listener.received).toContain('POST / HTTP/1.1')
    expect(listener.connections).toBe(1)
  })

  it('when a drip of bytes outlives the total deadline', async () => {
    let drip: NodeJS.Timeout | undefined
    onTestFinished(() => clearInterval(drip))
    const listener = await canary((socket) => {
      socket.write(head('content-length: 100000\r\n'))
      drip = setInterval(() => socket.write(' '), 20)
    })
    const sent = await door().exchange(post(listener.url), { ...bounds, deadlineMs: 300 })
    expect(sent).toMatchObject({ kind: 'lost', code: 'timeout' })
  })

  it('when the signal aborts it in flight; the connection is cut', async () => {
    const cancel = new AbortController()
    const gone = Promise.withResolvers<void>()
    const listener = await canary((socket) => {
      socket.on('close', () => gone.resolve())
      cancel.abort()
    })
    expect(await door().exchange(post(listener.url), bounds, cancel.signal)).toMatchObject({
      kind: 'lost',
      code: 'aborted',
    })
    await gone.promise
  })

  it('when a server of TLS 1.3 wants a client certificate, and says so after the first bytes', async () => {
    const authority = await openAuthority()
    const options = {
      ...(await authority.server()),
      ca: authority.ca,
      requestCert: true,
      minVersion: 'TLSv1.3',
    } as const
    const url = new URL(await web((_request, response) => response.end('{}'), options))
    const sent = await door(development, { ca: [authority.ca] }).exchange(
      post(`https://127.0.0.1:${url.port}/`),
      bounds,
    )
    // Before 1.3 the handshake would have failed, and nothing been sent. Here nobody can say what the server read.
    expect(sent).toMatchObject({ kind: 'lost' })
  })

  it('when a kept connection turns out to be dead; a fresh one does not have that', async () => {
    const answer = `${head('content-length: 2\r\n')}{}`
    // Answers one request a connection, promises to keep it, and hangs up when the second one comes.
    const listener = await canary((socket) => {
      if (socket.listenerCount('dead') > 0) socket.destroy()
      else socket.once('dead', () => undefined).write(answer)
    })
    const outbound = door()
    const kept = { ...bounds, connection: 'kept' as const }
    expect(await outbound.exchange(get(listener.url), kept)).toMatchObject({ kind: 'answered' })
    expect(await outbound.exchange(post(listener.url), bounds)).toMatchObject({ kind: 'answered' })
    expect(await outbound.exchange(get(listener.url), kept)).toMatchObject({ kind: 'lost', code: 'reset' })
    expect(listener.connections).toBe(2)
  })
})

describe('an answer', () => {
  it('comes back whole, with any status, and asks for no encoding', async () => {
    const listener = await answers(
      `HTTP/1.1 500 Oops\r\nContent-Type: text/plain; charset=utf-8\r\nX-Two: a\r\nX-Two: b\r\ncontent-length: 2\r\n\r\nno`,
    )
    const sent = await door().exchange(post(listener.url, '{"a":1}'), bounds)
    expect(sent).toMatchObject({ kind: 'answered', status: 500, contentType: 'text/plain; charset=utf-8' })
    expect(sent.kind === 'answered' && sent.headers['x-two']).toBe('a, b')
    expect(sent.kind === 'answered' && Buffer.from(sent.body).toString()).toBe('no')
    expect(listener.received).toMatch(/accept-encoding: identity\r\n/)
    expect(listener.received).toMatch(/connection: close\r\n/)
    expect(listener.received).toMatch(/\{"a":1\}$/)
  })

  describe('after interim heads that nobody asked for [RFC 9110 §15.2]', () => {
    const body = 'HTTP/1.1 100 Continue\r\n\r\n'
    const answer = `${head(`content-length: ${body.length}\r\n`)}${body}`
    const whole = { kind: 'answered', status: 200, body: Buffer.from(body) }
    const heads: [string, string][] = [
      ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
      ['100 without a phrase', 'HTTP/1.1 100\r\n\r\n'],
      ['100 with fields', 'HTTP/1.1 100 Continue\r\nServer: x\r\nDate: HTTP/1.1 100\r\n\r\n'],
      ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
      [
        '103, then 100 twice',
        `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2)}`,
      ],
      ['an empty line, then 100', '\r\nHTTP/1.1 100 Continue\r\n\r\n'],
      ['one that no registry names', 'HTTP/1.1 199 Soon\r\n\r\n'],
    ]

    it.each(heads)('(%s) is read, and its body is not touched', async (_case, interim) => {
      const listener = await answers(interim + answer)
      expect(await door().exchange(post(listener.url), bounds)).toMatchObject(whole)
    })

    it('is read byte by byte, on each use of a kept connection', async () => {
      const listener = await canary((socket, received) => {
        if (!received.endsWith('{}')) return
        socket.setNoDelay(true)
        const bytes = [...Buffer.from(`HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n${answer}`)]
        const next = (): void => {
          const byte = bytes.shift()
          if (byte !== undefined) socket.write(Buffer.of(byte), next)
        }
        next()
      })
      const outbound = door()
      const kept = { ...bounds, connection: 'kept' as const }
      for (let i = 0; i < 3; i++) {
        expect(await outbound.exchange(post(listener.url), kept)).toMatchObject(whole)
        // undici keeps a socket only once this turn of the event loop is over.
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(listener.connections).toBe(1)
    })

    it('is read by TLS', async () => {
      const authority = await openAuthority()
      const tls = await authority.server()
      const { port } = new URL(
        await web((_request, response) => {
          response.writeContinue()
          response.end('{}')
        }, tls),
      )
      const sent = await door(development, { ca: [authority.ca] }).exchange(post(`https://127.0.0.1:${port}/`), bounds)
      expect(sent).toMatchObject({ kind: 'answered', status: 200 })
    })
  })

  it('that came while this process stood still is heard before its time is up', async () => {
    const instant = new Int32Array(new SharedArrayBuffer(4))
    const url = await web((_request, response) => {
      // The answer is on its way; then nothing runs here for longer than it was waited for.
      response.end('{}', () => void Atomics.wait(instant, 0, 0, 600))
    })
    expect(await door().exchange(post(url), { ...bounds, deadlineMs: 300 })).toMatchObject({ kind: 'answered' })
  })

  it('compressed against our wish is decoded', async () => {
    const url = await web((_q, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"ok":true}')),
    )
    const sent = await door().exchange(post(url), bounds)
    expect(sent.kind === 'answered' && Buffer.from(sent.body).toString()).toBe('{"ok":true}')
  })

  it('that is a bomb stops at the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024), { level: 9 })
    expect(bomb.length).toBeLessThan(bounds.maxBytes)
    const url = await web((_q, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const before = process.memoryUsage().rss
    expect(await door().exchange(post(url), bounds)).toMatchObject({ kind: 'lost', code: 'too-large' })
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  })

  it.each(['content-length', 'chunked'])('of 30 MiB (%s) is refused with the sentence of its kind', async (framing) => {
    const body = Buffer.alloc(30 * 1024 * 1024, 32)
    const url = await web((_request, response) => {
      if (framing === 'chunked') response.write(body.subarray(0, 1))
      response.end(framing === 'chunked' ? body.subarray(1) : body)
    })
    expect(await door().exchange(post(url), limits.answer)).toMatchObject({
      kind: 'lost',
      code: 'too-large',
      message: 'Agent response exceeds the safety limit.',
    })
    expect(await door().exchange(get(url), limits.card)).toMatchObject({
      code: 'too-large',
      message: 'Agent Card exceeds the 2 MB safety limit.',
    })
  })

  it('exactly at the limit is taken', async () => {
    const url = await web((_request, response) => response.end(Buffer.alloc(1000)))
    expect(await door().exchange(get(url), { ...bounds, maxBytes: 1000 })).toMatchObject({ kind: 'answered' })
    expect(await door().exchange(get(url), { ...bounds, maxBytes: 999 })).toMatchObject({ kind: 'lost' })
  })
})

describe('a connection', () => {
  const authority = async () => {
    const pems = await generate([{ name: 'commonName', value: 'agent.test' }], {
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'agent.test' }] }],
    })
    return { pems, url: await web((_request, response) => response.end('{}'), { key: pems.private, cert: pems.cert }) }
  }
  const resolve = resolvesTo('127.0.0.1')

  it('by TLS is verified by name and authority', async () => {
    const { pems, url } = await authority()
    const { port } = new URL(url)
    const trusting = door(development, { resolve, ca: [pems.cert] })
    expect(await trusting.exchange(post(`https://agent.test:${port}/`), bounds)).toMatchObject({ kind: 'answered' })
    expect(await trusting.exchange(post(`https://other.test:${port}/`), bounds)).toMatchObject({
      kind: 'unsent',
      code: 'tls',
    })
    const strict = door(development, { resolve })
    expect(await strict.exchange(post(`https://agent.test:${port}/`), bounds)).toMatchObject({
      kind: 'unsent',
      code: 'tls',
    })
  })

  it('falls back to the next checked address', async () => {
    const { port } = new URL(await web((_request, response) => response.end('{}')))
    const outbound = door(development, { resolve: resolvesTo('::1', '127.0.0.1') })
    expect(await outbound.exchange(post(`http://agent.test:${port}/`), bounds)).toMatchObject({ kind: 'answered' })
  })

  it("resolves by the system's resolver", async () => {
    const { port } = new URL(await web((_request, response) => response.end('{}')))
    expect(await door().exchange(post(`http://localhost:${port}/`), bounds)).toMatchObject({ kind: 'answered' })
    // A label of more than 63 characters is refused by the resolver itself, without asking anybody.
    const nowhere = `http://${'a'.repeat(64)}.test:${port}/`
    expect(await door().exchange(post(nowhere), bounds)).toMatchObject({ kind: 'unsent', code: 'unresolved' })
  })
})
