/**
 * Bodies of deliveries, read whole and within bounds: each, all of one sender, and all that are under way together; and within
 * a time. Does not own what is in them (actors/push-receipts.ts) or when they are read (push-receiver.ts).
 */
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { Refusal } from '../domain/refusal.ts'

export interface BodyLimits {
  readonly eachBytes: number
  /** Of one sender: less than together, so that nobody alone takes the place of all others. */
  readonly senderBytes: number
  readonly togetherBytes: number
  /**
   * From the first look at a body to its end, however it comes: a byte every few seconds keeps the place of a whole body as well as
   * none does, so what counts is not the last progress.
   */
  readonly withinMs: number
}

export class Bodies {
  readonly #limits: BodyLimits
  readonly #heldOf = new Map<string, number>()
  #heldBytes = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /**
   * Reads to the end and hands the body on; it counts until `use` is done. Refuses what is too large, what is too much for now,
   * and what has not come in time: the sender may say it again.
   */
  async read(sender: string, incoming: Readable, use: (body: Uint8Array) => Promise<void>): Promise<void> {
    const chunks: Buffer[] = []
    let size = 0
    const stop = new AbortController()
    const take = (piece: Buffer): void => {
      if (stop.signal.aborted) return
      size += piece.length
      const refusal = this.#hold(sender, piece.length, size)
      if (refusal) stop.abort(refusal)
      else chunks.push(piece)
    }
    const late = setTimeout(() => stop.abort(new Refusal('push.unavailable')), this.#limits.withinMs)
    try {
      incoming.on('data', take)
      await untilEnd(incoming, stop.signal)
      clearTimeout(late)
      await use(Buffer.concat(chunks))
    } finally {
      clearTimeout(late)
      incoming.off('data', take)
      this.#hold(sender, -size, 0)
    }
  }

  /** Counts what came or went; `size`: of the body that it belongs to. */
  #hold(sender: string, bytes: number, size: number): Refusal | null {
    const { eachBytes, senderBytes, togetherBytes } = this.#limits
    this.#heldBytes += bytes
    const held = (this.#heldOf.get(sender) ?? 0) + bytes
    if (held > 0) this.#heldOf.set(sender, held)
    else this.#heldOf.delete(sender)
    if (size > eachBytes) return new Refusal('body.size')
    return held > senderBytes || this.#heldBytes > togetherBytes ? new Refusal('push.unavailable') : null
  }
}

/** Stopped, the stream is left alone: a request that is destroyed takes its answer with it. */
async function untilEnd(incoming: Readable, signal: AbortSignal): Promise<void> {
  try {
    await finished(incoming, { writable: false, cleanup: true, signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}
