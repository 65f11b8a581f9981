/**
 * Names for everything that is made here: UUIDv7 [RFC 9562 §5.7], whose time in front keeps inserts at the right edge of every
 * index. Random bytes are drawn for 256 names at once: a draw of sixteen cost more than the rest of a name.
 */
import { randomFillSync } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'

const nameBytes = 16
const pool = new Uint8Array(256 * nameBytes)
let drawn = pool.length

function random(): Uint8Array {
  if (drawn === pool.length) {
    randomFillSync(pool)
    drawn = 0
  }
  drawn += nameBytes
  return pool.subarray(drawn - nameBytes, drawn)
}

export const newToken = (): string => uuidv7({ rng: random })
