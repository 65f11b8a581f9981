/**
 * Digests of large texts, such as the one by which a large part stands in its artifact's chain (tasks.ts). A file of its own,
 * for the threads that parse make them (actors/threads/stream-parser.ts) and should not load what reads and writes rows.
 */
import { createHash } from 'node:crypto'
import { contentOf, type JsonText } from '../domain/json-text.ts'

/** Characters of an event; hashing shorter ones costs less than a few milliseconds. */
export const largeText = 1024 * 1024

/** Of texts one after the other. */
export function textDigest(...pieces: readonly JsonText[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(contentOf(piece))
  return hash.digest('base64url')
}
