/**
 * Waking scopes that rest although something is unfinished: a loop that asks the database every few seconds, one statement.
 * Nothing on the way of a command wakes a scope, so nothing there can forget to, and it costs that way nothing.
 */
import { v5 as uuidv5 } from 'uuid'
import type { Database } from '../persistence/database.ts'
import { readUnwatched, type UnwatchedScope } from '../persistence/scopes.ts'
import { Bell } from './bell.ts'
import type { Instruments, Operation, Runtime } from './runtime.ts'
import type { Scope } from './task-line.ts'

const sweepMs = 5_000
/** Scopes woken by one sweep; those that are left are still unwatched at the next. */
const sweepLimit = 500

/** The actor of a scope: a UUIDv5 (RFC 9562) of the tenant under the agent's id, so that anybody can name it. */
export const scopeId = ({ agentId, tenant }: Scope): string => uuidv5(tenant, agentId)

const wakeScope: Operation<UnwatchedScope, null> = {
  name: 'wakeScope',
  run: (_batch, scopes) =>
    Promise.resolve(
      scopes.map(({ organizationId, agentId, tenant }) => {
        const ref = { kind: 'reconciliation', id: scopeId({ agentId, tenant }) }
        const spawns = [{ ref, lane: agentId, isNew: false, organizationId, cause: 'reconciliation' }]
        const sends = [{ ref, event: { type: 'wanted', agentId, tenant } }]
        return { kind: 'done', result: null, effects: { spawns, sends } }
      }),
    ),
}

export interface ScopeWatchTools {
  readonly db: Database
  readonly runtime: Runtime
  readonly instruments: Pick<Instruments, 'now'>
}

/** Wakes what is unwatched once. Two processes may wake the same scope: the second is not heard. */
export async function wakeUnwatched({ db, runtime, instruments }: ScopeWatchTools): Promise<void> {
  const scopes = await readUnwatched(db.pool, instruments.now().toISOString(), sweepLimit)
  await Promise.all(scopes.map((scope) => runtime.perform(wakeScope, scope)))
}

/** Until the signal aborts. Rejects when the database fails: the supervisor starts it again. */
export async function watchScopes(tools: ScopeWatchTools, signal: AbortSignal): Promise<void> {
  for (const bell = new Bell(); !signal.aborted; await bell.wait(sweepMs, signal)) await wakeUnwatched(tools)
}
