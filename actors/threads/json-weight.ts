/**
 * How much a text would grow when it is read: the guard before JSON.parse and before splitting lines. Bytes are bounded
 * elsewhere; 25 MiB of `[],` or of line feeds are still hundreds of megabytes of objects.
 *
 * A thread's heap limit is no such guard: V8 does not look at it inside JSON.parse, and a thread far over its limit was
 * seen to abort the whole process while it was torn down (Node 22.23, limit 64 MB, 15 MiB of `[],`).
 */

/**
 * Values or lines in one text. The worst shapes found (empty parts, a million different keys) take some 280 MB for that
 * many; ordinary dense JSON reaches it at about 11 MiB, text and base64 never.
 */
const pieceLimit = 1_000_000

/** The text has more values or lines than any honest event. */
export class TooManyPieces extends Error {
  override readonly name = 'TooManyPieces'
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const opensArray = 0x5b
const opensObject = 0x7b

/** Throws TooManyPieces. Not a validator: on text that is no JSON it counts something, and JSON.parse refuses it. */
export function checkValues(json: string): void {
  // Each value has at least one character, so nearly every text is done here.
  if (json.length <= pieceLimit) return
  let values = 0
  let position = 0
  while (position < json.length) {
    const character = json.charCodeAt(position)
    position += 1
    if (character === quote) position = afterString(json, position)
    else if (character === comma || character === opensArray || character === opensObject) {
      values += 1
      if (values > pieceLimit) throw new TooManyPieces()
    }
  }
}

/** Throws TooManyPieces. */
export function checkLines(bytes: Uint8Array): void {
  if (bytes.length <= pieceLimit) return
  let lines = 0
  for (const end of [0x0a, 0x0d]) {
    for (let at = bytes.indexOf(end); at !== -1; at = bytes.indexOf(end, at + 1)) {
      lines += 1
      if (lines > pieceLimit) throw new TooManyPieces()
    }
  }
}

/** Where a string that begins at `start` is over. Jumps from quote to quote, so that long text costs next to nothing. */
function afterString(json: string, start: number): number {
  let from = start
  for (;;) {
    const end = json.indexOf('"', from)
    if (end === -1) return json.length
    let escapes = 0
    while (end - escapes > from && json.charCodeAt(end - escapes - 1) === backslash) escapes += 1
    if (escapes % 2 === 0) return end + 1
    from = end + 1
  }
}
