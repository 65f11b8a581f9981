/**
 * The door to agents: every request to a registered agent goes through here and gets what proves who is calling, or does not
 * leave. Owns which credential goes along, to which origins, and what is kept in memory for a binding: an OAuth token, a
 * client certificate's sockets. Does not own sealing (vault.ts), changing bindings (credential-changes.ts) or the network
 * (outbound.ts): a redirect is refused there, and nothing is sent twice.
 *
 * The row is read at every use, gathered with everybody else's (gathered-reads.ts): what another process stored or revoked
 * counts from the next request on, and for a stream within `lookAgainMs` of what it brings. Secrets are opened for one request.
 */
import type { WireRequest } from '../a2a/client.ts'
import { Binding, credentialSentences, type Credential } from '../domain/credential.ts'
import type { Database } from '../persistence/database.ts'
import { isOutage } from '../persistence/outage.ts'
import { readCredentials, type CredentialRow } from '../persistence/vault.ts'
import { echoesOf, masked, maskedChunks, maskedWords } from './credential-mask.ts'
import { GatheredReads } from './gathered-reads.ts'
import { OauthTokens, OauthUnavailable } from './oauth-tokens.ts'
import type { ClientCertificate } from './outbound/connector.ts'
import { StreamBroken } from './outbound.ts'
import type { Attachment, ExchangeLimits, Outbound, Sent, Streaming, StreamLimits } from './outbound.ts'
import { OutboundFailure, type OutboundCode } from './outbound/policy.ts'
import type { Sockets } from './outbound/sockets.ts'
import { VaultUnavailable, type Vault } from './vault.ts'
import type { Log } from './log.ts'

/** How long a stream goes on by a look at its binding. */
const lookAgainMs = 5_000
/** Bindings for which something is kept in memory; the one that was used longest ago goes first. */
const bindingsKept = 200

export interface DoorTools {
  readonly db: Database
  readonly outbound: Outbound
  readonly vault: Vault
  readonly log: Log
  readonly monotonic: () => number
}

export type Unsent = Extract<Sent, { kind: 'unsent' }>

/** A request that may leave, with what goes along. Good for one use, at once. */
export interface Prepared {
  readonly kind: 'prepared'
  /** What a 401 or 403 means here, safe to show. */
  readonly denial: string
  exchange(bounds: ExchangeLimits, signal?: AbortSignal): Promise<Sent>
  openStream(bounds: StreamLimits, signal?: AbortSignal): Promise<Sent | Streaming>
}

/** What is kept for one version of one agent's binding. */
interface Fittings {
  readonly version: number
  readonly tokens: OauthTokens
  sockets: Sockets | null
  /** Told in the log already: once for a version is enough, polls would say it every few seconds. */
  readonly told: Set<string>
}

interface Proof extends Attachment {
  /** What must not come back in an answer. */
  readonly secrets: readonly string[]
  readonly refused: (status: number) => void
}

export class AgentDoor {
  readonly #t: DoorTools
  readonly #rows: GatheredReads<CredentialRow>
  readonly #fittings = new Map<string, Fittings>()

  constructor(tools: DoorTools) {
    this.#t = tools
    this.#rows = new GatheredReads((ids) => readCredentials(tools.db.pool, ids))
  }

  /**
   * Gets a request to an agent ready. Unsent where there is a binding that cannot be used for it. Rejects as the database does,
   * and with the signal's reason never: an abort is an unsent request.
   */
  async prepare(agentId: string, request: WireRequest, signal?: AbortSignal): Promise<Prepared | Unsent> {
    const row = await this.#rows.read(agentId)
    const fittings = this.#fit(agentId, row)
    if (row === null) return this.#without(request, credentialSentences.required)
    const proof = await this.#proofFor(row, fittings, request.url, signal)
    if ('code' in proof) return proof
    return this.#with(proof, row, request)
  }

  /**
   * Asks whoever hands out access to an agent, where somebody does, so that its token is at hand for what is asked next. Unsent where
   * it gives none: then no request would get further. Null: whatever else there is to say, the request itself says.
   */
  async token(agentId: string, signal: AbortSignal): Promise<Unsent | null> {
    const row = await this.#rows.read(agentId)
    const fittings = this.#fit(agentId, row)
    if (row?.kind !== 'oauthClient' || fittings === null) return null
    const binding = await this.#opened(row, fittings)
    if ('code' in binding) return null
    const proof = await this.#proofBy(binding.credential, row, fittings, signal)
    return 'code' in proof ? proof : null
  }

  /** For an agent that was just seen to have no binding. */
  unbound(request: WireRequest): Prepared {
    return this.#without(request, credentialSentences.required)
  }

  async exchange(agentId: string, request: WireRequest, bounds: ExchangeLimits, signal?: AbortSignal): Promise<Sent> {
    const prepared = await this.prepare(agentId, request, signal)
    return prepared.kind === 'unsent' ? prepared : prepared.exchange(bounds, signal)
  }

  async openStream(
    agentId: string,
    request: WireRequest,
    bounds: StreamLimits,
    signal?: AbortSignal,
  ): Promise<Sent | Streaming> {
    const prepared = await this.prepare(agentId, request, signal)
    return prepared.kind === 'unsent' ? prepared : prepared.openStream(bounds, signal)
  }

  /**
   * For a card, which is public as often as not: goes without credentials where they may not go along, and `denial` says why,
   * for an agent that wants them. Null: nobody's agent yet, so nothing is looked up and nothing goes along.
   */
  async prepareCard(agentId: string | null, request: WireRequest): Promise<Prepared> {
    if (agentId === null) return this.#without(request, credentialSentences.required)
    const prepared = await this.prepare(agentId, request)
    return prepared.kind === 'unsent' ? this.#without(request, prepared.message) : prepared
  }

  /**
   * What an agent says without being asked, in a push: it knows its credential from our calls. Of an OAuth client only the token
   * that this process holds is known here. Rejects as the database does.
   */
  async masked(agentId: string, said: Uint8Array): Promise<Uint8Array> {
    const row = await this.#rows.read(agentId)
    if (row === null || row.sealed === null) return said
    const token = this.#fit(agentId, row)?.tokens.held ?? null
    try {
      const { credential } = await openBinding(this.#t.vault, { ...row, sealed: row.sealed })
      return masked(said, echoesOf(secretsOf(credential, token)))
    } catch (error) {
      // What cannot be opened was not used either, and whoever calls the agent says so.
      if (error instanceof VaultUnavailable) return said
      throw error
    }
  }

  #without(request: WireRequest, denial: string): Prepared {
    const { outbound } = this.#t
    return {
      kind: 'prepared',
      denial,
      exchange: (bounds, signal) => outbound.exchange(request, bounds, signal),
      openStream: (bounds, signal) => outbound.openStream(request, bounds, signal),
    }
  }

  #with(proof: Proof, { agentId, version }: CredentialRow, request: WireRequest): Prepared {
    const { outbound } = this.#t
    const echoes = echoesOf(proof.secrets)
    const heard = (sent: Sent): Sent => {
      if (sent.kind !== 'answered') return sent
      proof.refused(sent.status)
      return { ...sent, ...blotted(sent, echoes), body: masked(sent.body, echoes) }
    }
    return {
      kind: 'prepared',
      denial: credentialSentences.refused,
      exchange: async (bounds, signal) => heard(await outbound.exchange(request, bounds, signal, proof)),
      openStream: async (bounds, signal) => {
        const opened = await outbound.openStream(request, bounds, signal, proof)
        if (opened.kind !== 'streaming') return heard(opened)
        const words = blotted(opened, echoes)
        return { ...opened, ...words, chunks: maskedChunks(this.#whileBound(agentId, version, opened.chunks), echoes) }
      },
    }
  }

  /** Ends a stream whose binding was replaced or revoked since: it is opened again by the next one, or not at all. */
  async *#whileBound(
    agentId: string,
    version: number,
    chunks: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array, void> {
    let lookedAtMs = this.#t.monotonic()
    for await (const chunk of chunks) {
      if (this.#t.monotonic() - lookedAtMs >= lookAgainMs) {
        if (!(await this.#isBound(agentId, version))) throw new StreamBroken(new OutboundFailure('credentials'))
        lookedAtMs = this.#t.monotonic()
      }
      yield chunk
    }
  }

  async #isBound(agentId: string, version: number): Promise<boolean> {
    try {
      const row = await this.#rows.read(agentId)
      this.#fit(agentId, row)
      return row?.version === version
    } catch (error) {
      // A database that is away knows of no change either; what the stream brings waits for it anyway.
      if (isOutage(error)) return true
      throw error
    }
  }

  async #proofFor(
    row: CredentialRow,
    fittings: Fittings | null,
    url: string,
    signal: AbortSignal | undefined,
  ): Promise<Proof | Unsent> {
    if (fittings === null) return unsent('disabled')
    const binding = await this.#opened(row, fittings)
    if ('code' in binding) return binding
    if (!URL.canParse(url) || !binding.origins.includes(new URL(url).origin)) return unsent('destination')
    return this.#proofBy(binding.credential, row, fittings, signal)
  }

  async #opened(row: CredentialRow, fittings: Fittings): Promise<Binding | Unsent> {
    if (row.sealed === null) return unsent('disabled')
    try {
      return await openBinding(this.#t.vault, { ...row, sealed: row.sealed })
    } catch (error) {
      if (!(error instanceof VaultUnavailable)) throw error
      this.#tell(row, fittings, error.reason, 'a credential could not be opened')
      return unsent('vault')
    }
  }

  async #proofBy(
    credential: Credential,
    row: CredentialRow,
    fittings: Fittings,
    signal: AbortSignal | undefined,
  ): Promise<Proof | Unsent> {
    const refused = (status: number): void => {
      if (status === 401 || status === 403)
        this.#tell(row, fittings, `HTTP ${status}`, 'the agent refused the credential')
    }
    switch (credential.type) {
      case 'bearer':
        return { headers: bearer(credential.token), secrets: secretsOf(credential, null), refused }
      case 'apiKey':
        return { headers: { [credential.name]: credential.value }, secrets: secretsOf(credential, null), refused }
      case 'mtls':
        fittings.sockets ??= this.#t.outbound.socketsFor(certificateOf(credential))
        return { headers: {}, secrets: secretsOf(credential, null), sockets: fittings.sockets, refused }
      case 'oauthClient': {
        const { tokens } = fittings
        const asked = await untilAborted(signal, asToken(tokens.use(credential)))
        if (asked === null) return aborted
        if (asked instanceof OauthUnavailable) {
          this.#tell(row, fittings, asked.message, 'no access token for an agent')
          return unsent('oauth')
        }
        const dropped = (status: number): void => {
          if (status === 401) tokens.drop(asked)
          refused(status)
        }
        return { headers: bearer(asked), secrets: secretsOf(credential, asked), refused: dropped }
      }
    }
  }

  /** What is kept for the binding as it was just read; what was kept for another version of it goes. Null: none, or revoked. */
  #fit(agentId: string, row: CredentialRow | null): Fittings | null {
    const kept = this.#fittings.get(agentId)
    this.#fittings.delete(agentId)
    const current = row !== null && row.sealed !== null && kept?.version === row.version ? kept : null
    if (kept && !current) this.#letGo(kept)
    if (row === null || row.sealed === null) return null
    const fittings = current ?? this.#fittingsOf(row.version)
    this.#fittings.set(agentId, fittings)
    const [oldest] = this.#fittings
    if (this.#fittings.size > bindingsKept && oldest !== undefined) {
      this.#fittings.delete(oldest[0])
      this.#letGo(oldest[1])
    }
    return fittings
  }

  #fittingsOf(version: number): Fittings {
    const tokens = new OauthTokens(this.#t.outbound, this.#t.monotonic)
    return { version, tokens, sockets: null, told: new Set() }
  }

  #letGo({ sockets }: Fittings): void {
    if (sockets !== null) this.#t.outbound.retire(sockets)
  }

  #tell({ agentId, kind }: CredentialRow, { told }: Fittings, reason: string, message: string): void {
    if (told.has(reason)) return
    told.add(reason)
    this.#t.log.warn({ agentId, kind, reason }, message)
  }
}

/** Throws VaultUnavailable, also for what opens and is no binding of that kind. */
export async function openBinding(vault: Vault, row: CredentialRow & { readonly sealed: string }): Promise<Binding> {
  const parsed = Binding.safeParse(jsonOf(await vault.open(row, row.sealed)))
  if (!parsed.success || parsed.data.credential.type !== row.kind) throw new VaultUnavailable('unreadable')
  return parsed.data
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // JSON.parse's message holds a piece of what was sealed.
    throw new VaultUnavailable('unreadable')
  }
}

/** What an agent gets to see of a credential and could repeat: never a client's secret or a private key. */
function secretsOf(credential: Credential, token: string | null): readonly string[] {
  if (credential.type === 'bearer') return [credential.token]
  if (credential.type === 'apiKey') return [credential.value]
  return token === null ? [] : [token]
}

/** An answer's fields may repeat a secret as its body may: a type that is none is quoted in a command's error. */
const blotted = ({ contentType, headers }: Pick<Streaming, 'contentType' | 'headers'>, echoes: readonly Buffer[]) => ({
  contentType: maskedWords(contentType, echoes),
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, maskedWords(value, echoes)])),
})

const certificateOf = ({ cert, key, ca }: Extract<Credential, { type: 'mtls' }>): ClientCertificate => ({
  cert,
  key,
  ...(ca === undefined ? {} : { ca }),
})

const bearer = (token: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${token}` })

const unsentBy = (code: OutboundCode, message: string): Unsent => ({ kind: 'unsent', code, message })
const unsent = (reason: keyof typeof credentialSentences): Unsent =>
  unsentBy('credentials', credentialSentences[reason])
const aborted = unsentBy('aborted', new OutboundFailure('aborted').message)

const asToken = (using: Promise<string>): Promise<string | OauthUnavailable> =>
  using.catch((error: unknown) => {
    if (error instanceof OauthUnavailable) return error
    throw error
  })

/** Null when the signal aborts first: what is asked for goes on for whoever else waits for it. */
async function untilAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T | null> {
  if (signal === undefined) return work
  const { promise, resolve } = Promise.withResolvers<null>()
  const onAbort = (): void => resolve(null)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
