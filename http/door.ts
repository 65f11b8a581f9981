/** What every route is given, and the small questions that many of them ask. */
import * as z from 'zod/mini'
import type { Sessions } from '../actors/sessions.ts'
import type { SignIn } from '../actors/sign-in.ts'
import type { System } from '../actors/system.ts'
import { Refusal, type RefusalCode } from '../domain/refusal.ts'
import type { Database } from '../persistence/database.ts'
import type { OnDamage } from '../persistence/task-views.ts'
import { isUuid } from '../domain/uuid.ts'

export type AuthRule =
  /** Everybody is the local administrator. */
  | { readonly mode: 'development' }
  /** `origin`: the one origin that pages are at, that changes may be sent from and that people come back to. */
  | {
      readonly mode: 'oidc'
      readonly origin: string
      readonly sessions: Sessions
      /** Null: nobody can sign in here, and sessions that exist are good. */
      readonly signIn: SignIn | null
    }

export interface Door {
  readonly system: System
  readonly db: Database
  readonly auth: AuthRule
  /** Sideband URIs that the deployment understands besides the built-in ones. */
  readonly sidebandUris: readonly string[]
  /** Aborts when the process is about to stop: whoever waits answers at once, streams end politely. */
  readonly drain: AbortSignal
  /** Told whenever a view is read of which something is damaged. */
  readonly damaged: OnDamage
}

/** A local id among a query's filters: there it is malformed, where it is no UUID. */
export function uuidText(name: string) {
  const error = `${name} must be a UUID.`
  return z.string({ error }).check(z.refine(isUuid, { error }))
}

/** A local id from a path. What is no UUID names nothing: it is unknown, not malformed. */
export function localId(text: string, unknown: RefusalCode): string {
  if (!isUuid(text)) throw new Refusal(unknown)
  return text.toLowerCase()
}
