/**
 * Who may in at this console: in development everybody, as the local administrator; else the organization's people, by their
 * provider. Composes sign-in from the configuration; does not own it (actors/sign-in.ts) or the checks of a request
 * (http/guard.ts).
 */
import { IdentityProvider, providerPolicy } from '../actors/identity-provider.ts'
import { Outbound } from '../actors/outbound.ts'
import { Sessions } from '../actors/sessions.ts'
import { callbackPath, SignIn } from '../actors/sign-in.ts'
import { instruments } from '../actors/system.ts'
import type { AuthRule } from '../http/door.ts'
import type { Guard } from '../http/guard.ts'
import { bySession } from '../http/callers.ts'
import { ensureOrganization } from '../persistence/people.ts'
import type { Running } from './composition.ts'
import type { AuthConfig } from './config.ts'

export interface Admission {
  readonly organizationId: string
  readonly auth: AuthRule
  readonly identify: Guard['identify']
  close(): Promise<void>
}

export async function openAdmission(auth: AuthConfig, { db, system, log }: Running): Promise<Admission> {
  if (auth.mode === 'development') {
    const administrator = await system.localAdministrator()
    return {
      organizationId: administrator.organizationId,
      auth: { mode: auth.mode },
      identify: () => Promise.resolve(administrator),
      close: () => Promise.resolve(),
    }
  }
  const { issuer, clientId, clientSecret, flowKey, origin } = auth
  const outbound = new Outbound(providerPolicy)
  const client = { issuer, clientId, clientSecret, callbackUrl: origin + callbackPath }
  const provider = new IdentityProvider(client, { outbound, log, monotonic: () => instruments.monotonic() })
  const sessions = new Sessions({ db, instruments, changes: system.changes }, auth)
  const signIn = new SignIn({ db, instruments, log, provider, sessions, flowKey })
  return {
    organizationId: await ensureOrganization(db.pool, auth.organization, instruments.newToken()),
    auth: { mode: auth.mode, origin, sessions, signIn },
    identify: bySession(sessions),
    close: () => outbound.close(),
  }
}
