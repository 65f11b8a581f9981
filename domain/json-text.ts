/**
 * JSON text on its way from an agent to the database. A huge one goes as its UTF-8 bytes: as a string it would be copied from thread
 * to thread, and three times by whoever writes it to the database. Owns both forms and what is asked of
 * either; does not decide what is made of bytes (actors/threads/stream-parser.ts) or write them (persistence/drivers/bind-message.ts).
 */

/** Bytes that nobody changes or gives away: who failed to write them writes them again. */
export interface EncodedText {
  readonly utf8: Uint8Array
  /** As a string's: UTF-16 code units. */
  readonly length: number
}

export type JsonText = string | EncodedText

/** Characters. Shorter ones go to the database many at once. */
export const longText = 32 * 1024
/**
 * Characters. Bytes of their own make full collections come sooner: of texts of 75 KB they made the worst stall of a route half as
 * long again, where each of 24 MiB is some 100 ms less of the event loop.
 */
const hugeText = 1024 * 1024

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text as bytes where it is huge; well-formed, as whatever `JSON.stringify` wrote is. */
export const encodeHuge = (text: JsonText): JsonText =>
  typeof text === 'string' && text.length >= hugeText ? { utf8: encoder.encode(text), length: text.length } : text

/** Whether it is to be written by itself. */
export const isLong = (text: JsonText): boolean => typeof text !== 'string' || text.length >= longText

export const decodeText = (text: JsonText): string => (typeof text === 'string' ? text : decoder.decode(text.utf8))

/** What a digest is made of: the same for both forms. */
export const contentOf = (text: JsonText): string | Uint8Array => (typeof text === 'string' ? text : text.utf8)
