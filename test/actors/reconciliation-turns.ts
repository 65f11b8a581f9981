/**
 * Time for reconciliation, as a test moves it: rows are as old as a test says, and the timer of a scope rings now. Owns no
 * expectation. Nothing sleeps: a turn is over when the row says so.
 */
import { sql } from 'slonik'
import { expect } from 'vitest'
import { z } from 'zod'
import { scopeId, wakeUnwatched } from '../../actors/reconciliation-scopes.ts'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { instruments } from '../../actors/system.ts'
import { askForgotten } from '../../persistence/given-up.ts'
import { unfinished } from '../../persistence/reconciliation.ts'
import type { RunningSystem } from '../support/system.ts'

const Row = z.object({
  revision: z.number(),
  value: z.string(),
  work: z.string().nullable(),
  wakeAt: z.string().nullable(),
  timers: z.record(z.string(), z.object({ dueAt: z.string() })),
  context: z.object({
    failures: z.number(),
    slow: z.optional(z.number()),
    passes: z.number(),
    after: z.string().nullable(),
    reason: z.string().nullable(),
    listReason: z.string().nullable(),
    listUnread: z.number().optional(),
    listedAt: z.string().optional(),
  }),
})
export type ScopeRow = z.infer<typeof Row>

/** A worker that follows no stream: whatever is learned, reconciliation has learned. */
export function followsNothing(kinds: Kinds): Kinds {
  const { subscription } = kinds
  return subscription === undefined ? kinds : { ...kinds, subscription: { ...subscription, concurrency: 0 } }
}

/** For `expect.poll`: a bound for a busy machine, never a wait. */
export const patience = { timeout: 15_000, interval: 10 }

export class Scopes {
  readonly #running: RunningSystem

  constructor(running: RunningSystem) {
    this.#running = running
  }

  async row(agentId: string, tenant = ''): Promise<ScopeRow | null> {
    return this.#running.db.pool.maybeOne(sql.type(Row)`
      select revision, snapshot->>'value' as value, work, wake_at as "wakeAt", timers, snapshot->'context' as context
      from actor where kind = 'reconciliation' and id = ${scopeId({ agentId, tenant })}`)
  }

  /** Wakes every scope that rests although something is unfinished. */
  wake(): Promise<void> {
    const { db, system } = this.#running
    return wakeUnwatched({ db, runtime: system.runtime, instruments })
  }

  /** As if a minute had passed without a word from any agent. */
  async silence(): Promise<void> {
    await this.#running.db.pool.query(sql.unsafe`
      update task t set updated_at = updated_at - interval '1 minute' where ${unfinished}`)
  }

  /** Looks at lost tasks and for uncertain commands are due now. */
  async dueLooks(): Promise<void> {
    await this.#running.db.pool.query(sql.unsafe`
      update command_evidence set look_at = now() - interval '1 second' where look_at is not null`)
    await this.#running.db.pool.query(sql.unsafe`
      update lost_task set look_at = now() - interval '1 second' where look_at is not null`)
  }

  /** As if an hour had passed since a task that was given up was asked for. */
  async hourLater(): Promise<void> {
    const { pool } = this.#running.db
    await pool.query(sql.unsafe`update lost_task set looked_at = looked_at - interval '1 hour'`)
    await askForgotten(pool, new Date().toISOString())
  }

  /** Begins the next turn of a scope now, whether it rests or waits. Returns the revision before. */
  async begin(agentId: string, tenant = ''): Promise<number> {
    await this.silence()
    const before = (await this.row(agentId, tenant))?.revision ?? 0
    await this.#running.db.pool.query(sql.unsafe`
      update actor set wake_at = now(), timers = (
        select jsonb_object_agg(t.key, jsonb_set(t.value, '{dueAt}', '"2020-01-01T00:00:00.000Z"')) from jsonb_each(timers) t)
      where kind = 'reconciliation' and id = ${scopeId({ agentId, tenant })} and work is null and timers <> '{}'::jsonb`)
    await this.wake()
    this.#running.system.worker.nudge('reconciliation')
    return before
  }

  /** One whole turn: the scope as it is when it waits or rests again. One that is under way read who is due before: it is let end. */
  async turn(agentId: string, tenant = ''): Promise<ScopeRow> {
    await expect.poll(async () => (await this.row(agentId, tenant))?.work ?? null, patience).toBeNull()
    const before = await this.begin(agentId, tenant)
    const ended = async (): Promise<ScopeRow | null> => {
      const row = await this.row(agentId, tenant)
      return row && row.revision > before && row.work === null ? row : null
    }
    await expect.poll(ended, patience).not.toBeNull()
    const row = await ended()
    if (!row) throw new Error('The scope went on by itself.')
    return row
  }

  /** How long the timer was set for that is set now, in whole seconds: the row's own time is by another clock. */
  async lastWaitMs(agentId: string, tenant = ''): Promise<number> {
    return this.#running.db.pool.oneFirst(sql.type(z.object({ ms: z.number() }))`
      select round(extract(epoch from t.due - updated_at))::int * 1000 as ms
      from actor, lateral (select (value->>'dueAt')::timestamptz as due from jsonb_each(timers) limit 1) t
      where kind = 'reconciliation' and id = ${scopeId({ agentId, tenant })}`)
  }

  /** Kinds of facts about a subject, in order. */
  async facts(subjectId: string): Promise<readonly string[]> {
    return this.#running.db.pool.anyFirst(sql.type(z.object({ kind: z.string() }))`
      select kind from fact where subject_id = ${subjectId} order by number`)
  }
}
