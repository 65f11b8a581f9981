/** Waiting for what is committed, without looking all the time. */
import { anybody, type Change, type Changes } from '../../actors/loop/changes.ts'

/** Whom a change names: nobody, where it may be of anybody. */
export const named = ({ subjects }: Pick<Change, 'subjects'>): readonly string[] =>
  subjects === anybody ? [] : [...subjects]

/** The next change, or the signal's abort. Ask before reading, await after: nothing falls in between. */
export function nextChange(changes: Changes, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) return Promise.resolve()
  const done = (): void => {
    stop()
    signal.removeEventListener('abort', done)
    resolve()
  }
  const stop = changes.subscribe(done)
  signal.addEventListener('abort', done, { once: true })
  return promise
}

/** Reads after each commit until it holds; what was read last where it does not within the bound. */
export async function readUntil<T>(
  changes: Changes,
  boundMs: number,
  read: () => Promise<T>,
  holds: (value: T) => boolean,
): Promise<T> {
  const signal = AbortSignal.timeout(boundMs)
  for (;;) {
    const change = nextChange(changes, signal)
    const value = await read()
    if (holds(value) || signal.aborted) return value
    await change
  }
}
