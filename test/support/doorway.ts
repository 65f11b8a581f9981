/**
 * A way to a console that is known before the console is: agents are told its origin, it passes on what they send there and
 * keeps what it saw. Owns the log of deliveries. Does not own any rule about them.
 */
import { request as ask, type IncomingHttpHeaders } from 'node:http'
import { Countdown, listenOnLoopback } from './peers/peer.ts'

/** One request that came and was answered. */
export interface Passage {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** What the console answered. */
  readonly status: number
}

export interface Doorway {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  readonly passages: readonly Passage[]
  leadTo(url: string): void
  /** Resolves when n requests in all were answered; rejects after a bound. */
  passed(n: number): Promise<void>
  close(): Promise<void>
}

export async function openDoorway(): Promise<Doorway> {
  const passages: Passage[] = []
  const count = new Countdown('passages', () => passages.map(({ path, status }) => `${status} ${path}`).join(', '))
  let target = ''
  const listening = await listenOnLoopback((request, response) => {
    const chunks: Buffer[] = []
    const onward = ask(new URL(request.url ?? '/', target), { method: request.method, headers: request.headers })
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.pipe(onward)
    onward.on('error', () => response.destroy())
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.on('end', () => {
        const { url: path = '/', headers } = request
        passages.push({ path, headers, body: Buffer.concat(chunks), status: answer.statusCode ?? 502 })
        count.count()
      })
    })
  })
  return {
    origin: listening.origin,
    passages,
    leadTo: (url) => void (target = url),
    passed: (n) => count.reached(n),
    close: () => listening.close(),
  }
}
