/**
 * The audit chain's loop: links what was committed, and follows the whole chain now and then to see that it still holds. Any
 * number of processes may run it. Does not own the proof that nothing is passed over (persistence/audit-chain.ts), nor what is
 * written to the trail.
 */
import { hash } from 'node:crypto'
import { faultWords } from '../domain/audit-chain.ts'
import { chainedOrganizations, checkLinks } from '../persistence/audit-check.ts'
import { linkRows } from '../persistence/audit-chain.ts'
import type { Database } from '../persistence/database.ts'
import { Bell } from './loop/bell.ts'
import type { Instruments } from './loop/runtime.ts'
import type { Log } from './log.ts'

/** A row waits for its link about so long; a look that finds nothing is one statement of 0.1 ms. */
const lookMs = 1_000
/** As long as a pass took, and at least this: a backlog is linked with half of one process's time at most. */
const pauseFromMs = 5
/** A chain of a million rows is followed in less than a minute of processor time. */
const checkEveryMs = 60 * 60_000
/** How often it is asked whether a chain is due. */
const checkLookMs = 30_000

export const sha256 = (text: string): string => hash('sha256', text, 'hex')

export interface AuditChainTools {
  readonly db: Database
  readonly log: Log
  readonly instruments: Pick<Instruments, 'now' | 'monotonic'>
}

/** Links and checks until the signal aborts. Rejects when the database fails: the supervisor starts it again. */
export async function keepAuditChain(tools: AuditChainTools, signal: AbortSignal): Promise<void> {
  const { db, instruments } = tools
  const bell = new Bell()
  let checkAtMs = -Infinity
  while (!signal.aborted) {
    const startedAt = instruments.monotonic()
    const { more } = await linkRows(db.pool, sha256, instruments.now().toISOString())
    const isDue = startedAt >= checkAtMs
    const goesOn = isDue && (await checkChains(tools))
    if (isDue && !goesOn) checkAtMs = startedAt + checkLookMs
    const tookMs = instruments.monotonic() - startedAt
    await bell.wait(more || goesOn ? Math.max(pauseFromMs, tookMs) : lookMs, signal)
  }
}

/** Follows a piece of every chain that is due. True when there is more to follow now. */
export async function checkChains({ db, log, instruments }: AuditChainTools): Promise<boolean> {
  let isChecking = false
  const now = instruments.now()
  const times = { at: now.toISOString(), staleBefore: new Date(now.getTime() - checkEveryMs).toISOString() }
  for (const organizationId of await chainedOrganizations(db.pool)) {
    const checked = await checkLinks(db.pool, organizationId, sha256, times)
    if (checked === 'goes on') isChecking = true
    else if (checked !== 'rests' && checked.fault)
      log.error({ organizationId, fault: checked.fault }, `the audit chain does not hold: ${faultWords(checked.fault)}`)
  }
  return isChecking
}
