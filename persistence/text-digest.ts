/**
 * Digests of large texts, such as the one by which a large part stands in its artifact's chain (tasks.ts). A file of its own,
 * for the threads that parse make them (actors/threads/stream-parser.ts) and should not load what reads and writes rows.
 */
import { createHash } from 'node:crypto'
import { contentOf, type JsonText } from '../domain/json-text.ts'

/** Characters; hashing shorter ones costs less than a few milliseconds. */
export const largeText = 1024 * 1024

export const textDigest = (text: JsonText): string => createHash('sha256').update(contentOf(text)).digest('base64url')
