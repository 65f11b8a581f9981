/**
 * The vault: seals and opens what an agent is called with, as compact JWE [RFC 7516], `dir` with A256GCM. Owns the key ring and
 * the check that a sealed text belongs where it was found. Does not own rows (persistence/vault.ts) or what is inside.
 *
 * The protected header is authenticated with the text, so a sealed text that is moved to another agent's row, or whose header
 * names another key, does not open. Opened texts are kept by nobody: JavaScript cannot erase a string.
 */
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import type { CredentialKind } from '../domain/credential.ts'
import type { Database } from '../persistence/database.ts'
import { keysInUse } from '../persistence/vault.ts'
import type { Log } from './log.ts'

export interface KeyRing {
  /** Key id → 64 hexadecimal characters. */
  readonly keys: Readonly<Record<string, string>>
  /** Seals new texts; one of the ids. */
  readonly activeKey: string
}

/** What a sealed text is bound to. */
export interface SealContext {
  readonly organizationId: string
  readonly agentId: string
  readonly kind: CredentialKind
}

export interface Sealed {
  readonly sealed: string
  readonly keyId: string
}

/** No key ring, no such key, or a text that does not open; which of them is for the log, and none holds a secret. */
export class VaultUnavailable extends Error {
  override readonly name = 'VaultUnavailable'
  readonly reason: 'no-key-ring' | 'unknown-key' | 'unreadable' | 'moved'
  constructor(reason: VaultUnavailable['reason']) {
    super('Credential vault unavailable.')
    this.reason = reason
  }
}

const algorithm = 'dir'
const encryption = 'A256GCM'
const type = 'signalbox-credential+jwe'

export class Vault {
  readonly #ring: ReadonlyMap<string, Uint8Array>
  readonly #activeKey: string | null

  /** Null: there is no key ring, and every use of the vault fails. */
  constructor(ring: KeyRing | null) {
    this.#ring = new Map(Object.entries(ring?.keys ?? {}).map(([id, hex]) => [id, Buffer.from(hex, 'hex')]))
    this.#activeKey = ring?.activeKey ?? null
  }

  /** The id of the key that seals. Throws VaultUnavailable where there is none. */
  get activeKey(): string {
    if (this.#activeKey === null) throw new VaultUnavailable('no-key-ring')
    return this.#activeKey
  }

  has(keyId: string): boolean {
    return this.#ring.has(keyId)
  }

  async seal(context: SealContext, text: string): Promise<Sealed> {
    const keyId = this.activeKey
    const sealed = await new CompactEncrypt(new TextEncoder().encode(text))
      .setProtectedHeader({ alg: algorithm, enc: encryption, kid: keyId, typ: type, ctx: contextOf(context) })
      .encrypt(this.#key(keyId))
    return { sealed, keyId }
  }

  /** Throws VaultUnavailable. */
  async open(context: SealContext, sealed: string): Promise<string> {
    const { header, text } = await this.#decrypt(sealed)
    if (header['typ'] !== type || header['ctx'] !== contextOf(context)) throw new VaultUnavailable('moved')
    return text
  }

  async #decrypt(
    sealed: string,
  ): Promise<{ readonly header: Readonly<Record<string, unknown>>; readonly text: string }> {
    const key = this.#key(keyIdOf(sealed))
    try {
      // Named here and not read from the header: PBES2 with a huge count would burn a core, and `zip` is a bomb's means.
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, key, {
        keyManagementAlgorithms: [algorithm],
        contentEncryptionAlgorithms: [encryption],
      })
      return { header: protectedHeader, text: new TextDecoder('utf-8', { fatal: true }).decode(plaintext) }
    } catch {
      // What jose says is about the form of a text that nobody but the database should have written; no more is to be told.
      throw new VaultUnavailable('unreadable')
    }
  }

  #key(keyId: string | undefined): Uint8Array {
    if (this.#activeKey === null) throw new VaultUnavailable('no-key-ring')
    const key = keyId === undefined ? undefined : this.#ring.get(keyId)
    if (key === undefined) throw new VaultUnavailable('unknown-key')
    return key
  }
}

/** Three names without a blank in any of them, so no two contexts are written alike. */
const contextOf = ({ organizationId, agentId, kind }: SealContext): string => `${organizationId} ${agentId} ${kind}`

function keyIdOf(sealed: string): string | undefined {
  try {
    return decodeProtectedHeader(sealed).kid
  } catch {
    throw new VaultUnavailable('unreadable')
  }
}

/** Says at the start which keys are missing: an operator retired them too early, and the agents behind cannot be called. */
export async function reportMissingKeys(db: Database, vault: Vault, log: Log): Promise<void> {
  for (const { keyId, credentials } of await keysInUse(db.pool)) {
    if (!vault.has(keyId))
      log.warn({ keyId, credentials }, 'credentials are sealed with a key that is not in the key ring')
  }
}
