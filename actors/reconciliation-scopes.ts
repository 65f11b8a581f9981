/**
 * Waking scopes that rest although something is unfinished, and those that pause although evidence is wanted: a loop that asks
 * the database every few seconds, one statement, and at once where a doubt has arisen. Nothing on the way of a command wakes a
 * scope, so nothing there can forget to, and it costs that way nothing.
 */
import { v5 as uuidv5 } from 'uuid'
import { callableStates } from '../machines/reconciliation.ts'
import type { Database } from '../persistence/database.ts'
import { askForgotten, keepGivenUp } from '../persistence/given-up.ts'
import { readUnwatched, type UnwatchedScope } from '../persistence/scopes.ts'
import { Bell } from './loop/bell.ts'
import type { Changes } from './loop/changes.ts'
import type { Operation } from './loop/operation.ts'
import type { Instruments, Runtime } from './loop/runtime.ts'
import type { Latecomers } from './push-latecomers.ts'
import type { Scope } from './task-line.ts'

const sweepMs = 5_000
/** Doubts come in crowds: what arises meanwhile is seen by the next sweep. */
const leastGapMs = 500
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

const callable = callableStates.map((value) => JSON.stringify(value))

export interface ScopeWatchTools {
  readonly db: Database
  readonly runtime: Runtime
  readonly instruments: Pick<Instruments, 'now' | 'monotonic'>
}

interface WatchTools extends ScopeWatchTools {
  readonly changes: Changes
  /** Null in a deployment without push. */
  readonly latecomers: Latecomers | null
}

/** Wakes what is unwatched once. Two processes may wake the same scope: the second is not heard. */
export async function wakeUnwatched({ db, runtime, instruments }: ScopeWatchTools): Promise<void> {
  await keepGivenUp(db.pool)
  const scopes = await readUnwatched(db.pool, instruments.now().toISOString(), callable, sweepLimit)
  await Promise.all(scopes.map((scope) => runtime.perform(wakeScope, scope)))
}

/**
 * Until the signal aborts, and at once when a command of this process has become uncertain: whoever delivers also watches.
 * Rejects when the database fails: the supervisor starts it again.
 */
export async function watchScopes(tools: WatchTools, signal: AbortSignal): Promise<void> {
  const bell = new Bell()
  const { now, monotonic } = tools.instruments
  let walkedMs = -Infinity
  const silence = tools.changes.subscribe(({ commit }) => {
    if (commit?.facts?.has('command.uncertain')) bell.ring()
  })
  try {
    while (!signal.aborted) {
      const nowMs = monotonic()
      // A crowd of doubts makes no crowd of these.
      if (nowMs >= walkedMs + sweepMs) {
        walkedMs = nowMs
        await askForgotten(tools.db.pool, now().toISOString())
        await tools.latecomers?.sweep()
      }
      await wakeUnwatched(tools)
      await new Bell().wait(leastGapMs, signal)
      await bell.wait(sweepMs - leastGapMs, signal)
    }
  } finally {
    silence()
  }
}
