/**
 * Sign-ins under way, between the redirect to the provider and its answer. Each is used once, by the browser that began it.
 * Does not know what is sealed in one (actors/sign-in.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'

export interface Attempt {
  /** SHA-256 of the `state` that the provider hands back. */
  readonly stateHash: string
  /** SHA-256 of what the browser's cookie holds. */
  readonly bindingHash: string
  readonly sealed: string
  readonly expiresAt: string
}

export async function insertAttempt(db: Connection, attempt: Attempt): Promise<void> {
  await db.query(sql.unsafe`
    insert into sign_in_attempt (state_hash, binding_hash, sealed, expires_at)
    values (${attempt.stateHash}, ${attempt.bindingHash}, ${attempt.sealed}, ${attempt.expiresAt})`)
}

export interface TakenAttempt {
  /** Null: there is none, it is over, it was used, or another browser's. */
  readonly sealed: string | null
  /** Whether the browser has others under way, in other tabs. */
  readonly hasOthers: boolean
}

/** Takes an attempt: of two that come with the same state, one gets it. */
export async function takeAttempt(
  db: Connection,
  { stateHash, bindingHashes }: Pick<Attempt, 'stateHash'> & { readonly bindingHashes: readonly string[] },
  at: string,
): Promise<TakenAttempt> {
  const isOfBrowser = sql.fragment`binding_hash = any(${sql.array([...bindingHashes], 'text')})`
  return db.one(sql.type(z.object({ sealed: z.string().nullable(), hasOthers: z.boolean() }))`
    with taken as (
      delete from sign_in_attempt
      where state_hash = ${stateHash} and ${isOfBrowser} and expires_at > ${at} returning sealed
    )
    select (select sealed from taken) as sealed, exists (
      select from sign_in_attempt where ${isOfBrowser} and state_hash <> ${stateHash} and expires_at > ${at}
    ) as "hasOthers"`)
}

/** Rows in one pass: a few milliseconds. What is left over is for the next round. */
const forgottenAtOnce = 1_000

export async function forgetAttempts(db: Connection, at: string): Promise<void> {
  await db.query(sql.unsafe`
    delete from sign_in_attempt where state_hash in (
      select state_hash from sign_in_attempt where expires_at <= ${at} order by expires_at limit ${forgottenAtOnce}
      for update skip locked)`)
}
