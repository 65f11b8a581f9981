/**
 * Answering with server-sent events: headers, back-pressure, an end in time. Frames are pulled one by one as the client takes
 * them, and large ones cross in pieces, so that a slow client holds one frame and a few pieces, never a queue: whoever yields one
 * knows, when it is asked for the next, that it was taken. A client that takes nothing, or next to nothing of a large one, is let go.
 * Does not own what the events say or how many large ones there are (large-room.ts).
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { formatEvent } from '../a2a/sse.ts'
import { leastBytesPerMs } from './large-room.ts'
import { openWindow, ownConnection } from './watch.ts'

/** After its last moment a stream may take this long to be read; a client that does not read is let go. */
const farewellMs = 10_000
const bufferedBytes = 64 * 1024
/** A client that takes nothing of what waits for it for this long, or for twice as long after a last mouthful, is let go. Longer than any silence between two frames. */
const stallMs = 20_000
/** Of a frame, in characters; the rest of it is kept once, as it was made. */
const pieceLength = 64 * 1024

export const ping = ': ping\n\n'
export const frame = (event: string, data: unknown): string => formatEvent({ event, data: JSON.stringify(data) })

export interface StreamLimit {
  readonly windowMs: number
  readonly until: readonly AbortSignal[]
  /** Others than the product's. */
  readonly stallMs?: number
  readonly leastBytesPerMs?: number
}

/** Sends what `frames` yields until it ends. Its signal aborts when time is up, the process drains or the client is gone. */
export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  limit: StreamLimit,
  frames: (signal: AbortSignal) => AsyncIterable<string>,
): FastifyReply {
  reply
    .header('content-type', 'text/event-stream')
    .header('cache-control', 'no-store, no-transform')
    .header('x-accel-buffering', 'no')
    // A kept socket would fall idle after a stopping server has closed the idle ones, and hold up its end for a minute.
    .header('connection', 'close')
  if (request.method === 'HEAD') return reply.send(Readable.from([]))
  const window = openWindow(limit.windowMs, ...limit.until)
  const lastMoment = performance.now() + limit.windowMs + farewellMs
  const giveUp = (): void => {
    request.log.debug('an event stream was not read to its end')
    reply.raw.destroy()
  }
  let stuck = setTimeout(giveUp, limit.windowMs + farewellMs)
  let isGone = false
  const mayTake = (ms: number): void => {
    clearTimeout(stuck)
    if (!isGone) stuck = setTimeout(giveUp, ms)
  }
  // A frame of more than a piece may take as long as that and as its bytes take at the least rate, also beyond the last moment.
  const clock: FrameClock = {
    begins: (bytes) => mayTake((limit.stallMs ?? stallMs) + bytes / (limit.leastBytesPerMs ?? leastBytesPerMs)),
    ends: () => mayTake(Math.max(farewellMs, lastMoment - performance.now())),
  }
  async function* owned(): AsyncGenerator<string> {
    await ownConnection(reply.raw)
    yield* frames(window.signal)
  }
  const pieces = inPieces(owned(), clock)
  const body = Readable.from(pieces, { objectMode: false, highWaterMark: bufferedBytes })
  const gone = (): void => {
    isGone = true
    clearTimeout(stuck)
    window.close()
  }
  // Node restarts this clock with every byte that the client takes; a frame on its way counts as waiting until its last byte.
  reply.raw.setTimeout(limit.stallMs ?? stallMs, () => {
    if (reply.raw.writableLength === 0) return
    request.log.debug('a client took nothing of its event stream')
    reply.raw.destroy()
  })
  if (reply.raw.destroyed) gone()
  else reply.raw.once('close', gone)
  return reply.send(body)
}

/** Told of each frame that is more than a piece. */
interface FrameClock {
  readonly begins: (bytes: number) => void
  readonly ends: () => void
}

async function* inPieces(frames: AsyncIterable<string>, clock: FrameClock): AsyncGenerator<string> {
  for await (const text of frames) {
    if (text.length > pieceLength) clock.begins(text.length)
    for (let from = 0; from < text.length;) {
      const to = pieceEnd(text, from)
      yield text.slice(from, to)
      from = to
    }
    if (text.length > pieceLength) clock.ends()
  }
}

/** Pieces become bytes one by one: a character of two code units stays in one of them. */
function pieceEnd(text: string, from: number): number {
  const to = from + pieceLength
  const before = text.charCodeAt(to - 1)
  return to < text.length && before >= 0xd8_00 && before <= 0xdb_ff ? to - 1 : to
}
