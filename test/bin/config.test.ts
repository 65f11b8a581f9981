/**
 * Every configuration variable, good and bad [console-http-api: Configuration variables; decided-shapes: Configuration
 * formats]: what it becomes, the one line that a wrong value is answered with, and that no line holds a secret.
 */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Config, ConfigError, readConfig, readDatabaseConfig, readWorkerConfig } from '../../bin/config.ts'

type Env = Record<string, string>
const hex = 'ab'.repeat(32)
const production = { NODE_ENV: 'production' }
const oidc: Env = {
  ...production,
  A2A_AUTH_MODE: 'oidc',
  A2A_OIDC_ISSUER: 'https://issuer.example/realm',
  A2A_OIDC_CLIENT_ID: 'console',
  A2A_OIDC_CLIENT_SECRET: 'hush-hush-secret',
  A2A_AUTH_ORGANIZATION_SLUG: 'acme',
  A2A_AUTH_FLOW_KEY: hex,
  A2A_AUTH_ORIGIN: 'https://console.example',
}
const postgres: Env = {
  A2A_DATABASE_PROFILE: 'postgresql',
  A2A_DATABASE_URL: 'postgres://me:hush@db.example/signalbox',
}
const push: Env = { A2A_PUSH_CALLBACK_ORIGIN: 'https://console.example', A2A_PUSH_SIGNING_KEY: hex }
const notify: Env = {
  A2A_NOTIFY_WEBHOOK_URL: 'https://hooks.example/T1?key=hush',
  A2A_NOTIFY_WEBHOOK_SECRET: 's'.repeat(32),
}
const jwk = { kid: 'k1', alg: 'ES256', kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }
const trusted = (value: unknown): Env => ({ A2A_TRUSTED_CARD_KEYS: JSON.stringify(value) })

function refusalOf(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'nothing was refused'
}

test('an empty environment is a development console on loopback with the embedded database', () => {
  const data = join(homedir(), '.signalbox')
  expect(readConfig({})).toEqual({
    production: false,
    listen: { host: '127.0.0.1', port: 3002 },
    auth: { mode: 'development', organization: 'local' },
    database: { profile: 'pglite', directory: join(data, 'pglite'), autoMigrate: true },
    directories: { data, pglite: join(data, 'pglite'), artifacts: join(data, 'artifacts') },
    worker: { mode: 'embedded', decisionSweepMs: 15_000 },
    keeping: { factDays: 7, logDays: 30, artifactGraceMs: 24 * 3_600_000 },
    network: { profile: 'development', allowedOrigins: [], allowPrivateNetworks: false },
    push: null,
    notify: null,
    vault: null,
    cards: { requireSigned: false, trustedKeys: {} },
    agents: { registered: [], sidebandExtensionUris: [], extensionHost: 'signalbox.example' },
    metrics: null,
    logLevel: 'info',
    unknownVariables: [],
  } satisfies Config)
})

const good: [string, Env, (config: Config) => unknown, unknown][] = [
  [
    'a blank value is unset',
    { A2A_DATABASE_PROFILE: ' ', PORT: '' },
    (c) => [c.database.profile, c.listen.port],
    ['pglite', 3002],
  ],
  ['PORT', { PORT: '4001' }, (c) => c.listen.port, 4001],
  ['PORT 0 is any free one', { PORT: '0' }, (c) => c.listen.port, 0],
  ['HOST', { HOST: '[::1]' }, (c) => c.listen.host, '::1'],
  ['HOST beyond loopback under oidc', { ...oidc, HOST: '0.0.0.0' }, (c) => c.listen.host, '0.0.0.0'],
  [
    'retention',
    { A2A_FACT_RETENTION_DAYS: '1', A2A_LOG_RETENTION_DAYS: '90', A2A_ARTIFACT_GRACE_HOURS: '2' },
    (c) => c.keeping,
    { factDays: 1, logDays: 90, artifactGraceMs: 2 * 3_600_000 },
  ],
  ['A2A_AUTH_MODE in production is oidc', { ...oidc, A2A_AUTH_MODE: '' }, (c) => c.auth.mode, 'oidc'],
  [
    'both switches allow development in production',
    { ...production, A2A_AUTH_MODE: 'development', A2A_ALLOW_DEVELOPMENT_AUTH: 'true' },
    (c) => [c.auth.mode, c.network.profile, c.production],
    ['development', 'development', true],
  ],
  [
    'oidc',
    { ...oidc, A2A_AUTH_SESSION_SECONDS: '60', A2A_AUTH_IDLE_SECONDS: '86400' },
    (c) => c.auth,
    {
      mode: 'oidc',
      issuer: 'https://issuer.example/realm',
      clientId: 'console',
      clientSecret: 'hush-hush-secret',
      organization: 'acme',
      flowKey: hex,
      origin: 'https://console.example',
      sessionSeconds: 60,
      idleSeconds: 86_400,
    },
  ],
  ['oidc means the production network', oidc, (c) => c.network.profile, 'production'],
  [
    'postgresql',
    postgres,
    (c) => c.database,
    { profile: 'postgresql', url: postgres.A2A_DATABASE_URL, autoMigrate: true },
  ],
  ['A2A_AUTO_MIGRATE', { A2A_AUTO_MIGRATE: 'false' }, (c) => c.database.autoMigrate, false],
  ['A2A_AUTO_MIGRATE in production waits for db:migrate', oidc, (c) => c.database.autoMigrate, false],
  [
    'A2A_AUTO_MIGRATE as the launcher sets it',
    { ...oidc, A2A_AUTO_MIGRATE: 'true' },
    (c) => c.database.autoMigrate,
    true,
  ],
  [
    'directories',
    { A2A_DATA_DIR: '/d', A2A_PGLITE_DATA_DIR: '/p', A2A_ARTIFACT_DATA_DIR: '/d/a/../b' },
    (c) => c.directories,
    { data: '/d', pglite: '/p', artifacts: '/d/b' },
  ],
  ['directories in A2A_DATA_DIR', { A2A_DATA_DIR: '/d' }, (c) => c.directories.artifacts, '/d/artifacts'],
  ['an external worker', { ...postgres, A2A_COMMAND_WORKER_MODE: 'external' }, (c) => c.worker.mode, 'external'],
  ['A2A_DECISION_SWEEP_MS', { A2A_DECISION_SWEEP_MS: '100' }, (c) => c.worker.decisionSweepMs, 100],
  ['A2A_DECISION_SWEEP_MS below its floor', { A2A_DECISION_SWEEP_MS: '99' }, (c) => c.worker.decisionSweepMs, 15_000],
  [
    'A2A_DECISION_SWEEP_MS without a number',
    { A2A_DECISION_SWEEP_MS: 'often' },
    (c) => c.worker.decisionSweepMs,
    15_000,
  ],
  ['push', push, (c) => c.push, { callbackOrigin: 'https://console.example', signingKey: hex }],
  [
    'push over loopback http',
    { ...push, A2A_PUSH_CALLBACK_ORIGIN: 'http://127.0.0.1:3002', A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'true' },
    (c) => c.push?.callbackOrigin,
    'http://127.0.0.1:3002',
  ],
  ['push stays off with a key alone', { A2A_PUSH_SIGNING_KEY: hex }, (c) => c.push, null],
  [
    'notify',
    { ...notify, A2A_NOTIFY_WEBHOOK_SECRET_PREVIOUS: 'p'.repeat(32), A2A_NOTIFY_WEBHOOK_ORGANIZATION: 'acme' },
    (c) => c.notify,
    { url: notify.A2A_NOTIFY_WEBHOOK_URL, organization: 'acme', secrets: ['s'.repeat(32), 'p'.repeat(32)] },
  ],
  ['notify for the one organization', notify, (c) => c.notify?.organization, 'local'],
  [
    'A2A_ALLOWED_AGENT_ORIGINS',
    { A2A_ALLOWED_AGENT_ORIGINS: ' https://a.example , https://b.example:8443,,https://a.example' },
    (c) => c.network.allowedOrigins,
    ['https://a.example', 'https://b.example:8443'],
  ],
  ['A2A_ALLOW_PRIVATE_NETWORKS', { A2A_ALLOW_PRIVATE_NETWORKS: 'true' }, (c) => c.network.allowPrivateNetworks, true],
  [
    'the key ring',
    { A2A_VAULT_KEYS: JSON.stringify({ old: hex.toUpperCase(), new: hex }), A2A_VAULT_ACTIVE_KEY: 'new' },
    (c) => c.vault,
    { keys: { old: hex, new: hex }, activeKey: 'new' },
  ],
  ['A2A_REQUIRE_SIGNED_CARDS', { A2A_REQUIRE_SIGNED_CARDS: 'true' }, (c) => c.cards.requireSigned, true],
  [
    'A2A_TRUSTED_CARD_KEYS',
    trusted({ 'https://a.example/': [jwk] }),
    (c) => c.cards.trustedKeys,
    { 'https://a.example': [jwk] },
  ],
  [
    'A2A_REGISTERED_AGENTS',
    { A2A_REGISTERED_AGENTS: 'https://a.example/card.json, http://127.0.0.1:4010' },
    (c) => c.agents.registered,
    ['https://a.example/card.json', 'http://127.0.0.1:4010/'],
  ],
  [
    'A2A_SIDEBAND_EXTENSION_URIS',
    { A2A_SIDEBAND_EXTENSION_URIS: 'https://x.example/sideband/v1,urn:sideband' },
    (c) => c.agents.sidebandExtensionUris,
    ['https://x.example/sideband/v1', 'urn:sideband'],
  ],
  ['A2A_EXTENSION_HOST', { A2A_EXTENSION_HOST: 'Ext.Acme.example' }, (c) => c.agents.extensionHost, 'ext.acme.example'],
  ['A2A_METRICS_PORT', { A2A_METRICS_PORT: '9464' }, (c) => c.metrics, { port: 9464 }],
  ['A2A_LOG_LEVEL', { A2A_LOG_LEVEL: 'silent' }, (c) => c.logLevel, 'silent'],
  [
    'a misspelt name is told',
    { A2A_ALLOWED_ORIGINS: 'x', A2A_AGUI_ENABLED: 'maybe', A2A_TEST_CHROMIUM: '/x', PATH: '/' },
    (c) => c.unknownVariables,
    ['A2A_ALLOWED_ORIGINS'],
  ],
]

describe('a good value', () => {
  test.each(good)('%s', (_name, env, read, expected) => {
    expect(read(readConfig(env))).toEqual(expected)
  })
})

const without = (env: Env, name: string): Env => Object.fromEntries(Object.entries(env).filter(([key]) => key !== name))
const nonLoopback = 'HOST must be a loopback address unless A2A_AUTH_MODE is oidc.'
const callback = 'A2A_PUSH_CALLBACK_ORIGIN requires an HTTPS origin (or explicitly enabled loopback HTTP).'
const pushKey = 'A2A_PUSH_SIGNING_KEY must contain 64 hexadecimal characters.'
const origin = 'must be an http(s) origin without a path.'
const keyRing = 'A2A_VAULT_KEYS must be a JSON object: key id to 64 hexadecimal characters.'
const cardKeys = 'A2A_TRUSTED_CARD_KEYS must be a JSON object: card origin to an array of public JWKs with kid and alg.'

const bad: [Env, string][] = [
  [{ PORT: '65536' }, 'PORT must be a port from 0 to 65535.'],
  [{ PORT: '-1' }, 'PORT must be a port from 0 to 65535.'],
  [{ HOST: '0.0.0.0' }, nonLoopback],
  [{ HOST: '127.0.0.1.example' }, nonLoopback],
  [{ A2A_AUTH_MODE: 'none' }, 'A2A_AUTH_MODE must be development or oidc.'],
  [{ A2A_ALLOW_DEVELOPMENT_AUTH: 'yes' }, 'A2A_ALLOW_DEVELOPMENT_AUTH must be true or false.'],
  [
    { ...production, A2A_AUTH_MODE: 'development' },
    'A2A_AUTH_MODE=development in production also requires A2A_ALLOW_DEVELOPMENT_AUTH=true.',
  ],
  [{ ...production, A2A_ALLOW_DEVELOPMENT_AUTH: 'true' }, 'A2A_OIDC_ISSUER is required by A2A_AUTH_MODE=oidc.'],
  ...Object.keys(oidc)
    .slice(2)
    .map((name): [Env, string] => [without(oidc, name), `${name} is required by A2A_AUTH_MODE=oidc.`]),
  ...['http://issuer.example', 'https://issuer.example?a=b', 'https://issuer.example#f', 'issuer'].map(
    (value): [Env, string] => [
      { ...oidc, A2A_OIDC_ISSUER: value },
      'A2A_OIDC_ISSUER must be an HTTPS URL without query or fragment.',
    ],
  ),
  [
    { A2A_AUTH_ORGANIZATION_SLUG: 'Acme Inc' },
    'A2A_AUTH_ORGANIZATION_SLUG must be a slug of lower-case letters, digits and hyphens, at most 63 characters.',
  ],
  [{ ...oidc, A2A_AUTH_FLOW_KEY: 'hush' }, 'A2A_AUTH_FLOW_KEY must contain 64 hexadecimal characters.'],
  ...['http://console.example', 'https://console.example/app', 'https://a:hush@console.example'].map(
    (value): [Env, string] => [
      { ...oidc, A2A_AUTH_ORIGIN: value },
      'A2A_AUTH_ORIGIN must be an HTTPS origin without a path.',
    ],
  ),
  ...['59', '86401', '1h'].map((value): [Env, string] => [
    { ...oidc, A2A_AUTH_SESSION_SECONDS: value },
    'A2A_AUTH_SESSION_SECONDS must be an integer from 60 to 86400.',
  ]),
  [{ ...oidc, A2A_AUTH_IDLE_SECONDS: '5' }, 'A2A_AUTH_IDLE_SECONDS must be an integer from 60 to 86400.'],
  [{ A2A_DATABASE_PROFILE: 'sqlite' }, 'A2A_DATABASE_PROFILE must be pglite or postgresql.'],
  [{ A2A_DATABASE_PROFILE: 'postgresql' }, 'A2A_DATABASE_URL is required by the postgresql profile.'],
  [{ ...postgres, A2A_DATABASE_URL: 'mysql://me:hush@db' }, 'A2A_DATABASE_URL must be a postgres: or postgresql: URL.'],
  [{ A2A_AUTO_MIGRATE: '0' }, 'A2A_AUTO_MIGRATE must be true or false.'],
  [{ A2A_COMMAND_WORKER_MODE: 'both' }, 'Invalid A2A_COMMAND_WORKER_MODE.'],
  [{ A2A_COMMAND_WORKER_MODE: 'external' }, 'External command workers require PostgreSQL.'],
  [{ ...push, A2A_PUSH_CALLBACK_ORIGIN: 'console' }, 'Invalid A2A_PUSH_CALLBACK_ORIGIN.'],
  ...[
    'http://console.example',
    'http://127.0.0.1:3002',
    'https://console.example/push',
    'https://console.example?x=hush',
    'https://me:hush@console.example',
    'https://*.console.example',
  ].map((value): [Env, string] => [{ ...push, A2A_PUSH_CALLBACK_ORIGIN: value }, callback]),
  [{ ...push, A2A_PUSH_CALLBACK_ORIGIN: 'http://console.example', A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'true' }, callback],
  [without(push, 'A2A_PUSH_SIGNING_KEY'), pushKey],
  [{ A2A_PUSH_SIGNING_KEY: `${hex}00` }, pushKey],
  [{ A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'TRUE' }, 'A2A_PUSH_ALLOW_LOOPBACK_HTTP must be true or false.'],
  [{ ...notify, A2A_NOTIFY_WEBHOOK_URL: 'http://hooks.example/hush' }, 'A2A_NOTIFY_WEBHOOK_URL must be an HTTPS URL.'],
  [
    { ...notify, A2A_NOTIFY_WEBHOOK_URL: 'https://me:hush@hooks.example' },
    'A2A_NOTIFY_WEBHOOK_URL must be an HTTPS URL without credentials or fragment.',
  ],
  [{ ...notify, A2A_NOTIFY_WEBHOOK_SECRET: 'hush' }, 'A2A_NOTIFY_WEBHOOK_SECRET must have at least 32 characters.'],
  [
    { ...notify, A2A_NOTIFY_WEBHOOK_SECRET_PREVIOUS: 'hush' },
    'A2A_NOTIFY_WEBHOOK_SECRET_PREVIOUS must have at least 32 characters.',
  ],
  [
    { A2A_ALLOWED_AGENT_ORIGINS: 'https://a.example,https://b.example/x' },
    `A2A_ALLOWED_AGENT_ORIGINS holds "https://b.example/x", which ${origin}`,
  ],
  [
    { A2A_ALLOWED_AGENT_ORIGINS: 'https://me:hush@a.example' },
    `A2A_ALLOWED_AGENT_ORIGINS holds "https://a.example/", which ${origin}`,
  ],
  [
    { A2A_ALLOWED_AGENT_ORIGINS: 'https://*.a.example' },
    `A2A_ALLOWED_AGENT_ORIGINS holds "https://*.a.example/", which ${origin}`,
  ],
  [{ A2A_ALLOWED_AGENT_ORIGINS: 'a.example' }, `A2A_ALLOWED_AGENT_ORIGINS holds "a.example", which ${origin}`],
  [{ A2A_ALLOW_PRIVATE_NETWORKS: 'on' }, 'A2A_ALLOW_PRIVATE_NETWORKS must be true or false.'],
  [{ A2A_VAULT_KEYS: 'hush', A2A_VAULT_ACTIVE_KEY: 'k1' }, keyRing],
  [{ A2A_VAULT_KEYS: '{"k1":"hush"}', A2A_VAULT_ACTIVE_KEY: 'k1' }, keyRing],
  [
    { A2A_VAULT_KEYS: JSON.stringify({ k1: hex }), A2A_VAULT_ACTIVE_KEY: 'k2' },
    'A2A_VAULT_ACTIVE_KEY must be the id of one of the keys in A2A_VAULT_KEYS.',
  ],
  [{ A2A_VAULT_ACTIVE_KEY: 'k1' }, 'A2A_VAULT_ACTIVE_KEY is set without A2A_VAULT_KEYS.'],
  [{ A2A_REQUIRE_SIGNED_CARDS: '1' }, 'A2A_REQUIRE_SIGNED_CARDS must be true or false.'],
  [{ A2A_TRUSTED_CARD_KEYS: '[' }, cardKeys],
  [trusted({ 'https://a.example': [{ ...jwk, alg: 'HS256' }] }), `${cardKeys} Look at https://a.example.0.alg.`],
  [trusted({ 'https://a.example': [{ ...jwk, d: 'hush' }] }), `${cardKeys} Look at https://a.example.0.`],
  [trusted({ 'https://a.example': [{ ...jwk, kid: undefined }] }), `${cardKeys} Look at https://a.example.0.kid.`],
  [trusted({ 'a.example': [jwk] }), 'A2A_TRUSTED_CARD_KEYS holds "a.example", which must be an origin without a path.'],
  [
    { A2A_REGISTERED_AGENTS: 'ftp://a.example/card.json' },
    'A2A_REGISTERED_AGENTS holds "ftp://a.example/card.json", which must be http(s).',
  ],
  [
    { A2A_REGISTERED_AGENTS: 'https://me:hush@a.example/c.json' },
    'A2A_REGISTERED_AGENTS holds "https://a.example/c.json", which must not contain credentials, query strings or fragments.',
  ],
  [
    { A2A_SIDEBAND_EXTENSION_URIS: 'sideband' },
    'A2A_SIDEBAND_EXTENSION_URIS holds "sideband", which must be an absolute URI.',
  ],
  [{ A2A_EXTENSION_HOST: 'https://x.example' }, 'A2A_EXTENSION_HOST must be a host name.'],
  [{ A2A_METRICS_PORT: '0' }, 'A2A_METRICS_PORT must be an integer from 1 to 65535.'],
  [{ A2A_LOG_LEVEL: 'loud' }, 'A2A_LOG_LEVEL must be silent or fatal or error or warn or info or debug or trace.'],
]

describe('a bad value', () => {
  test.each(bad)('%j', (env, sentence) => {
    expect(refusalOf(() => readConfig(env))).toBe(sentence)
    expect(sentence).not.toMatch(/hush|\n/)
  })
})

describe('the separate worker', () => {
  const refused = (env: Env) => refusalOf(() => readWorkerConfig(env))
  test('refuses the embedded database, in whichever mode', () => {
    const sentence = 'The separate worker requires PostgreSQL; PGlite uses embedded dispatch.'
    expect(refused(oidc)).toBe(sentence)
    expect(refused({ ...oidc, A2A_COMMAND_WORKER_MODE: 'external' })).toBe(sentence)
  })
  test('needs production in its own environment', () => {
    expect(refused(postgres)).toBe('The separate worker requires NODE_ENV=production.')
    expect(readWorkerConfig({ ...oidc, ...postgres }).database.profile).toBe('postgresql')
  })
})

test('a database script reads its own variables, complete sign-in or not', () => {
  const { database, directories } = readDatabaseConfig({ ...production, A2A_DATA_DIR: '/d' })
  expect([database.profile, directories.pglite]).toEqual(['pglite', '/d/pglite'])
})
