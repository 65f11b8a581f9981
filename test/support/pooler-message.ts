/** A message as PostgreSQL's protocol 3.0 frames it: a type, a length that counts itself, a body. */
export interface Message {
  readonly type: string
  readonly bytes: Buffer
}

/** Words end with a zero, numbers are of 32 bits, bytes stand as they are. */
export function message(type: string, ...parts: readonly (string | number | Buffer)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(`${part}\0`)
      if (typeof part !== 'number') return part
      const number = Buffer.alloc(4)
      number.writeInt32BE(part)
      return number
    }),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
