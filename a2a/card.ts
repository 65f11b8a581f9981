/**
 * An agent's card, read from every shape seen in the wild: 1.0, 0.3, both at once (what servers with compatibility serve), and the
 * `$case` objects that a published server leaks. Owns the normalised card, the choice of an interface and the addresses where a
 * card may be. Does not own judging a card (compliance.ts), its signatures (signatures.ts) or fetching it.
 */
import type { Endpoint } from './operations.ts'
import { WireError, field, idLimit, isObject, open, present } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { readRequirements, readSchemes } from './security-schemes.ts'
import type { SecurityRequirement, SecurityScheme } from './security-schemes.ts'

export interface CardInterface {
  readonly url: string
  /** As written, upper case: `JSONRPC`, `HTTP+JSON`, `GRPC` or one that we do not know. */
  readonly binding: string
  /** Major.Minor: patch numbers must not count [specification 3.6]. */
  readonly version: string
  readonly tenant?: string
}

export interface CardExtension {
  readonly uri: string
  readonly description?: string
  readonly required?: boolean
  readonly params?: Readonly<Record<string, unknown>>
}

export interface CardSkill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: string[]
  readonly examples?: string[]
  readonly inputModes?: string[]
  readonly outputModes?: string[]
}

export interface AgentCard {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly provider?: { readonly organization: string; readonly url?: string }
  readonly iconUrl?: string
  readonly documentationUrl?: string
  /** In card order. */
  readonly interfaces: readonly CardInterface[]
  readonly capabilities: {
    readonly streaming: boolean
    readonly pushNotifications: boolean
    readonly extendedAgentCard: boolean
    readonly extensions: readonly CardExtension[]
  }
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>
  /** Any one of them suffices; each maps a scheme's name to the scopes it needs. */
  readonly securityRequirements: readonly SecurityRequirement[]
  readonly defaultInputModes: readonly string[]
  readonly defaultOutputModes: readonly string[]
  readonly skills: readonly CardSkill[]
  /** As received: a2a/signatures.ts reads them. */
  readonly signatures: readonly unknown[]
}

/** Characters and entries beyond these are cut: a card is shown and stored, whatever its author thought of size. */
const limits = {
  name: 256,
  text: 4_000,
  url: 2_048,
  interfaces: 64,
  extensions: 128,
  skills: 512,
  entries: 128,
  signatures: 16,
}

/** A string fit to store and show: bounded, without NUL and lone surrogates, which PostgreSQL refuses. */
function clean(value: unknown, limit: number): string {
  return typeof value === 'string' ? value.slice(0, limit).replaceAll('\0', '').toWellFormed() : ''
}

const optional = (value: unknown, limit: number): string | undefined => clean(value, limit) || undefined

const items = (value: unknown, limit: number): readonly unknown[] => (Array.isArray(value) ? value.slice(0, limit) : [])

const texts = (value: unknown, limit: number): string[] =>
  items(value, limits.entries)
    .map((item) => clean(item, limit))
    .filter((item) => item !== '')

/** An absolute http(s) URL as the parser writes it, or undefined. One with a user's name and password is none to use or to show. */
function httpUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > limits.url) return undefined
  const url = URL.parse(value)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined
}

/** Reads a card of any version. A fault is a sentence about why it is none; everything but a name and an interface may be missing. Never throws. */
export function parseCard(json: unknown): { card: AgentCard } | { fault: string } {
  if (!isObject(json)) return { fault: 'The card is not a JSON object.' }
  if (!isShallow(json)) return { fault: 'The card is nested too deeply.' }
  const name = clean(json['name'], limits.name).trim()
  if (name === '') return { fault: 'The card has no name.' }
  const interfaces = readInterfaces(json)
  if (interfaces.length === 0) return { fault: 'The card names no interface.' }
  const card = present({
    name,
    description: clean(field(json, 'description'), limits.text),
    version: clean(field(json, 'version'), limits.name),
    provider: readProvider(field(json, 'provider')),
    iconUrl: httpUrl(field(json, 'iconUrl')),
    documentationUrl: httpUrl(field(json, 'documentationUrl')),
    interfaces,
    capabilities: readCapabilities(json),
    securitySchemes: readSchemes(field(json, 'securitySchemes')),
    securityRequirements: readRequirements(field(json, 'securityRequirements') ?? field(json, 'security')),
    defaultInputModes: texts(field(json, 'defaultInputModes'), limits.name),
    defaultOutputModes: texts(field(json, 'defaultOutputModes'), limits.name),
    skills: items(field(json, 'skills'), limits.skills).flatMap(readSkill),
    signatures: items(field(json, 'signatures'), limits.signatures),
  })
  return { card }
}

function isShallow(json: JsonObject): boolean {
  try {
    open(json, '')
    return true
  } catch (error) {
    if (error instanceof WireError) return false
    throw error
  }
}

/** 1.0's list when there is one: in a hybrid card it is what the agent says to 1.0 clients. Else 0.3's main URL and the further ones. */
function readInterfaces(json: JsonObject): CardInterface[] {
  const listed = items(field(json, 'supportedInterfaces'), limits.interfaces).flatMap((item) =>
    readInterface(item, '1.0'),
  )
  if (listed.length > 0) return listed
  const version = majorMinor(field(json, 'protocolVersion')) ?? '0.3'
  const main = readInterface(
    { url: field(json, 'url'), transport: field(json, 'preferredTransport') ?? 'JSONRPC' },
    version,
  )
  const further = items(field(json, 'additionalInterfaces'), limits.interfaces).flatMap((item) =>
    readInterface(item, version),
  )
  const seen = new Set(main.map(interfaceKey))
  return [...main, ...further.filter((entry) => !seen.has(interfaceKey(entry)))]
}

const interfaceKey = (entry: CardInterface): string => `${entry.binding} ${entry.url}`

function readInterface(value: unknown, assumedVersion: string): CardInterface[] {
  if (!isObject(value)) return []
  const url = field(value, 'url')
  const tenant = field(value, 'tenant')
  if (typeof url !== 'string' || url === '' || url.length > limits.url) return []
  // The tenant is echoed exactly or the interface is not used: a shortened one would be somebody else's.
  if (typeof tenant === 'string' && tenant.length > idLimit) return []
  return [
    present({
      url,
      binding: clean(field(value, 'protocolBinding') ?? field(value, 'transport'), limits.name).toUpperCase(),
      version: majorMinor(field(value, 'protocolVersion')) ?? assumedVersion,
      tenant: typeof tenant === 'string' && tenant !== '' ? tenant : undefined,
    }),
  ]
}

function majorMinor(value: unknown): string | undefined {
  const text = clean(value, 32)
  if (text === '') return undefined
  const match = /^v?(\d{1,4})(?:\.(\d{1,4}))?(?:[.+-].*)?$/.exec(text)
  return match ? `${match[1]}.${match[2] ?? '0'}` : text
}

function readProvider(value: unknown): AgentCard['provider'] {
  if (!isObject(value)) return undefined
  const organization = clean(field(value, 'organization'), limits.name)
  const url = httpUrl(field(value, 'url'))
  return organization === '' ? undefined : present({ organization, url })
}

function readCapabilities(json: JsonObject): AgentCard['capabilities'] {
  const said = field(json, 'capabilities')
  const capabilities = isObject(said) ? said : {}
  return {
    streaming: field(capabilities, 'streaming') === true,
    pushNotifications: field(capabilities, 'pushNotifications') === true,
    extendedAgentCard:
      field(capabilities, 'extendedAgentCard') === true || field(json, 'supportsAuthenticatedExtendedCard') === true,
    extensions: items(field(capabilities, 'extensions'), limits.extensions).flatMap(readExtension),
  }
}

function readExtension(value: unknown): CardExtension[] {
  if (!isObject(value)) return []
  const uri = field(value, 'uri')
  // A URI is compared, never shown alone: one that does not fit is not the one it begins like.
  if (typeof uri !== 'string' || uri === '' || uri.length > limits.url || uri.includes('\0')) return []
  const params = field(value, 'params')
  return [
    present({
      uri,
      description: optional(field(value, 'description'), limits.text),
      required: field(value, 'required') === true ? true : undefined,
      params: isObject(params) ? params : undefined,
    }),
  ]
}

function readSkill(value: unknown): CardSkill[] {
  if (!isObject(value)) return []
  const id = field(value, 'id')
  if (typeof id !== 'string' || id === '' || id.length > 255 || id.includes('\0')) return []
  const list = (name: string, limit: number): string[] | undefined => {
    const found = texts(field(value, name), limit)
    return found.length > 0 ? found : undefined
  }
  return [
    present({
      id,
      name: clean(field(value, 'name'), limits.name) || id,
      description: clean(field(value, 'description'), limits.text),
      tags: texts(field(value, 'tags'), limits.name),
      examples: list('examples', limits.text),
      inputModes: list('inputModes', limits.name),
      outputModes: list('outputModes', limits.name),
    }),
  ]
}

const bindings: ReadonlyMap<string, Endpoint['binding']> = new Map([
  ['JSONRPC', 'JSONRPC'],
  ['HTTP+JSON', 'HTTP+JSON'],
])

/** The interfaces that we speak at an absolute http(s) URL: 1.x before 0.3, each in card order [specification 8.3.2]. */
export function spokenInterfaces(card: AgentCard): Endpoint[] {
  const spoken = card.interfaces.flatMap((entry): Endpoint[] => {
    const binding = bindings.get(entry.binding)
    const version = /^1\.\d+$/.test(entry.version) ? '1.0' : entry.version === '0.3' ? '0.3' : undefined
    const url = httpUrl(entry.url)
    if (!binding || !version || !url) return []
    return [present({ url, binding, version, tenant: entry.tenant } as const)]
  })
  const isCurrent = (entry: Endpoint): boolean => entry.version === '1.0'
  return [...spoken.filter(isCurrent), ...spoken.filter((entry) => !isCurrent(entry))]
}

/**
 * The interface to speak to: the first that is spoken and permitted. Refused `forbidden` when every spoken one is not
 * permitted (`first` is the one that would have been chosen), `grpc` when the agent only offers gRPC, `none` when it offers
 * nothing that we speak.
 */
export function selectInterface(
  card: AgentCard,
  permits: (endpoint: Endpoint) => boolean = () => true,
): { endpoint: Endpoint } | { refused: 'grpc' | 'none' } | { refused: 'forbidden'; first: Endpoint } {
  const spoken = spokenInterfaces(card)
  const endpoint = spoken.find(permits)
  if (endpoint) return { endpoint }
  const [first] = spoken
  if (first) return { refused: 'forbidden', first }
  return { refused: card.interfaces.some((entry) => entry.binding === 'GRPC') ? 'grpc' : 'none' }
}

/** Where the card of a registered URL may be, best first: itself when it is a file, else the well-known places below it. */
export function cardCandidates(url: string): string[] {
  const parsed = new URL(url)
  if (parsed.pathname.toLowerCase().endsWith('.json')) return [parsed.href]
  const base = parsed.pathname.replace(/\/+$/, '')
  return ['agent-card.json', 'agent.json'].map((file) => {
    const candidate = new URL(parsed)
    candidate.pathname = `${base}/.well-known/${file}`
    return candidate.href
  })
}
