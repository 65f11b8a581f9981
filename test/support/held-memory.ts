/** What this process holds when its garbage is gone. Owns no expectation. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

/** Bytes of the heap and beside it. Not the resident size: a heap grows to a size that suits it, some hundred MiB, and nothing is wrong. */
export function heldBytes(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Bytes of buffers alone. */
export function heldBuffers(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}
