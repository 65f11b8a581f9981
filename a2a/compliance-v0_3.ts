/**
 * The checks of a 0.3 card: its main URL and transports, and security in OpenAPI shape.
 */
import { isAbsoluteUrl, isText, look, objectAt, objectsOf, pointer } from './compliance-checks.ts'
import type { Check } from './compliance-checks.ts'
import { field, isObject } from './proto-json.ts'

const transports: readonly unknown[] = ['JSONRPC', 'HTTP+JSON', 'GRPC']
const schemeTypes: readonly unknown[] = ['apiKey', 'http', 'oauth2', 'openIdConnect', 'mutualTLS']

const requiredFields: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['apiKey', ['in', 'name']],
  ['http', ['scheme']],
  ['oauth2', ['flows']],
  ['openIdConnect', ['openIdConnectUrl']],
])

const transport: readonly Check[] = [
  {
    id: 'card.url',
    severity: 'error',
    specV03: '5.6.1',
    *look(card) {
      yield look('/url', isAbsoluteUrl(field(card, 'url')), '`url` is required and must be an absolute http(s) URL.')
    },
  },
  {
    id: 'card.https',
    severity: 'warning',
    specV03: '4.1',
    *look(card) {
      const url = field(card, 'url')
      if (!isAbsoluteUrl(url)) return
      const { protocol, hostname } = new URL(url)
      const safe = protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
      yield look('/url', safe, 'Production agents must use HTTPS.')
    },
  },
  {
    id: 'card.protocolVersion',
    severity: 'error',
    specV03: '5.5',
    *look(card) {
      yield look(
        '/protocolVersion',
        isText(field(card, 'protocolVersion')),
        '`protocolVersion` is required, for example "0.3.0".',
      )
    },
  },
  {
    id: 'card.preferredTransport',
    severity: 'warning',
    specV03: '5.6.1',
    *look(card) {
      const value = field(card, 'preferredTransport')
      if (value !== undefined)
        yield look(
          '/preferredTransport',
          transports.includes(value),
          'The transport is none of JSONRPC, HTTP+JSON and GRPC.',
        )
    },
  },
  {
    id: 'card.preferredTransportSaid',
    severity: 'info',
    specV03: '5.6.1',
    *look(card) {
      const said = field(card, 'preferredTransport') !== undefined
      yield look('/preferredTransport', said, 'Without `preferredTransport` clients must assume JSONRPC.')
    },
  },
  {
    id: 'interface.fields',
    severity: 'error',
    specV03: '5.5.5',
    *look(card) {
      for (const { item, path } of objectsOf(card, 'additionalInterfaces')) {
        yield look(`${path}/url`, isText(field(item, 'url')), 'An interface needs a `url`.')
        yield look(`${path}/transport`, isText(field(item, 'transport')), 'An interface needs a `transport`.')
      }
    },
  },
  {
    id: 'interface.main',
    severity: 'info',
    specV03: '5.6.2',
    *look(card) {
      const further = objectsOf(card, 'additionalInterfaces')
      const listed = further.some(({ item }) => field(item, 'url') === field(card, 'url'))
      if (further.length > 0)
        yield look('/additionalInterfaces', listed, '`additionalInterfaces` should list the main `url` too.')
    },
  },
  {
    id: 'interface.conflict',
    severity: 'error',
    specV03: '5.6.4',
    *look(card) {
      const preferred = field(card, 'preferredTransport') ?? 'JSONRPC'
      const same = objectsOf(card, 'additionalInterfaces').filter(
        ({ item }) => field(item, 'url') === field(card, 'url'),
      )
      const agrees = same.some(({ item }) => field(item, 'transport') === preferred)
      if (same.length > 0)
        yield look(
          '/preferredTransport',
          agrees,
          'The main `url` is listed with another transport than the preferred one.',
        )
    },
  },
  {
    id: 'card.extendedCardFlag',
    severity: 'error',
    specV03: '5.5',
    *look(card) {
      const value = field(card, 'supportsAuthenticatedExtendedCard')
      if (value !== undefined)
        yield look('/supportsAuthenticatedExtendedCard', typeof value === 'boolean', 'The flag must be true or false.')
    },
  },
]

const security: readonly Check[] = [
  {
    id: 'security.schemeType',
    severity: 'error',
    specV03: '5.5.3',
    *look(card) {
      for (const [name, scheme] of Object.entries(objectAt(card, 'securitySchemes')).slice(0, 64)) {
        const known = isObject(scheme) && schemeTypes.includes(scheme['type'])
        yield look(
          pointer('securitySchemes', name, 'type'),
          known,
          `A scheme's \`type\` is one of ${schemeTypes.join(', ')}.`,
        )
      }
    },
  },
  {
    id: 'security.schemeFields',
    severity: 'error',
    specV03: '5.5.3',
    *look(card) {
      for (const [name, scheme] of Object.entries(objectAt(card, 'securitySchemes')).slice(0, 64)) {
        if (!isObject(scheme)) continue
        for (const required of requiredFields.get(scheme['type']) ?? []) {
          const given = isText(scheme[required]) || isObject(scheme[required])
          yield look(pointer('securitySchemes', name, required), given, `A scheme of this type needs \`${required}\`.`)
        }
      }
    },
  },
  {
    id: 'security.requirements',
    severity: 'error',
    specV03: '5.5.3',
    *look(card) {
      const declared = objectAt(card, 'securitySchemes')
      for (const { item, path } of objectsOf(card, 'security'))
        for (const name of Object.keys(item).slice(0, 64))
          yield look(
            `${path}${pointer(name)}`,
            Object.hasOwn(declared, name),
            `No security scheme is called \`${name}\`.`,
          )
    },
  },
  {
    id: 'security.newForm',
    severity: 'warning',
    specV03: '5.5',
    *look(card) {
      if (Object.hasOwn(card, 'securityRequirements'))
        yield look(
          '/securityRequirements',
          Object.hasOwn(card, 'security'),
          '0.3 reads `security`; `securityRequirements` belongs to 1.0.',
        )
    },
  },
]

export const checksV03: readonly Check[] = [...transport, ...security]
