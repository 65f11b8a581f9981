/**
 * Blots out an agent's credential where the agent repeats it: what an agent says is stored and shown to everybody who may read
 * its tasks, and agents that show the headers they were called with exist. Covers the secret as it was sent and as JSON writes
 * it, whole; not what an agent makes of it (its base64, its halves): from an agent that means harm the agent's own secret is
 * nothing to protect.
 */
const blot = '*'.charCodeAt(0)

/**
 * The forms in which a secret may come back: as sent, and as encoders of JSON write it. Some escape more than they must: PHP's the
 * slash, Go's and .NET's what HTML would read.
 */
export const echoesOf = (secrets: readonly string[]): readonly Buffer[] => {
  const forms = secrets.flatMap((secret) => {
    const json = JSON.stringify(secret).slice(1, -1)
    const php = json.replaceAll('/', '\\/')
    const go = json.replaceAll(/[<>&]/g, codeOf)
    const net = json.replaceAll(/\\"|[&'+<>`]/g, (escaped) => codeOf(escaped.slice(-1)).toUpperCase().replace('U', 'u'))
    return [secret, json, php, go, net]
  })
  return [...new Set(forms)].map((form) => Buffer.from(form))
}

const codeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The same length, so that what frames the words stays true. Returns the body itself where there is nothing to blot out. */
export function masked(body: Uint8Array, echoes: readonly Buffer[]): Uint8Array {
  let bytes: Buffer | null = null
  for (const echo of echoes) {
    const view: Buffer = bytes ?? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    let at = view.indexOf(echo)
    if (at < 0) continue
    // A copy: chunks may share one buffer with what is still on its way.
    bytes ??= Buffer.from(view)
    for (; at >= 0; at = bytes.indexOf(echo, at + echo.length)) bytes.fill(blot, at, at + echo.length)
  }
  return bytes ?? body
}

/** As `masked`, for a header field's value. */
export function maskedWords(words: string, echoes: readonly Buffer[]): string {
  const bytes = Buffer.from(words)
  const blotted = masked(bytes, echoes)
  return blotted === bytes ? words : Buffer.from(blotted).toString()
}

/** As `masked`, over chunks: an end that may be the beginning of a secret waits for the next chunk, and nothing else does. */
export async function* maskedChunks(
  chunks: AsyncIterable<Uint8Array>,
  echoes: readonly Buffer[],
): AsyncGenerator<Uint8Array, void> {
  let rest: Uint8Array = new Uint8Array()
  for await (const chunk of chunks) {
    const bytes = masked(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]), echoes)
    const begun = Math.max(...echoes.map((echo) => beginningAtEnd(bytes, echo)), 0)
    rest = bytes.subarray(bytes.length - begun)
    if (begun < bytes.length) yield bytes.subarray(0, bytes.length - begun)
  }
  if (rest.length > 0) yield rest
}

/** How many bytes at the end are the beginning of `echo`, and not all of it. */
function beginningAtEnd(bytes: Uint8Array, echo: Buffer): number {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [first = 0] = echo
  const from = Math.max(0, view.length - echo.length + 1)
  for (let at = view.indexOf(first, from); at >= 0; at = view.indexOf(first, at + 1)) {
    const length = view.length - at
    if (view.compare(echo, 0, length, at) === 0) return length
  }
  return 0
}
