/**
 * The card as a server hands it out: the native 1.0 shape to whoever asks for 1.0, and to everybody else the same with
 * the fields of 0.3 beside it, since 0.3 clients say no version and 1.0 clients read either. Owns this choice. Does not
 * own the card's content, nor reading other agents' cards (card.ts).
 */
import type { JsonObject } from './proto-json.ts'

/** The fields this needs to know; the rest of the card passes through. */
export interface NativeCard extends JsonObject {
  readonly supportedInterfaces: readonly {
    readonly url: string
    readonly protocolBinding: string
    readonly protocolVersion: string
  }[]
  readonly capabilities: JsonObject & { readonly extendedAgentCard?: boolean }
}

/** Caches must keep the two shapes apart. */
export const cardVary = 'A2A-Version'

/**
 * The card in the shape for `asked`, a Major.Minor version or null (versionOf). An address serves both versions, so
 * each is named once in 0.3's fields; the first is what 0.3 calls preferred. Security schemes look alike only in name
 * and are not translated.
 */
export function cardFor(card: NativeCard, asked: string | null): JsonObject {
  const [preferred] = card.supportedInterfaces
  if (preferred === undefined || (asked !== null && asked !== '0.3')) return card
  return {
    ...card,
    protocolVersion: '0.3.0',
    url: preferred.url,
    preferredTransport: preferred.protocolBinding,
    additionalInterfaces: card.supportedInterfaces.map(({ url, protocolBinding }) => ({
      url,
      transport: protocolBinding,
    })),
    supportsAuthenticatedExtendedCard: card.capabilities.extendedAgentCard ?? false,
  }
}
