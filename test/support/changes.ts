/** Waiting for what is committed, without looking all the time. */
import type { Changes } from '../../actors/changes.ts'

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
