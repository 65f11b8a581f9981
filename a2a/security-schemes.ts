/**
 * Security schemes and requirements of a card, normalised from three shapes: 1.0's ProtoJSON key, 0.3's `{type}` (OpenAPI), and the
 * `{scheme: {$case, value}}` that the JS SDK's card handler leaks. Owns reading only; how to authenticate is the caller's.
 */
import { field, isObject, present } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'

interface OAuthFlow {
  readonly kind: 'authorizationCode' | 'clientCredentials' | 'implicit' | 'password' | 'deviceCode'
  readonly authorizationUrl?: string
  readonly tokenUrl?: string
  readonly refreshUrl?: string
  readonly deviceAuthorizationUrl?: string
  readonly scopes: readonly string[]
}

export type SecurityScheme =
  | { readonly type: 'apiKey'; readonly location: string; readonly name: string; readonly description?: string }
  | { readonly type: 'http'; readonly scheme: string; readonly bearerFormat?: string; readonly description?: string }
  | {
      readonly type: 'oauth2'
      readonly flows: readonly OAuthFlow[]
      readonly metadataUrl?: string
      readonly description?: string
    }
  | { readonly type: 'openIdConnect'; readonly url: string; readonly description?: string }
  | { readonly type: 'mutualTLS'; readonly description?: string }
  | { readonly type: 'unknown' }

/** Scheme names and their scopes; all of them together satisfy it. */
export type SecurityRequirement = Readonly<Record<string, readonly string[]>>

const entryLimit = 64
const textLimit = 2_048

const text = (json: JsonObject, name: string): string | undefined => {
  const value = field(json, name)
  return typeof value === 'string' && value !== '' ? value.slice(0, textLimit) : undefined
}

const entries = (value: unknown): [string, unknown][] =>
  isObject(value) ? Object.entries(value).slice(0, entryLimit) : []

/** Object.fromEntries defines fields, where an assignment to `__proto__` would replace the prototype. */
export const readSchemes = (value: unknown): Record<string, SecurityScheme> =>
  Object.fromEntries(entries(value).map(([name, scheme]) => [name, readScheme(scheme)]))

const protoNames = [
  'apiKeySecurityScheme',
  'httpAuthSecurityScheme',
  'oauth2SecurityScheme',
  'openIdConnectSecurityScheme',
  'mtlsSecurityScheme',
] as const

const openApiNames: ReadonlyMap<string, string> = new Map([
  ['apiKey', 'apiKeySecurityScheme'],
  ['http', 'httpAuthSecurityScheme'],
  ['oauth2', 'oauth2SecurityScheme'],
  ['openIdConnect', 'openIdConnectSecurityScheme'],
  ['mutualTLS', 'mtlsSecurityScheme'],
])

/** The proto name of a scheme's kind and its fields, from any of the three shapes. */
export function unwrapScheme(value: unknown): { name: string; fields: JsonObject } | null {
  if (!isObject(value)) return null
  const leaked = value['scheme']
  if (isObject(leaked) && typeof leaked['$case'] === 'string' && isObject(leaked['value']))
    return { name: leaked['$case'], fields: leaked['value'] }
  for (const name of protoNames) {
    const fields = field(value, name)
    if (isObject(fields)) return { name, fields }
  }
  const { type } = value
  const name = typeof type === 'string' ? openApiNames.get(type) : undefined
  return name === undefined ? null : { name, fields: value }
}

function readScheme(value: unknown): SecurityScheme {
  const unwrapped = unwrapScheme(value)
  if (!unwrapped) return { type: 'unknown' }
  const { name, fields } = unwrapped
  const description = text(fields, 'description')
  switch (name) {
    case 'apiKeySecurityScheme': {
      const location = text(fields, 'location') ?? text(fields, 'in') ?? 'header'
      return present({ type: 'apiKey', location, name: text(fields, 'name') ?? '', description } as const)
    }
    case 'httpAuthSecurityScheme': {
      const scheme = text(fields, 'scheme') ?? ''
      return present({ type: 'http', scheme, bearerFormat: text(fields, 'bearerFormat'), description } as const)
    }
    case 'oauth2SecurityScheme': {
      const metadataUrl = text(fields, 'oauth2MetadataUrl')
      return present({ type: 'oauth2', flows: readFlows(field(fields, 'flows')), metadataUrl, description } as const)
    }
    case 'openIdConnectSecurityScheme':
      return present({ type: 'openIdConnect', url: text(fields, 'openIdConnectUrl') ?? '', description } as const)
    case 'mtlsSecurityScheme':
      return present({ type: 'mutualTLS', description } as const)
    default:
      return { type: 'unknown' }
  }
}

const flowKinds = ['authorizationCode', 'clientCredentials', 'implicit', 'password', 'deviceCode'] as const

function readFlows(value: unknown): OAuthFlow[] {
  if (!isObject(value)) return []
  const leaked = value['flow']
  const flows = isObject(leaked) && typeof leaked['$case'] === 'string' ? { [leaked['$case']]: leaked['value'] } : value
  return flowKinds.flatMap((kind) => {
    const flow = field(flows, kind)
    if (!isObject(flow)) return []
    const scopes = entries(field(flow, 'scopes')).map(([scope]) => scope.slice(0, textLimit))
    return [
      present({
        kind,
        authorizationUrl: text(flow, 'authorizationUrl'),
        tokenUrl: text(flow, 'tokenUrl'),
        refreshUrl: text(flow, 'refreshUrl'),
        deviceAuthorizationUrl: text(flow, 'deviceAuthorizationUrl'),
        scopes,
      }),
    ]
  })
}

/** 1.0 says `{schemes: {name: {list: [scope]}}}`, 0.3 `{name: [scope]}`. */
export function readRequirements(value: unknown): SecurityRequirement[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, entryLimit).flatMap((item: unknown) => {
    if (!isObject(item)) return []
    const named = isObject(item['schemes']) ? item['schemes'] : item
    return [Object.fromEntries(entries(named).map(([name, scopes]) => [name, readScopes(scopes)]))]
  })
}

function readScopes(value: unknown): string[] {
  const scopes = isObject(value) ? value['list'] : value
  return Array.isArray(scopes) ? scopes.slice(0, entryLimit).filter((scope) => typeof scope === 'string') : []
}
