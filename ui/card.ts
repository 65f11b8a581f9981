/**
 * What the console shows of an Agent Card. Reads leniently, because a card that breaks the rules must still be shown beside
 * the report that says so; whether a card is right is the server's to judge (a2a/card.ts).
 */
import * as z from 'zod/mini'

const words = z.catch(z.optional(z.string()), undefined)
const wordList = z.catch(z.array(z.string()), [])
const flag = z.catch(z.optional(z.boolean()), undefined)
/** A list in which an entry of the wrong shape is dropped, not the list. */
const listOf = <T extends z.ZodMiniType>(entry: T) =>
  z.pipe(
    z.catch(z.array(z.unknown()), []),
    z.transform((values) =>
      values.flatMap((value) => {
        const parsed = z.safeParse(entry, value)
        return parsed.success ? [parsed.data] : []
      }),
    ),
  )

const LooseCard = z.object({
  name: words,
  description: words,
  version: words,
  protocolVersion: words,
  url: words,
  preferredTransport: words,
  documentationUrl: words,
  provider: z.catch(z.optional(z.object({ organization: words, url: words })), undefined),
  capabilities: z.catch(
    z.optional(
      z.object({
        streaming: flag,
        pushNotifications: flag,
        extendedAgentCard: flag,
        extensions: listOf(z.object({ uri: z.string(), description: words, required: flag })),
      }),
    ),
    undefined,
  ),
  supportedInterfaces: listOf(z.object({ url: z.string(), protocolBinding: words, protocolVersion: words })),
  additionalInterfaces: listOf(z.object({ url: z.string(), transport: words })),
  skills: listOf(
    z.object({ id: z.string(), name: words, description: words, tags: wordList, examples: z.optional(wordList) }),
  ),
  defaultInputModes: wordList,
  defaultOutputModes: wordList,
  securitySchemes: z.catch(z.optional(z.record(z.string(), z.unknown())), undefined),
})
type LooseCard = z.infer<typeof LooseCard>

export interface CardFacts {
  readonly name: string | undefined
  readonly description: string | undefined
  readonly version: string | undefined
  readonly provider: string | undefined
  readonly documentationUrl: string | undefined
  readonly abilities: readonly { readonly word: string; readonly has: boolean }[]
  readonly interfaces: readonly { readonly url: string; readonly binding: string; readonly version: string }[]
  readonly extensions: readonly { readonly uri: string; readonly description: string; readonly required: boolean }[]
  readonly skills: LooseCard['skills']
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
  readonly security: readonly string[]
}

/** Undefined when the card is not even an object. */
export function readCard(card: unknown): CardFacts | undefined {
  const parsed = LooseCard.safeParse(card)
  if (!parsed.success) return undefined
  const { data } = parsed
  const { capabilities } = data
  return {
    name: data.name,
    description: data.description,
    version: data.version,
    provider: data.provider?.organization,
    documentationUrl: data.documentationUrl,
    abilities: [
      { word: 'Streaming', has: capabilities?.streaming === true },
      { word: 'Push notifications', has: capabilities?.pushNotifications === true },
      { word: 'Extended card', has: capabilities?.extendedAgentCard === true },
    ],
    interfaces: interfacesOf(data),
    extensions: (capabilities?.extensions ?? []).map(({ uri, description, required }) => ({
      uri,
      description: description ?? '',
      required: required === true,
    })),
    skills: data.skills,
    inputModes: data.defaultInputModes,
    outputModes: data.defaultOutputModes,
    security: Object.keys(data.securitySchemes ?? {}),
  }
}

/** 1.0 lists `supportedInterfaces`; 0.3 has `url` with `preferredTransport`, and `additionalInterfaces`. */
function interfacesOf(card: LooseCard): CardFacts['interfaces'] {
  const version = card.protocolVersion ?? ''
  if (card.supportedInterfaces.length > 0) {
    return card.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }) => ({
      url,
      binding: protocolBinding ?? 'unknown binding',
      version: protocolVersion ?? version,
    }))
  }
  const main = card.url === undefined ? [] : [{ url: card.url, binding: card.preferredTransport ?? 'JSONRPC', version }]
  const more = card.additionalInterfaces
    .filter(({ url, transport }) => url !== card.url || transport !== card.preferredTransport)
    .map(({ url, transport }) => ({ url, binding: transport ?? 'unknown binding', version }))
  return [...main, ...more]
}

/** The part of a card URL a person recognises the agent by: host and, if it tells agents apart, path. */
export function hostOf(cardUrl: string): string {
  if (!URL.canParse(cardUrl)) return cardUrl
  const { host, pathname } = new URL(cardUrl)
  return host + pathname.replace(/\/(\.well-known\/agent(-card)?|card)\.json$/, '').replace(/\/$/, '')
}
