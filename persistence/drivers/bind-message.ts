/**
 * A Bind whose values are written as they are, bytes beside text: an agent's 24 MiB are neither made a string nor copied into one
 * message with the rest [PostgreSQL protocol, 55.7 "Bind"]. node-postgres' own serves everybody whose values are short; it
 * copies each three times. Does not know what is bound (statement-group.ts).
 */
import { markAsUntransferable } from 'node:worker_threads'
import { sql, type BinarySqlToken } from 'slonik'
import type { JsonText } from '../../domain/json-text.ts'

/** As text: bytes are UTF-8. */
export type Value = string | Uint8Array | null

/** As a value of a statement. */
export const textValue = (text: JsonText): string | BinarySqlToken =>
  typeof text === 'string' ? text : sql.binary(Buffer.from(text.utf8.buffer, text.utf8.byteOffset, text.utf8.length))

const bindCode = 0x42
const nullLength = -1
const headBytes = 5

/** In pieces, in the order in which they are to be written. The portal has no name, and results come as text. */
export function bindMessage(statement: string, values: readonly Value[]): Uint8Array[] {
  const pieces: Uint8Array[] = []
  let run: Buffer[] = [Buffer.from(`\0${statement}\0`), counts(0, values.length)]
  for (const value of values) {
    if (value === null) run.push(int32(nullLength))
    else if (typeof value === 'string') {
      const bytes = Buffer.from(value)
      run.push(int32(bytes.length), bytes)
    } else {
      // Who gave them may need them again: a commit that met a conflict is written a second time.
      markAsUntransferable(value.buffer)
      pieces.push(Buffer.concat([...run, int32(value.length)]), value)
      run = []
    }
  }
  pieces.push(Buffer.concat([...run, counts(0)]))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const head = Buffer.allocUnsafe(headBytes)
  head.writeUInt8(bindCode)
  head.writeInt32BE(length + headBytes - 1, 1)
  return [head, ...pieces]
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32BE(value)
  return bytes
}

function counts(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(2 * values.length)
  values.forEach((value, i) => bytes.writeInt16BE(value, 2 * i))
  return bytes
}
