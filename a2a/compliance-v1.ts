/**
 * The checks of a 1.0 card: interfaces, security in ProtoJSON shape, and what is left over from 0.3. A card whose version cannot be told is
 * judged by these, since it should become one.
 */
import { isAbsoluteUrl, isText, look, objectAt, objectsOf, pointer } from './compliance-checks.ts'
import type { Check } from './compliance-checks.ts'
import { field, isObject } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { unwrapScheme } from './security-schemes.ts'

const interfacesOf = (card: JsonObject) => objectsOf(card, 'supportedInterfaces')

/** What tells two interfaces apart. */
const identityNames = ['url', 'protocolBinding', 'protocolVersion', 'tenant']

const isLoopback = (url: URL): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)

const interfaces: readonly Check[] = [
  {
    id: 'interfaces.some',
    severity: 'error',
    spec: '8.3.1',
    *look(card) {
      const value = field(card, 'supportedInterfaces')
      const given = Array.isArray(value) && value.length > 0
      yield look('/supportedInterfaces', given, '`supportedInterfaces` needs at least one interface.')
    },
  },
  {
    id: 'interface.url',
    severity: 'error',
    spec: '4.4.6',
    *look(card) {
      for (const { item, path } of interfacesOf(card)) {
        const url = field(item, 'url')
        // A gRPC interface is addressed by host and port.
        const fits = field(item, 'protocolBinding') === 'GRPC' ? isText(url) : isAbsoluteUrl(url)
        yield look(`${path}/url`, fits, 'The `url` of an interface must be absolute, http or https.')
      }
    },
  },
  {
    id: 'interface.https',
    severity: 'warning',
    spec: '7.1',
    *look(card) {
      for (const { item, path } of interfacesOf(card)) {
        const url = field(item, 'url')
        if (!isAbsoluteUrl(url)) continue
        const parsed = new URL(url)
        const safe = parsed.protocol === 'https:' || isLoopback(parsed)
        yield look(`${path}/url`, safe, 'Production interfaces must use HTTPS.')
      }
    },
  },
  {
    id: 'interface.binding',
    severity: 'error',
    spec: '4.4.6',
    *look(card) {
      for (const { item, path } of interfacesOf(card))
        yield look(
          `${path}/protocolBinding`,
          isText(field(item, 'protocolBinding')),
          'An interface needs a `protocolBinding`.',
        )
    },
  },
  {
    id: 'interface.bindingKnown',
    severity: 'info',
    spec: '5.8',
    *look(card) {
      for (const { item, path } of interfacesOf(card)) {
        const binding = field(item, 'protocolBinding')
        const known = binding === 'JSONRPC' || binding === 'HTTP+JSON' || binding === 'GRPC'
        if (isText(binding))
          yield look(`${path}/protocolBinding`, known, 'The binding is none of JSONRPC, HTTP+JSON and GRPC.')
      }
    },
  },
  {
    id: 'interface.version',
    severity: 'error',
    spec: '4.4.6',
    *look(card) {
      for (const { item, path } of interfacesOf(card))
        yield look(
          `${path}/protocolVersion`,
          isText(field(item, 'protocolVersion')),
          'An interface needs a `protocolVersion`.',
        )
    },
  },
  {
    id: 'interface.versionForm',
    severity: 'warning',
    spec: '3.6',
    *look(card) {
      for (const { item, path } of interfacesOf(card)) {
        const version = field(item, 'protocolVersion')
        if (isText(version))
          yield look(
            `${path}/protocolVersion`,
            /^\d+\.\d+$/.test(version),
            'A protocol version is Major.Minor, without a patch number.',
          )
      }
    },
  },
  {
    id: 'interface.unique',
    severity: 'warning',
    spec: '8.3.1',
    *look(card) {
      const seen = new Set<string>()
      for (const { item, path } of interfacesOf(card)) {
        const key = identityNames.map((name) => (isText(item[name]) ? item[name] : '')).join('\n')
        yield look(path, !seen.has(key), 'The same interface is declared twice.')
        seen.add(key)
      }
    },
  },
  {
    id: 'interface.reachable',
    severity: 'warning',
    spec: '5.2',
    *look(card) {
      const all = interfacesOf(card)
      const plain = all.some(({ item }) => field(item, 'protocolBinding') !== 'GRPC')
      if (all.length > 0)
        yield look('/supportedInterfaces', plain, 'Only gRPC is offered; clients that speak JSON cannot connect.')
    },
  },
]

const leftovers: readonly Check[] = [
  {
    id: 'card.legacyFields',
    severity: 'info',
    spec: '4.4.1',
    *look(card) {
      const old = [
        'url',
        'preferredTransport',
        'additionalInterfaces',
        'protocolVersion',
        'supportsAuthenticatedExtendedCard',
      ]
      for (const name of old)
        if (Object.hasOwn(card, name))
          yield look(pointer(name), false, `\`${name}\` belongs to A2A 0.3; 1.0 clients ignore it.`)
    },
  },
  {
    id: 'card.legacySecurity',
    severity: 'warning',
    spec: '4.4.1',
    *look(card) {
      if (Object.hasOwn(card, 'security'))
        yield look(
          '/security',
          Object.hasOwn(card, 'securityRequirements'),
          '1.0 reads `securityRequirements`, not `security`.',
        )
    },
  },
]

const schemesOf = (card: JsonObject): [string, unknown][] =>
  Object.entries(objectAt(card, 'securitySchemes')).slice(0, 64)

const requiredFields: ReadonlyMap<string, readonly string[]> = new Map([
  ['apiKeySecurityScheme', ['location', 'name']],
  ['httpAuthSecurityScheme', ['scheme']],
  ['oauth2SecurityScheme', ['flows']],
  ['openIdConnectSecurityScheme', ['openIdConnectUrl']],
])

const security: readonly Check[] = [
  {
    id: 'security.leakedCase',
    severity: 'error',
    spec: '4.5.1',
    *look(card) {
      for (const [name, scheme] of schemesOf(card)) {
        const leaked = isObject(scheme) && isObject(scheme['scheme']) && Object.hasOwn(scheme['scheme'], '$case')
        yield look(
          pointer('securitySchemes', name),
          !leaked,
          'The scheme is an SDK’s internal object (`$case`), not JSON of the protocol.',
        )
      }
    },
  },
  {
    id: 'security.schemeForm',
    severity: 'error',
    spec: '4.5.1',
    *look(card) {
      for (const [name, scheme] of schemesOf(card)) {
        const old = isObject(scheme) && typeof scheme['type'] === 'string'
        const path = pointer('securitySchemes', name)
        if (old)
          yield look(path, false, 'The scheme has the `type` of 0.3; 1.0 wraps it, as in `httpAuthSecurityScheme`.')
        else yield look(path, unwrapScheme(scheme) !== null, 'The scheme is none of the five kinds of the protocol.')
      }
    },
  },
  {
    id: 'security.schemeFields',
    severity: 'error',
    spec: '4.5',
    *look(card) {
      for (const [name, scheme] of schemesOf(card)) {
        const unwrapped = unwrapScheme(scheme)
        // 0.3's spelling (`in`) is reported by the form check; its fields are not judged twice.
        if (!unwrapped || unwrapped.fields === scheme) continue
        for (const required of requiredFields.get(unwrapped.name) ?? []) {
          const value = field(unwrapped.fields, required)
          const path = pointer('securitySchemes', name, unwrapped.name, required)
          yield look(path, isText(value) || isObject(value), `\`${unwrapped.name}\` needs \`${required}\`.`)
        }
      }
    },
  },
  {
    id: 'security.requirements',
    severity: 'error',
    spec: '4.5',
    *look(card) {
      const declared = objectAt(card, 'securitySchemes')
      for (const { item, path } of objectsOf(card, 'securityRequirements')) {
        const schemes = objectAt(item, 'schemes')
        yield look(`${path}/schemes`, isObject(field(item, 'schemes')), 'A requirement names its `schemes`.')
        for (const name of Object.keys(schemes).slice(0, 64))
          yield look(
            `${path}${pointer('schemes', name)}`,
            Object.hasOwn(declared, name),
            `No security scheme is called \`${name}\`.`,
          )
      }
    },
  },
]

export const checksV1: readonly Check[] = [...interfaces, ...leftovers, ...security]
