/** The keys that are pinned for cards: read from the environment, and tried before anything is opened. */
import { describe, expect, it } from 'vitest'
import { ConfigError, readConfig } from '../../bin/config.ts'
import { requireUsableKeys } from '../../bin/trusted-keys.ts'
import { signer } from '../a2a/signing.ts'

const cardsOf = (keys: unknown) =>
  readConfig({ A2A_AUTH_MODE: 'development', A2A_TRUSTED_CARD_KEYS: JSON.stringify(keys) }).cards

describe('A2A_TRUSTED_CARD_KEYS', () => {
  it('with keys in order starts; two spellings of an origin are one, with the keys of both', async () => {
    const [one, two, three] = await Promise.all([signer('a'), signer('b', 'RS256'), signer('c', 'EdDSA')])
    const cards = cardsOf({
      'https://agent.example': [one.pinned],
      'https://AGENT.example:443': [two.pinned],
      'http://127.0.0.1:4000': [three.pinned],
    })
    await requireUsableKeys(cards)
    expect(cards.trustedKeys['https://agent.example']?.map(({ kid }) => kid)).toEqual(['a', 'b'])
    expect(Object.keys(cards.trustedKeys)).toHaveLength(2)
  })

  it('with a key that can verify nothing stops the start, and the line names it', async () => {
    const { pinned } = await signer('short', 'ES256')
    const cards = cardsOf({ 'https://agent.example': [{ ...pinned, x: 'AAAA' }] })
    const started = requireUsableKeys(cards)
    await expect(started).rejects.toBeInstanceOf(ConfigError)
    await expect(started).rejects.toThrow(
      /^A2A_TRUSTED_CARD_KEYS: the key short for https:\/\/agent\.example cannot be used/,
    )
  })

  it.each([
    ['a private key', { kty: 'EC', d: 'AA' }],
    ['a symmetric key', { kty: 'oct', k: 'AA', alg: 'HS256' }],
    ['no key id', { kty: 'EC', kid: '' }],
    ['an algorithm for nobody', { kty: 'EC', alg: 'none' }],
  ])('with %s stops the start', (_what, jwk) => {
    expect(() => cardsOf({ 'https://agent.example': [{ kid: 'k', alg: 'ES256', ...jwk }] })).toThrow(ConfigError)
  })
})
