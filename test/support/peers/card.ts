/**
 * How a test changes the card of its agent. Owns the two ways of saying it. Does not own the cards (sdk.ts, raw.ts).
 */

export type CardJson = Readonly<Record<string, unknown>>

/** Fields laid over the card's top level, or a card made from the plain one, for what needs the agent's own address. */
export type CardOverlay = CardJson | ((card: CardJson, origin: string) => CardJson)

export const laidOver = (card: CardJson, overlay: CardOverlay | undefined, origin: string): Record<string, unknown> =>
  typeof overlay === 'function' ? { ...overlay(card, origin) } : { ...card, ...overlay }

/** An entry of `supportedInterfaces` for A2A 1.0. */
export const interfaceEntry = (url: string, protocolBinding: string, tenant: string | undefined): CardJson => ({
  url,
  protocolBinding,
  protocolVersion: '1.0',
  ...(tenant === undefined ? {} : { tenant }),
})
