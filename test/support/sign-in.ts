/** A console whose people sign in by a real provider (provider.ts), composed as the console process composes it. */
import { IdentityProvider, providerPolicy } from '../../actors/identity-provider.ts'
import { Outbound } from '../../actors/outbound.ts'
import { provision } from '../../actors/provisioning.ts'
import type { Instruments } from '../../actors/loop/runtime.ts'
import { Sessions, type SessionRules } from '../../actors/sessions.ts'
import { callbackPath, SignIn } from '../../actors/sign-in.ts'
import { instruments } from '../../actors/system.ts'
import type { Role } from '../../domain/access.ts'
import { startConsole, type ConsoleOptions, type TestConsole } from './console.ts'
import { client, type TestProvider } from './provider.ts'
import { pageOrigin } from './people.ts'
import { capturedLog, type LogLine } from './system.ts'

export interface SignInOptions extends Omit<ConsoleOptions, 'identify' | 'oidc'> {
  readonly provider: TestProvider
  readonly rules?: Partial<SessionRules>
  readonly flowKey?: string
  /** Clocks that a test sets. */
  readonly time?: Partial<Instruments>
  /** As the configuration names it, where that is not what the provider is. */
  readonly issuer?: string
}

export interface SignInConsole extends TestConsole {
  readonly sessions: Sessions
  /** What sign-in told the log. */
  readonly told: readonly LogLine[]
  /** `issuer`: the provider's own when absent. */
  admit(subject: string, role: Role, issuer?: string): Promise<void>
}

export async function startSignIn(options: SignInOptions): Promise<SignInConsole> {
  const { provider, rules, flowKey = 'f'.repeat(64), issuer = provider.issuer, ...rest } = options
  const time = { ...instruments, ...options.time }
  const outbound = new Outbound(providerPolicy, { ca: [provider.certificate], longestMs: 2_000 })
  const sessionRules = { organization: 'local', sessionSeconds: 3_600, idleSeconds: null, ...rules }
  const { log, lines: told } = capturedLog()
  const made = Promise.withResolvers<Sessions>()
  const house = await startConsole({
    ...rest,
    oidc: ({ db, system: { changes } }) => {
      const sessions = new Sessions({ db, instruments: time, changes }, sessionRules)
      made.resolve(sessions)
      const secrets = { clientId: client.id, clientSecret: client.secret, callbackUrl: pageOrigin + callbackPath }
      const asked = new IdentityProvider({ issuer, ...secrets }, { outbound, log, monotonic: () => time.monotonic() })
      const signIn = new SignIn({ db, instruments: time, log, provider: asked, sessions, flowKey })
      return { mode: 'oidc', origin: pageOrigin, sessions, signIn }
    },
  })
  return {
    ...house,
    told,
    sessions: await made.promise,
    admit: async (subject, role, of = provider.issuer) => {
      const person = { identity: { issuer: of, subject }, name: `${subject}, ${role}`, role }
      await provision({ db: house.db, instruments, changes: house.system.changes }, sessionRules.organization, person)
    },
    close: async () => {
      await house.close()
      await outbound.close()
    },
  }
}
