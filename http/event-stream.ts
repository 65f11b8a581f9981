/**
 * Answering with server-sent events: headers, back-pressure, an end in time. Frames are pulled one by one as the client takes
 * them, so that a slow client holds two frames and `bufferedBytes`, never a queue, and one that takes nothing is let go.
 * Does not own what the events say.
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { formatEvent } from '../a2a/sse.ts'
import { openWindow } from './watch.ts'

/** After its last moment a stream may take this long to be read; a client that does not read is let go. */
const farewellMs = 10_000
const bufferedBytes = 64 * 1024
/** A client that takes nothing of what waits for it for this long, or for twice as long after a last mouthful, is let go. Longer than any silence between two frames. */
const stallMs = 20_000

export const ping = ': ping\n\n'
export const frame = (event: string, data: unknown): string => formatEvent({ event, data: JSON.stringify(data) })

/** Sends what `frames` yields until it ends. Its signal aborts when time is up, the process drains or the client is gone. */
export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  limit: { readonly windowMs: number; readonly until: readonly AbortSignal[]; readonly stallMs?: number },
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
  const body = Readable.from(frames(window.signal), { objectMode: false, highWaterMark: bufferedBytes })
  const stuck = setTimeout(() => {
    request.log.debug('an event stream was not read to its end')
    reply.raw.destroy()
  }, limit.windowMs + farewellMs)
  const gone = (): void => {
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
