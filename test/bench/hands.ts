/**
 * The hands that send: HTTP/1.1 over a fixed number of kept connections, one request at a time each, the least that is HTTP. They
 * share two processors with what is measured, and the peers' jobs are enqueued without any; a general client (undici) took 0.11 ms
 * of a processor a request. Not for anything but our own server on loopback: no chunked bodies, no redirects, no timeouts but one.
 */
import { connect, type Socket } from 'node:net'

/** An answer that takes longer ends the bench. */
const answerMs = 60_000
const headEnd = Buffer.from('\r\n\r\n')

interface Post {
  readonly path: string
  readonly key: string
  readonly body: string
}

interface Line {
  readonly socket: Socket
  answered: PromiseWithResolvers<number> | null
  received: Buffer
}

export class Hands {
  readonly #host: string
  readonly #open: () => Line
  readonly #lines: Set<Line>
  readonly #idle: Line[]

  constructor(origin: string, count: number) {
    const { host, hostname, port } = new URL(origin)
    this.#host = host
    this.#open = () => lineTo(hostname, Number(port))
    this.#lines = new Set(Array.from({ length: count }, this.#open))
    this.#idle = [...this.#lines]
  }

  /** Its answer's body is read and forgotten; another status than the expected one ends the bench. At most `count` at a time. */
  async post(sent: Post, expected: number): Promise<void> {
    const status = await this.#send(sent)
    if (status !== expected) throw new Error(`A command was answered with ${status}.`)
  }

  /** As `post`, of what is only looked at. */
  async get(path: string, expected: number): Promise<void> {
    const status = await this.#ask(`GET ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n\r\n`)
    if (status !== expected) throw new Error(`${path} was answered with ${status}.`)
  }

  #send({ path, key, body }: Post): Promise<number> {
    const named = Object.entries({
      host: this.#host,
      'content-type': 'application/json',
      'idempotency-key': key,
      'content-length': String(Buffer.byteLength(body)),
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    return this.#ask(`POST ${path} HTTP/1.1\r\n${named.join('')}\r\n${body}`)
  }

  #ask(request: string): Promise<number> {
    const kept = this.#idle.pop()
    if (!kept) throw new Error('Every hand is busy.')
    // The server hangs up on a connection that was idle for long: a million commands of the past take minutes to write.
    const line = kept.socket.destroyed ? this.#instead(kept) : kept
    line.answered = Promise.withResolvers()
    line.socket.write(request)
    return line.answered.promise.finally(() => this.#idle.push(line))
  }

  #instead(gone: Line): Line {
    const line = this.#open()
    this.#lines.delete(gone)
    this.#lines.add(line)
    return line
  }

  close(): void {
    for (const { socket } of this.#lines) socket.destroy()
  }
}

function lineTo(host: string, port: number): Line {
  const socket = connect({ host, port, noDelay: true })
  const line: Line = { socket, answered: null, received: Buffer.alloc(0) }
  socket.setTimeout(answerMs, () => line.answered && socket.destroy(new Error('The console did not answer.')))
  socket.on('error', (error) => line.answered?.reject(error))
  socket.on('close', () => line.answered?.reject(new Error('The console hung up.')))
  socket.on('data', (chunk) => {
    line.received = line.received.length === 0 ? chunk : Buffer.concat([line.received, chunk])
    const end = line.received.indexOf(headEnd)
    if (end < 0) return
    const head = line.received.toString('latin1', 0, end)
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN)
    if (Number.isNaN(length)) return void socket.destroy(new Error(`An answer without a length: ${head}`))
    if (line.received.length < end + headEnd.length + length) return
    line.received = line.received.subarray(end + headEnd.length + length)
    const { answered } = line
    line.answered = null
    answered?.resolve(Number(head.slice(9, 12)))
  })
  return line
}
