/**
 * The variables: every one the console reads, each with its rule, in one schema. Owns what a single value must look
 * like; what values mean together is bin/config.ts. A message is either a predicate that is put behind the variable's
 * name, or a whole sentence that already holds it. No message repeats a value that may be a secret.
 */
import * as z from 'zod/mini'
import { parseCardUrl } from '../domain/agent.ts'

/** What a rule answers instead of a value: the predicate behind the variable's name, or a sentence that holds it. */
class Wrong {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

const rule = <T>(read: (text: string) => T | Wrong) =>
  z.optional(
    z.pipe(
      z.string(),
      z.transform((text, context): T => {
        const value = read(text)
        if (!(value instanceof Wrong)) return value
        context.issues.push({ code: 'custom', message: value.message, input: text })
        return z.NEVER
      }),
    ),
  )

const text = rule((value) => value)
const oneOf = <const T extends string>(...allowed: T[]) =>
  rule((value) => allowed.find((each) => each === value) ?? new Wrong(`must be ${allowed.join(' or ')}.`))
const yesOrNo = rule((value) =>
  value === 'true' ? true : value === 'false' ? false : new Wrong('must be true or false.'),
)

const whole = (value: string): number => (/^\d{1,15}$/.test(value) ? Number(value) : Number.NaN)
const integer = (from: number, to: number) =>
  rule((value) => {
    const n = whole(value)
    return n >= from && n <= to ? n : new Wrong(`must be an integer from ${from} to ${to}.`)
  })

const hex64 = /^[0-9a-fA-F]{64}$/
const key = (message: string) => rule((value) => (hex64.test(value) ? value.toLowerCase() : new Wrong(message)))

/** One organization's name in URLs and scripts. */
const slug = rule((value) =>
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(value)
    ? value
    : new Wrong('must be a slug of lower-case letters, digits and hyphens, at most 63 characters.'),
)

const parseUrl = (value: string): URL | null => (URL.canParse(value) ? new URL(value) : null)

/**
 * The origin that a text is, or null: an origin has no path, query, fragment or credentials. A closing slash is let pass. The URL
 * standard takes a `*` for a host's name, and whoever wrote one meant hosts that would never match.
 */
export function originOf(value: string): string | null {
  const url = parseUrl(value)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hostname.includes('*')) return null
  return url.pathname === '/' && !url.username && !url.password && !/[?#]/.test(value) ? url.origin : null
}

/** Names an entry without what a URL can hide: its credentials, query and fragment. */
function nameOf(entry: string): string {
  const url = parseUrl(entry)
  if (url?.host) return `"${url.protocol}//${url.host}${url.pathname}"`
  return /[@?#]/.test(entry) ? 'an entry' : `"${entry.slice(0, 200)}"`
}

const entries = (value: string): string[] =>
  value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
const list = (read: (entry: string) => string | Wrong) =>
  rule((value) => {
    const found = new Set<string>()
    for (const entry of entries(value)) {
      const kept = read(entry)
      if (kept instanceof Wrong) return new Wrong(`holds ${nameOf(entry)}, which ${kept.message}`)
      found.add(kept)
    }
    return [...found]
  })

function parseObject(value: string): Record<string, unknown> | null {
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : null
  } catch {
    return null // the rule says what it expects; JSON.parse's own message would print the value
  }
}

const vaultKeys = rule((value) => {
  const parsed = parseObject(value)
  const keys = Object.entries(parsed ?? {})
  const good = keys.every(([id, each]) => id !== '' && typeof each === 'string' && hex64.test(each))
  if (keys.length === 0 || !good) return new Wrong('must be a JSON object: key id to 64 hexadecimal characters.')
  return Object.fromEntries(keys.map(([id, each]) => [id, String(each).toLowerCase()]))
})

/** A public key that verifies cards. `none` and symmetric algorithms verify nothing that a stranger could not sign. */
const PublicKey = z
  .looseObject({
    kid: z.string().check(z.minLength(1)),
    alg: z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']),
    kty: z.enum(['RSA', 'EC', 'OKP']),
  })
  .check(z.refine((jwk) => !('d' in jwk) && !('k' in jwk), { error: 'holds a private key' }))
const TrustedKeys = z.record(z.string(), z.array(PublicKey).check(z.minLength(1)))
export type TrustedKeys = z.infer<typeof TrustedKeys>

const trustedKeys = rule((value) => {
  const expected = 'must be a JSON object: card origin to an array of public JWKs with kid and alg.'
  const parsed = TrustedKeys.safeParse(parseObject(value) ?? '')
  if (!parsed.success) {
    const where = parsed.error.issues[0]?.path.join('.') ?? ''
    return new Wrong(where === '' ? expected : `${expected} Look at ${where}.`)
  }
  const byOrigin: TrustedKeys = {}
  for (const [entry, keys] of Object.entries(parsed.data)) {
    const origin = originOf(entry)
    if (!origin) return new Wrong(`holds ${nameOf(entry)}, which must be an origin without a path.`)
    // Two spellings of one origin, a default port say, are one origin with the keys of both.
    byOrigin[origin] = [...(byOrigin[origin] ?? []), ...keys]
  }
  return byOrigin
})

const cardUrlFaults = {
  scheme: 'must be http(s).',
  decorated: 'must not contain credentials, query strings or fragments.',
  length: 'exceeds 1024 characters.',
}

export const Variables = z.object({
  NODE_ENV: text,
  HOST: text,
  PORT: rule((value) => (whole(value) <= 65_535 ? whole(value) : new Wrong('must be a port from 0 to 65535.'))),

  A2A_AUTH_MODE: oneOf('development', 'oidc'),
  A2A_ALLOW_DEVELOPMENT_AUTH: yesOrNo,
  A2A_OIDC_ISSUER: rule((value) => {
    const url = parseUrl(value)
    const good = url?.protocol === 'https:' && !url.username && !url.password && !/[?#]/.test(value)
    return good ? value : new Wrong('must be an HTTPS URL without query or fragment.')
  }),
  A2A_OIDC_CLIENT_ID: text,
  A2A_OIDC_CLIENT_SECRET: text,
  A2A_AUTH_ORGANIZATION_SLUG: slug,
  A2A_AUTH_FLOW_KEY: key('must contain 64 hexadecimal characters.'),
  A2A_AUTH_ORIGIN: rule((value) => {
    const origin = originOf(value)
    return origin?.startsWith('https:') ? origin : new Wrong('must be an HTTPS origin without a path.')
  }),
  A2A_AUTH_SESSION_SECONDS: integer(60, 86_400),
  A2A_AUTH_IDLE_SECONDS: integer(60, 86_400),

  A2A_DATABASE_PROFILE: oneOf('pglite', 'postgresql'),
  A2A_DATABASE_URL: rule((value) => {
    const protocol = parseUrl(value)?.protocol
    return protocol === 'postgres:' || protocol === 'postgresql:'
      ? value
      : new Wrong('must be a postgres: or postgresql: URL.')
  }),
  A2A_PGLITE_DATA_DIR: text,
  A2A_DATA_DIR: text,
  A2A_ARTIFACT_DATA_DIR: text,
  A2A_AUTO_MIGRATE: yesOrNo,

  // Beyond the specification: how long diagnostics and unreferenced bytes are kept (docs/operations.md).
  A2A_FACT_RETENTION_DAYS: integer(1, 36_500),
  A2A_LOG_RETENTION_DAYS: integer(1, 36_500),
  A2A_ARTIFACT_GRACE_HOURS: integer(1, 87_600),

  A2A_COMMAND_WORKER_MODE: rule((value) =>
    value === 'embedded' || value === 'external' ? value : new Wrong('Invalid A2A_COMMAND_WORKER_MODE.'),
  ),
  // The one lenient variable: the specification falls back instead of stopping.
  A2A_DECISION_SWEEP_MS: rule((value) => (whole(value) >= 100 ? Math.min(whole(value), 2 ** 31 - 1) : 15_000)),

  A2A_PUSH_CALLBACK_ORIGIN: rule((value) => parseUrl(value) ?? new Wrong('Invalid A2A_PUSH_CALLBACK_ORIGIN.')),
  A2A_PUSH_SIGNING_KEY: key('A2A_PUSH_SIGNING_KEY must contain 64 hexadecimal characters.'),
  A2A_PUSH_ALLOW_LOOPBACK_HTTP: yesOrNo,

  A2A_NOTIFY_WEBHOOK_URL: rule((value) => {
    const url = parseUrl(value)
    const good = url && ['http:', 'https:'].includes(url.protocol) && !url.username && !url.password && !url.hash
    return good ? url : new Wrong('must be an HTTPS URL without credentials or fragment.')
  }),
  A2A_NOTIFY_WEBHOOK_ORGANIZATION: slug,
  A2A_NOTIFY_WEBHOOK_SECRET: text,
  A2A_NOTIFY_WEBHOOK_SECRET_PREVIOUS: text,

  A2A_ALLOWED_AGENT_ORIGINS: list((entry) => originOf(entry) ?? new Wrong('must be an http(s) origin without a path.')),
  A2A_ALLOW_PRIVATE_NETWORKS: yesOrNo,

  A2A_VAULT_KEYS: vaultKeys,
  A2A_VAULT_ACTIVE_KEY: text,

  A2A_REQUIRE_SIGNED_CARDS: yesOrNo,
  A2A_TRUSTED_CARD_KEYS: trustedKeys,

  A2A_REGISTERED_AGENTS: list((entry) => {
    const parsed = parseCardUrl(entry)
    return 'url' in parsed ? parsed.url : new Wrong(cardUrlFaults[parsed.fault])
  }),
  A2A_SIDEBAND_EXTENSION_URIS: list((entry) =>
    parseUrl(entry) && entry.length <= 1024 ? entry : new Wrong('must be an absolute URI.'),
  ),
  A2A_EXTENSION_HOST: rule((value) =>
    /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i.test(value)
      ? value.toLowerCase()
      : new Wrong('must be a host name.'),
  ),
  A2A_METRICS_PORT: integer(1, 65_535),
  A2A_LOG_LEVEL: oneOf('silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'),
})
export type Variables = z.infer<typeof Variables>
