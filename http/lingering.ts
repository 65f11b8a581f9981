/**
 * Answers to requests whose body is still on its way: too large, or of somebody who may not send one. A socket that is closed while
 * bytes come is reset, and what was said on it is often lost with them; so our half is closed, and the rest is thrown away for a while
 * [RFC 9112 §9.6]. Owns that while, in bytes and in time. Does not own what is refused (refusals.ts).
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** What is smaller is here as good as whole, and its connection is kept: Node reads it to its end. */
const smallBytes = 64 * 1024
/** Of the rest: a few of the largest bodies. */
const restBytes = 64 * 1024 * 1024
/** From the answer on. The largest body passes in it at 14 Mbit/s; who is slower and does not look meanwhile may lose the answer. */
const restMs = 10_000

/** An answer may be sent twice, as where the first cannot be written. */
const lingering = new WeakSet<Socket>()

/** To be asked before an answer's head is sent. */
export function lingerOver({ raw }: FastifyRequest, reply: FastifyReply): void {
  const { socket } = raw
  if (!isArriving(raw) || lingering.has(socket)) return
  lingering.add(socket)
  reply.header('connection', 'close')
  const close = socket.destroySoon.bind(socket)
  let left = restBytes
  raw.on('data', (piece: Buffer) => {
    left -= piece.length
    if (left < 0) socket.destroy()
  })
  // Node's own end of a connection that is not kept, once the answer has been handed over.
  socket.destroySoon = () => {
    if (raw.complete) return close()
    socket.end()
    const late = setTimeout(() => socket.destroy(), restMs)
    raw.once('close', () => {
      clearTimeout(late)
      close()
    })
  }
}

/** Of a request without a body Node may not have seen the end yet, either: it is where its head ends. */
const isArriving = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBytes)
