/**
 * The body of an answer: decoded, counted, collected. We ask for `identity`; an answer that is compressed anyway is
 * decoded under the same limit rather than refused, because a refused answer to a send makes its command uncertain.
 */
import { pipeline } from 'node:stream'
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Call, Head } from './call.ts'
import { OutboundFailure } from './policy.ts'

/** One layer only: no server stacks encodings that nobody asked for, and each layer multiplies a bomb. */
const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Chunks of the decoded body, never more than `maxBytes` in all. Throws OutboundFailure, or what the socket threw. */
export async function* decoded(head: Head, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  let total = 0
  for await (const chunk of plain(head) as AsyncIterable<Buffer>) {
    total += chunk.length
    if (total > maxBytes) throw new OutboundFailure('too-large')
    yield chunk
  }
}

function plain(head: Head): Readable {
  const encoding = (head.headers['content-encoding'] ?? '').trim().toLowerCase()
  if (encoding === '' || encoding === 'identity') return head.body
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (decoder === undefined) throw new OutboundFailure('malformed')
  // The callback is for the end of both; a failure of either is read from the decoder, whose reader is our caller.
  return pipeline(head.body, decoder(), () => undefined)
}

/** An answer of so much is read at once. */
const smallBytes = 1024 * 1024

export interface Collecting {
  readonly maxBytes: number
  /** Told how much has come, with each piece of an answer that turns out to be large: the rest stays with the network until it resolves. */
  readonly room?: (bytes: number) => Promise<void> | null
}

/** The whole body. Rejects as `decoded` does, and with why the call was stopped while it waited for room. */
export async function collect(head: Head, call: Call, { maxBytes, room }: Collecting): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of decoded(head, maxBytes)) {
    chunks.push(chunk)
    bytes += chunk.length
    const wait = bytes > smallBytes ? room?.(bytes) : null
    if (wait) await Promise.race([wait, call.stopped])
  }
  return Buffer.concat(chunks)
}
