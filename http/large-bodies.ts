/**
 * Room for large bodies of people: so many bytes of them are under way at once, from before one is read until what was asked with it is
 * accepted, or answered. As text, as values and as what is written of them they are several times that. Who has no room yet waits, unread,
 * and is told to come again where there is none in time; what is small asks for none. Does not own what agents bring (push-bodies.ts).
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Overloaded } from '../actors/loop/operation.ts'
import { bodyLimitBytes } from './bodies.ts'
import { largeBytes, LargeRoom, type LargePlace } from './large-room.ts'
import { goneSignal, ownConnection } from './watch.ts'

declare module 'fastify' {
  interface FastifyRequest {
    bodyPlace: LargePlace | null
  }
}

/** A few of the largest, as of agents' deliveries; of one person two, so that others find room beside them. One may go beyond. */
const roomLimits = { all: 4 * bodyLimitBytes, each: 2 * bodyLimitBytes }
/** As long as what is accepted waits for its commit: some twenty of the largest are accepted in it. */
const waitMs = 15_000
const crowded = 'Too many large messages are on their way; nothing was accepted.'

/** To be asked before bodies are invited: nobody is to send what waits. */
export function admitLargeBodies(app: FastifyInstance, patienceMs = waitMs): void {
  const room = new LargeRoom(roomLimits)
  app.decorateRequest('bodyPlace', null)
  app.addHook('preParsing', async (request, reply, payload) => {
    const bytes = bytesOf(request)
    // Of nobody who is known a body is not read, or small (guard.ts); agents have a room of their own.
    if (!request.identity || bytes < largeBytes || bytes > bodyLimitBytes) return payload
    await ownConnection(reply.raw)
    const place = room.place(request.identity.userId, bytes)
    request.bodyPlace = place
    const gone = goneSignal(reply)
    gone.addEventListener('abort', place.leave, { once: true })
    if ((await place.enter(patienceMs, gone)) && !gone.aborted) return payload
    place.leave()
    throw new Overloaded(crowded)
  })
}

/** Of a body that does not say how long it is: as long as it may be. */
function bytesOf({ headers }: FastifyRequest): number {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return headers['transfer-encoding'] === undefined ? 0 : bodyLimitBytes
}
