/**
 * When a started console counts as ready: it has its port, and the session route answers below 500 (a 401 under OIDC means up);
 * and whether a port is to be had. Does not own the process behind it (bin/launcher-start.ts).
 */
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

const readyLimitMs = 120_000
const answerLimitMs = 5_000
const firstPauseMs = 25
const longestPauseMs = 500

/** Asks by listening for a moment. Any other failure is for whoever listens then to report, in its own words. */
export function isPortFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'EADDRINUSE'))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/** What a console tells its launcher once the port is its own: until then another's answer might pass for its. */
export const listening = 'listening'

/** Polls with growing pauses until the process `listens` and `url` answers, it ended (`gone`), or 120 s passed. */
export async function waitUntilReady(
  url: string,
  gone: AbortSignal,
  listens: () => boolean,
): Promise<'ready' | 'ended' | 'silent'> {
  const deadlineMs = performance.now() + readyLimitMs
  let pauseMs = firstPauseMs
  while (performance.now() < deadlineMs) {
    if (gone.aborted) return 'ended'
    if (listens() && (await answers(url, gone))) return 'ready'
    await wait(pauseMs, undefined, { signal: gone }).catch(ignoreAbort)
    pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)
  }
  return gone.aborted ? 'ended' : 'silent'
}

async function answers(url: string, gone: AbortSignal): Promise<boolean> {
  try {
    const signal = AbortSignal.any([gone, AbortSignal.timeout(answerLimitMs)])
    const response = await fetch(`${url}/api/auth/session`, { signal, redirect: 'manual' })
    await response.body?.cancel()
    return response.status < 500
  } catch {
    return false // not listening yet, or it ended: the caller's loop tells the two apart
  }
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error
}
