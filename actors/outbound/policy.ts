/**
 * Who may be reached from here: the rules of the specification's "Outbound network policy", and the closed set of ways
 * in which a request fails, with the sentence of each. Pure; owns no socket (connector.ts) and no time.
 */
import { isIP } from 'node:net'
import type { LostAnswer } from '../../domain/lost-answer.ts'
import { classifyAddress } from './addresses.ts'

export interface OutboundPolicy {
  readonly profile: 'development' | 'production'
  /** RFC 1918, shared and unique-local addresses may be reached. Never opens link-local or metadata addresses. */
  readonly allowPrivateNetworks: boolean
  /** Exact origins, no path. Asked in production only. */
  readonly allowedOrigins: readonly string[]
}

/** Sentences are the specification's ("Errors", rows Network and Card discovery); what it does not name stays generic. */
const generic = 'Agent network request failed.'
export const outboundSentences = {
  'invalid-request': generic,
  'origin-not-allowed': 'Agent target is not in the configured origin allowlist.',
  'https-required': 'Production agent targets require HTTPS.',
  'blocked-address': 'Agent network address is blocked.',
  unresolved: generic,
  unreachable: generic,
  tls: generic,
  redirect: 'Agent redirects are not permitted.',
  'too-large': 'Agent response exceeds the safety limit.',
  timeout: generic,
  reset: generic,
  malformed: generic,
  aborted: generic,
  /** Its own sentence each time (domain/credential.ts). */
  credentials: 'Protected agent operation failed.',
} as const

export type OutboundCode = keyof typeof outboundSentences

/** Why a request ended without a whole answer. Safe to show; the cause is for the log. */
export class OutboundFailure extends Error {
  override readonly name = 'OutboundFailure'
  readonly code: OutboundCode
  /** What came instead of an answer, where that is more than the code says. */
  readonly instead: LostAnswer | null
  constructor(code: OutboundCode, options: { cause?: unknown; message?: string; instead?: LostAnswer } = {}) {
    super(options.message ?? outboundSentences[code], 'cause' in options ? { cause: options.cause } : {})
    this.code = code
    this.instead = options.instead ?? null
  }
}

/**
 * Names under which clouds serve metadata to their hosts. Inside one they resolve to blocked addresses anyway; a name that is
 * handed to whatever resolves it here, search domains included, is not worth the question.
 */
const metadataNames: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.tencentyun.com',
  'metadata.packet.net',
  'metadata.platformequinix.com',
])

/** Checks a target by its URL alone; a name's addresses are checked when it is connected to. */
export function admit(policy: OutboundPolicy, target: string): URL | OutboundFailure {
  const url = URL.parse(target)
  if (url === null) return new OutboundFailure('invalid-request')
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:'
  // Credentials in a URL would be a second way to send a secret, past the binding of secrets to origins.
  if (!isWeb || url.username !== '' || url.password !== '') return new OutboundFailure('invalid-request')
  if (policy.profile === 'production') {
    if (!policy.allowedOrigins.includes(url.origin)) return new OutboundFailure('origin-not-allowed')
    if (url.protocol !== 'https:') return new OutboundFailure('https-required')
  }
  const literal = url.hostname.replace(/^\[|\]$/g, '')
  const name = literal.replace(/\.$/, '')
  // These names are this machine, known to a resolver or not [RFC 6761 §6.3].
  const isHere = policy.profile === 'production' && /(?:^|\.)localhost$/.test(name)
  if (isHere || metadataNames.has(name)) return new OutboundFailure('blocked-address')
  if (isIP(literal) !== 0 && !permitsAddress(policy, literal)) return new OutboundFailure('blocked-address')
  return url
}

/** Loopback is where demo and development agents live; in production it is the console's own neighbours. */
export function permitsAddress(policy: OutboundPolicy, address: string): boolean {
  const is = classifyAddress(address)
  if (is === 'public') return true
  if (is === 'private') return policy.allowPrivateNetworks
  return is === 'loopback' && policy.profile === 'development'
}
