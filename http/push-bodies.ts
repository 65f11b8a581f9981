/**
 * Bodies of deliveries, read whole and within bounds: each, and all that are under way together. Does not own what is in
 * them (actors/push-receipts.ts) or when they are read (push-receiver.ts).
 */
import type { Readable } from 'node:stream'
import { Refusal } from '../domain/refusal.ts'

export interface BodyLimits {
  readonly eachBytes: number
  readonly togetherBytes: number
}

export class Bodies {
  readonly #limits: BodyLimits
  #heldBytes = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /** Reads to the end and hands the body on; it counts until `use` is done. Refuses what is too large, or too much for now. */
  async read(incoming: Readable, use: (body: Uint8Array) => Promise<void>): Promise<void> {
    const chunks: Buffer[] = []
    let size = 0
    try {
      // Left alone when this throws: a request that is destroyed takes its answer with it.
      const pieces: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false })
      for await (const piece of pieces) {
        size += piece.length
        this.#heldBytes += piece.length
        if (size > this.#limits.eachBytes) throw new Refusal('body.size')
        if (this.#heldBytes > this.#limits.togetherBytes) throw new Refusal('push.unavailable')
        chunks.push(piece)
      }
      await use(Buffer.concat(chunks))
    } finally {
      this.#heldBytes -= size
    }
  }
}
