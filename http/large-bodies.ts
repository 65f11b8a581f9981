/**
 * Room for large bodies of people: so many bytes of them are under way at once, from their second mebibyte until what was asked with one
 * is accepted, or answered. As text, as values and as what is written of them they are several times that. Who has no room yet leaves the
 * rest with the network, and is told to come again where there is none in time; what is small asks for none, whatever is said of its length.
 * What only drips gives way to who waits. Does not own what agents bring (push-bodies.ts).
 */
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { leastBytesPerMs } from '../actors/large-answers.ts'
import type { RoomPlace } from '../actors/room-place.ts'
import { bodyLimitBytes } from './bodies.ts'
import { Crowded, largeBytes, LargeRoom } from './large-room.ts'
import { goneSignal, openWindow, ownConnection } from './watch.ts'

declare module 'fastify' {
  interface FastifyRequest {
    bodyPlace: RoomPlace | null
  }
}

/** A few of the largest, as of agents' deliveries; of one person two, so that others find room beside them. One may go beyond. */
const roomLimits = { all: 4 * bodyLimitBytes, each: 2 * bodyLimitBytes }
/** As long as what is accepted waits for its commit: some twenty of the largest are accepted in it. */
const usualWaitMs = 15_000
/** Over which the pace of what has room is judged: longer than a pause of the network, and less than is waited for. */
const usualJudgedMs = 10_000

export interface LargeBodiesOptions {
  /** Aborts when the process is about to stop: who waits is told at once. */
  readonly drain: AbortSignal
  /** For tests, which do not wait so long. */
  readonly waitMs?: number
  readonly judgedMs?: number
}

export function admitLargeBodies(app: FastifyInstance, options: LargeBodiesOptions): void {
  const room = new LargeRoom(roomLimits)
  app.decorateRequest('bodyPlace', null)
  app.addHook('preParsing', (request, reply, payload, next) => {
    const bytes = mostBytesOf(request)
    // Of nobody who is known a body is not read, or small (guard.ts); agents have a room of their own.
    if (!request.identity || bytes <= largeBytes || bytes > bodyLimitBytes) return next(null, payload)
    const { userId } = request.identity
    const letIn = (body: ArrivingBody) => enter(request, reply, body, () => room.place(userId, bytes), options)
    next(null, new ArrivingBody(payload, letIn))
  })
  // Where nothing is accepted nothing large is made of a body: by its schema little is left of it, or it is refused (admin.ts).
  app.addHook('preHandler', (request, _reply, next) => {
    if (request.routeOptions.config.proves === undefined) request.bodyPlace?.leave()
    next()
  })
}

/** What was asked has been taken from it: the answer may take a minute more. */
export function letGoOfBody(request: FastifyRequest): void {
  request.body = null
  request.bodyPlace?.leave()
}

/** Of a body that does not say how long it is: as long as it may be. */
function mostBytesOf({ headers }: FastifyRequest): number {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return headers['transfer-encoding'] === undefined ? 0 : bodyLimitBytes
}

/** Resolves once there is room; refuses where there is none in time. */
async function enter(
  request: FastifyRequest,
  reply: FastifyReply,
  body: ArrivingBody,
  take: () => RoomPlace,
  { drain, waitMs = usualWaitMs, judgedMs = usualJudgedMs }: LargeBodiesOptions,
): Promise<void> {
  await ownConnection(reply.raw)
  const place = take()
  request.bodyPlace = place
  const gone = goneSignal(reply)
  gone.addEventListener('abort', place.leave, { once: true })
  const window = openWindow(waitMs, gone, drain)
  const hasRoom = await place.enter(waitMs, window.signal)
  window.close()
  if (gone.aborted) return place.leave()
  if (hasRoom) return giveWayIfDripping(request, body, place, judgedMs)
  place.leave()
  request.log.info('a large body found no room')
  throw new Crowded()
}

/** For as long as it comes. Where nobody waits a slow line is nobody's loss. */
function giveWayIfDripping(request: FastifyRequest, body: ArrivingBody, place: RoomPlace, judgedMs: number): void {
  let judgedBytes = body.receivedEncodedLength
  const judge = (): void => {
    const came = body.receivedEncodedLength - judgedBytes
    judgedBytes += came
    if (came >= judgedMs * leastBytesPerMs || !place.isWanted() || body.destroyed) return
    place.leave()
    request.log.info('a large body that only dripped gave way')
    body.destroy(new Crowded())
  }
  // After a process stood still timers ring before sockets are read, and nothing of what came would be seen.
  const judging = setInterval(() => setImmediate(judge), judgedMs).unref()
  body.once('close', () => clearInterval(judging))
}

/** A body as it comes: its first mebibyte at once, the rest once it is let in. Whoever never reads it takes nothing. */
class ArrivingBody extends Readable {
  /** Named by Fastify, which holds it against the length that was said. */
  receivedEncodedLength = 0
  readonly #raw: Readable
  readonly #letIn: (body: ArrivingBody) => Promise<void>
  #stands: 'unread' | 'free' | 'waiting' | 'inside' = 'unread'
  #isWhole = false

  constructor(raw: Readable, letIn: (body: ArrivingBody) => Promise<void>) {
    super()
    this.#raw = raw
    this.#letIn = letIn
    // Who reads it hears of what goes wrong, until it has heard enough: then nobody does.
    this.on('error', () => undefined)
    raw.once('end', this.#end).once('error', (error) => this.destroy(error))
  }

  override _read(): void {
    if (this.#stands === 'waiting') return
    if (this.#stands === 'unread') {
      this.#stands = 'free'
      this.#raw.on('data', this.#take)
    }
    this.#raw.resume()
  }

  readonly #take = (piece: Buffer): void => {
    this.receivedEncodedLength += piece.length
    const hasPlenty = !this.push(piece)
    if (this.#stands === 'free' && this.receivedEncodedLength > largeBytes) this.#wait()
    else if (hasPlenty) this.#raw.pause()
  }

  /** The end may come behind a piece that waits, however little was asked for. */
  readonly #end = (): void => {
    this.#isWhole = true
    if (this.#stands !== 'waiting') this.push(null)
  }

  #wait(): void {
    this.#stands = 'waiting'
    this.#raw.pause()
    this.#letIn(this).then(
      () => {
        this.#stands = 'inside'
        if (this.#isWhole) this.push(null)
        else this.#raw.resume()
      },
      (refused: Error) => this.destroy(refused),
    )
  }

  /** The request itself stays: it takes its answer with it. What still comes of it is thrown away. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#raw.off('data', this.#take).resume()
    done(error)
  }
}
