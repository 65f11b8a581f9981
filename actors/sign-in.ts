/**
 * Signing in by the organization's provider, from the redirect there to the session. Owns attempts: each is sealed, ten
 * minutes long, used once, and bound to the browser that began it. Does not own what the provider says
 * (identity-provider.ts), sessions (sessions.ts), or cookies and answers (http/auth.ts).
 *
 * A browser has one binding for all its tabs, so that the cookie neither grows nor is overwritten by the next tab: what
 * tells attempts apart is the `state` of each. Tabs that begin in the same moment have one each, and the browser brings them all.
 */
import { CompactEncrypt, compactDecrypt } from 'jose'
import * as z from 'zod/mini'
import { takeAttempt, insertAttempt } from '../persistence/sign-in.ts'
import type { Database } from '../persistence/database.ts'
import { reasonOf, type IdentityProvider, type Proof } from './identity-provider.ts'
import type { Instruments } from './loop/runtime.ts'
import { hashOf, isSecret, newSecret } from './secrets.ts'
import type { Sessions } from './sessions.ts'
import type { Log } from './log.ts'

/** Where the provider sends people back to, on the console's origin. */
export const callbackPath = '/api/auth/callback'
/** How long a person may take at the provider. */
export const attemptSeconds = 600

const Sealed = z.object({ nonce: z.string(), verifier: z.string(), returnTo: z.string() })
type Sealed = z.infer<typeof Sealed>

export interface SignInTools {
  readonly db: Database
  readonly instruments: Instruments
  readonly log: Log
  readonly provider: Pick<IdentityProvider, 'authorizationUrl' | 'identityOf'>
  readonly sessions: Sessions
  /** 64 hexadecimal characters. */
  readonly flowKey: string
}

export interface Begun {
  /** At the provider. */
  readonly location: string
  /** What the browser keeps until it is back. */
  readonly binding: string
}

export interface Callback {
  readonly parameters: URLSearchParams
  /** What the browser brings: of its sign-ins, and of the session it had before. */
  readonly bindings: readonly string[]
  readonly session: string | null
}

export interface Completed {
  /** The new session's; null: signing in failed, for whatever reason. */
  readonly token: string | null
  /** Where the person was going; null: there was no such attempt of this browser. */
  readonly returnTo: string | null
  /** Whether the browser has other attempts under way, whose bindings it must keep. */
  readonly hasOthers: boolean
}

export class SignIn {
  readonly sessions: Sessions
  readonly #t: SignInTools
  readonly #key: Uint8Array

  constructor(tools: SignInTools) {
    this.#t = tools
    this.sessions = tools.sessions
    this.#key = new Uint8Array(Buffer.from(tools.flowKey, 'hex'))
  }

  /** Begins an attempt. Refuses with `session.unavailable` when the provider cannot be asked. */
  async begin(returnTo: string, presented: readonly string[]): Promise<Begun> {
    const { db, instruments, provider } = this.#t
    const binding = presented.find(isSecret) ?? newSecret()
    const proof: Proof = { state: newSecret(), nonce: newSecret(), verifier: newSecret() }
    const location = await provider.authorizationUrl(proof)
    const stateHash = hashOf(proof.state)
    await insertAttempt(db.pool, {
      stateHash,
      bindingHash: hashOf(binding),
      sealed: await this.#seal(stateHash, { nonce: proof.nonce, verifier: proof.verifier, returnTo }),
      expiresAt: new Date(instruments.now().getTime() + attemptSeconds * 1000).toISOString(),
    })
    return { location, binding }
  }

  /** Completes the attempt that a callback names. Whatever is wrong with it, the answer is the same; the log knows more. */
  async complete({ parameters, bindings, session }: Callback): Promise<Completed> {
    const { db, instruments, provider, sessions } = this.#t
    const state = parameters.get('state') ?? ''
    const bindingHashes = bindings.filter(isSecret).map(hashOf)
    const nowhere = { returnTo: null, hasOthers: false }
    if (bindingHashes.length === 0) return this.#failed('the browser began no sign-in', nowhere)
    const stateHash = hashOf(state)
    const now = instruments.now().toISOString()
    const { sealed, hasOthers } = await takeAttempt(db.pool, { stateHash, bindingHashes }, now)
    if (sealed === null) return this.#failed('no such attempt: unknown, used, or over', { ...nowhere, hasOthers })
    const opened = await this.#unseal(stateHash, sealed)
    if (!opened) return this.#failed('the attempt was sealed with another key', { ...nowhere, hasOthers })
    const { returnTo, ...secrets } = opened
    const identity = await provider.identityOf(parameters, { state, ...secrets }).catch(reasonOf)
    if (typeof identity === 'string') return this.#failed(identity, { returnTo, hasOthers })
    const token = await sessions.open(identity, session)
    if (token === null)
      return this.#failed('no enabled membership has this issuer and subject', { returnTo, hasOthers })
    return { token, returnTo, hasOthers }
  }

  #failed(reason: string, completed: Omit<Completed, 'token'>): Completed {
    this.#t.log.warn({ reason }, 'a sign-in failed')
    return { token: null, ...completed }
  }

  /** The header is authenticated: what was sealed for one attempt opens in no other's row. */
  #seal(attempt: string, value: Sealed): Promise<string> {
    return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(value)))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', attempt })
      .encrypt(this.#key)
  }

  /** Null where the key has changed since, or the row is not what was written. */
  async #unseal(attempt: string, sealed: string): Promise<Sealed | null> {
    const only = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] }
    try {
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, this.#key, only)
      return protectedHeader.attempt === attempt ? Sealed.parse(JSON.parse(new TextDecoder().decode(plaintext))) : null
    } catch {
      return null // decided by the cipher: there is nothing to tell apart, and nobody to tell
    }
  }
}
