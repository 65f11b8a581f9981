/**
 * RFC 8785 (JCS): one text for all JSON texts that mean the same, so that it can be digested or signed. Owns the sentence for values
 * that have none. Does not own digests, which need a platform's crypto.
 */
import canonicalize from 'canonicalize'

/** The value has no canonical form: a lone surrogate, a number that JSON cannot say, a cycle, or nothing at all. */
export class NotCanonical extends Error {
  constructor(why: string, cause?: unknown) {
    super(`The value has no canonical JSON: ${why}.`, { cause })
    this.name = 'NotCanonical'
  }
}

/** Canonical JSON text: keys in UTF-16 order at every level, numbers as ECMAScript writes them. Throws NotCanonical. */
export function canonicalJson(value: unknown): string {
  let text: string | undefined
  try {
    text = canonicalize(value)
  } catch (error) {
    throw new NotCanonical(error instanceof Error ? error.message : String(error), error)
  }
  if (text === undefined) throw new NotCanonical('it is undefined')
  return text
}
