/**
 * What this process asks its clock for: each timer's length, and which function of the actors' floor asked for it. A length is known
 * as it is asked for, so that nobody has to wait for half an hour to know that a wait is as long. Hands on every timer as it is.
 */
import { join, resolve } from 'node:path'

const floor = join(resolve(import.meta.dirname, '../..'), 'actors/')

export interface AskedWait {
  readonly ms: number
  /** Its file below actors/, and the function there, as in `outbound chunksOf`: the nearest that is no bell's. */
  readonly by: string
}

/** Heard of until the returned function is called. */
export function hearWaits(heard: (wait: AskedWait) => void): () => void {
  const asked = globalThis.setTimeout
  globalThis.setTimeout = new Proxy(asked, {
    apply: (target, self, given: [unknown, number?]) => {
      const by = askedBy(new Error().stack ?? '')
      if (by !== null) heard({ ms: given[1] ?? 0, by })
      return Reflect.apply(target, self, given) as unknown
    },
  })
  return () => {
    globalThis.setTimeout = asked
  }
}

function askedBy(stack: string): string | null {
  for (const [, name = '', path = ''] of stack.matchAll(
    /^ +at (?:async )?(\S+) \((?:file:\/\/)?(.+)\.ts:\d+:\d+\)$/gm,
  )) {
    const file = path.startsWith(floor) ? path.slice(floor.length) : null
    if (file !== null && file !== 'loop/bell' && !name.startsWith('Leash.')) return `${file} ${name}`
  }
  return null
}
