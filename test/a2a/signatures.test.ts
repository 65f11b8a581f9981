/** What signatures of cards prove: over every form that real signers produce, and nothing beyond what they cover. */
import { AgentCard as SdkCard, generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { CompactSign } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseCard } from '../../a2a/card.ts'
import { faultOfKey, judgeSignatures, signatureHeader } from '../../a2a/signatures.ts'
import { signedForms } from '../../a2a/signed-forms.ts'
import { card03, card10 } from './cards.ts'
import { header, signer, signText, type Signer } from './signing.ts'
import { sized } from '../support/pass.ts'

type Json = Record<string, unknown>

let key: Signer
let other: Signer
beforeAll(async () => {
  key = await signer('key-1')
  other = await signer('key-2')
})

const jcs = (value: unknown): string => canonicalize(value) ?? ''
const overWhole = async (card: Json, by = key): Promise<Json> => ({
  ...card,
  signatures: [await signText(by, jcs(card))],
})
const judge = (card: unknown, pinned = [key.pinned]) => judgeSignatures(card as Json, pinned)

/** Empty where 1.0 says REQUIRED, explicit defaults, an accent: where the signers part ways. */
const delicate = {
  ...card10,
  description: '',
  documentationUrl: '',
  provider: { organization: 'Ö', url: 'https://o.example' },
  capabilities: {
    streaming: false,
    extensions: [{ uri: 'urn:x', required: false, params: { deep: { empty: [] }, n: 1.5 } }],
  },
  skills: [],
}
/** By the rule of 8.4.1: REQUIRED fields stay though empty, `optional` ones stay when said, the rest goes with its default. */
const delicateBySpecification = {
  ...delicate,
  capabilities: { streaming: false, extensions: [{ uri: 'urn:x', params: { deep: { empty: [] }, n: 1.5 } }] },
  securityRequirements: [{ schemes: { http: {} } }, { schemes: { oauth: { list: ['read'] } } }],
}

describe('a signature by a pinned key', () => {
  it('verifies over the whole JSON, and then everything is covered', async () => {
    for (const card of [card10, card03, delicate, { ...card03, ...card10, extra: { a: [1e21, 'é', null] } }]) {
      const signed = await overWhole(card)
      expect(await judge(signed)).toEqual({
        trust: 'verified',
        keyId: 'key-1',
        explanation: 'Signed by the pinned key “key-1”.',
        covered: signed,
      })
    }
  })

  it.each(['RS256', 'PS384', 'ES384', 'EdDSA', 'Ed25519'])('verifies with %s', async (alg) => {
    const by = await signer('key-1', alg)
    expect(await judge(await overWhole(card10, by), [by.pinned])).toMatchObject({ trust: 'verified' })
  })

  it('verifies when key and signer know Ed25519 by different names', async () => {
    const by = await signer('key-1', 'Ed25519')
    const signatures = [await signText(by, jcs(card10))]
    expect(await judge({ ...card10, signatures }, [{ ...by.pinned, alg: 'EdDSA' }])).toMatchObject({
      trust: 'verified',
    })
  })

  it('verifies by the rule of 1.0, whatever empty fields the server adds or leaves out', async () => {
    const signatures = [await signText(key, jcs(delicateBySpecification))]
    const { skills: _, description: __, ...lean } = delicate
    for (const served of [
      delicate,
      lean,
      { ...delicate, iconUrl: undefined, securityRequirements: delicate.securityRequirements },
    ]) {
      const verdict = await judge({ ...served, signatures })
      expect(verdict).toMatchObject({ trust: 'verified', covered: { name: 'A', description: '', skills: [] } })
    }
  })

  it.each([
    ['served as its JSON', (card: SdkCard): unknown => SdkCard.toJSON(card)],
    ['served as the SDK leaks it', (card: SdkCard): unknown => JSON.parse(JSON.stringify(card))],
  ])('verifies as the published JavaScript SDK makes it, %s', async (_how, serve) => {
    const sign = generateAgentCardSignature(key.privateKey, { alg: 'ES256', kid: 'key-1', typ: 'JOSE' })
    for (const card of [card10, delicate]) {
      // What it signs are its own objects, whose security schemes its canonical form loses.
      const served = serve(await sign(SdkCard.fromJSON(card)))
      const verdict = await judge(served)
      expect(verdict).toMatchObject({ trust: 'verified', covered: { name: 'A', version: '1.2.3' } })
      if (verdict.trust !== 'verified') continue
      expect(verdict.covered['supportedInterfaces']).toEqual(card10.supportedInterfaces)
      expect(verdict.covered).not.toHaveProperty('securitySchemes')
    }
  })

  it('agrees with the published SDK about a card without security schemes', async () => {
    const { securitySchemes: _, ...plain } = card10
    const sign = generateAgentCardSignature(key.privateKey, { alg: 'ES256', kid: 'key-1', typ: 'JOSE' })
    const served = SdkCard.toJSON(await sign(SdkCard.fromJSON(plain))) as Json
    await verifyAgentCardSignature(() => Promise.resolve(key.pinned))(SdkCard.fromJSON(served))
    expect(await judge(served)).toMatchObject({ trust: 'verified' })
  })

  it('verifies as the Python SDK makes it: nothing empty, keys sorted, everything beyond ASCII escaped', async () => {
    const { description: _, documentationUrl: __, skills: ___, securitySchemes: ____, ...kept } = delicate
    const cleaned = {
      ...kept,
      provider: { organization: '\\u00d6', url: 'https://o.example' },
      capabilities: { streaming: false, extensions: [{ uri: 'urn:x', params: { n: 1.5 } }] },
      securityRequirements: [{ schemes: { oauth: { list: ['read'] } } }],
      securitySchemes: { ...card10.securitySchemes, mtls: undefined },
    }
    const text = jcs(JSON.parse(JSON.stringify(cleaned))).replaceAll('\\\\u00d6', '\\u00d6')
    expect(text).toContain('"organization":"\\u00d6"')
    const verdict = await judge({ ...delicate, signatures: [await signText(key, text)] })
    expect(verdict).toMatchObject({ trust: 'verified', covered: { provider: { organization: 'Ö' } } })
  })

  it('suffices alone: beside signatures of strangers, of broken ones and of another pinned key that fails', async () => {
    const good = await signText(key, jcs(card10))
    const wrong = await signText(other, 'another text')
    const signatures = [
      null,
      7,
      {},
      { protected: '!', signature: '?' },
      wrong,
      { ...wrong, protected: header([]) },
      good,
    ]
    expect(await judge({ ...card10, signatures }, [key.pinned, other.pinned])).toMatchObject({
      trust: 'verified',
      keyId: 'key-1',
    })
  })

  it('is found among several keys of one name', async () => {
    const namesake = await signer('key-1')
    const rsa = await signer('key-1', 'RS256')
    expect(await judge(await overWhole(card10), [rsa.pinned, namesake.pinned, key.pinned])).toMatchObject({
      trust: 'verified',
    })
  })
})

describe('what a signature does not cover', () => {
  it('is not read: fields of 0.3 beside a signed 1.0 card, fields nobody knows', async () => {
    const bySpecification = [...signedForms(card10)][1] ?? ''
    const signatures = [await signText(key, bySpecification)]
    const tampered = {
      ...card10,
      url: 'https://evil.example',
      additionalInterfaces: [{ url: 'https://evil.example', transport: 'JSONRPC' }],
      extra: 1,
      signatures,
    }
    const verdict = await judge(tampered)
    expect(verdict.trust).toBe('verified')
    expect(JSON.stringify(verdict)).not.toContain('evil')
    expect(verdict).not.toHaveProperty('covered.extra')
  })

  it('never is the endpoint of a card of 0.3: such a card verifies whole or not at all', async () => {
    const { url: _, preferredTransport: __, additionalInterfaces: ___, ...rest } = card03
    for (const text of [
      jcs(rest),
      jcs({ ...rest, supportedInterfaces: [] }),
      jcs(SdkCard.toJSON(SdkCard.fromJSON(card03))),
    ]) {
      const signatures = [await signText(key, text)]
      expect(await judge({ ...card03, signatures })).toMatchObject({ trust: 'invalid', keyId: 'key-1' })
      expect(await judge({ ...card03, supportedInterfaces: [], signatures })).toMatchObject({ trust: 'invalid' })
    }
  })

  it('whatever is changed in a signed card, what is read of it is what was signed, or it is invalid', async () => {
    const originals = await Promise.all(
      [card10, card03, delicate].flatMap((card) =>
        [...signedForms(card)].map(async (text) => ({
          card: { ...card, signatures: [await signText(key, text)] },
          text,
        })),
      ),
    )
    const edit = fc.record({
      original: fc.constantFrom(...originals),
      at: fc.nat(),
      how: fc.constantFrom('drop', 'replace', 'add'),
      value: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', 'https://evil.example/', [], {})),
      name: fc.constantFrom(
        'url',
        'supported_interfaces',
        'supportedInterfaces',
        '__proto__',
        'tenant',
        'protocolBinding',
      ),
    })
    await fc.assert(
      fc.asyncProperty(edit, async ({ original, at, how, value, name }) => {
        const card = JSON.parse(JSON.stringify(original.card)) as Json
        const places = objectsIn(card)
        const place = places[at % places.length] ?? card
        const names = Object.keys(place)
        const field = how === 'add' ? name : (names[at % Math.max(1, names.length)] ?? name)
        if (how === 'drop') delete place[field]
        else Object.defineProperty(place, field, { value, enumerable: true, configurable: true, writable: true })
        const verdict = await judgeSignatures(card, [key.pinned])
        if (verdict.trust !== 'verified') return
        const { signatures: _, ...covered } = verdict.covered
        expect(covered).toEqual(JSON.parse(original.text))
      }),
      { numRuns: sized(150, 400) },
    )
  })
})

function objectsIn(value: unknown): Json[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.values(value).flatMap(objectsIn)
  return Array.isArray(value) ? inner : [value as Json, ...inner]
}

describe('a signature that proves nothing', () => {
  it('is none at all: unsigned, also where keys are pinned', async () => {
    for (const card of [card10, { ...card10, signatures: [] }, { ...card10, signatures: null }]) {
      expect(await judge(card, [])).toEqual({ trust: 'unsigned', explanation: 'The card carries no signature.' })
      expect(await judge(card)).toMatchObject({
        trust: 'unsigned',
        explanation: expect.stringContaining('although keys'),
      })
    }
  })

  it('is by a key that nobody pinned, names none, or cannot be read: untrusted', async () => {
    const text = jcs(card10)
    const nameless = await signText(key, text, { kid: undefined })
    const cases = [
      [await signText(other, text)],
      [nameless],
      [{ protected: '%%%', signature: 'AA' }],
      [{ protected: header({ alg: 'ES256', kid: 'key-1' }).padEnd(9_000, 'A'), signature: 'AA' }],
      { protected: nameless.protected },
      'a text',
      Array.from({ length: 17 }, () => nameless).concat(await signText(key, text)),
    ]
    for (const signatures of cases) expect(await judge({ ...card10, signatures })).toMatchObject({ trust: 'untrusted' })
    const pinnedNowhere = await judge(await overWhole(card10), [])
    expect(pinnedNowhere).toMatchObject({
      trust: 'untrusted',
      explanation: expect.stringContaining('No key is pinned'),
    })
  })

  it.each([
    ['none', { alg: 'none', kid: 'key-1' }, ''],
    ['none in other letters', { alg: 'nOnE', kid: 'key-1' }, ''],
    ['no algorithm', { kid: 'key-1' }, 'AAAA'],
    ['a list of algorithms', { alg: ['ES256'], kid: 'key-1' }, 'AAAA'],
    ['a foreign algorithm', { alg: 'RS256', kid: 'key-1' }, 'AAAA'],
    ['an empty signature', { alg: 'ES256', kid: 'key-1' }, ''],
    ['a signature that is no text', { alg: 'ES256', kid: 'key-1' }, 7],
    ['a signature of any length', { alg: 'ES256', kid: 'key-1' }, 'A'.repeat(1_000_000)],
    ['a signature of zeros', { alg: 'ES256', kid: 'key-1' }, 'A'.repeat(86)],
  ])('names a pinned key and does not verify (%s): invalid', async (_case, protectedHeader, signature) => {
    const signatures = [{ protected: header(protectedHeader), signature, header: { alg: 'ES256' } }]
    expect(await judge({ ...card10, signatures })).toMatchObject({ trust: 'invalid', keyId: 'key-1' })
  })

  it('is symmetric with the public key for its secret: invalid', async () => {
    for (const secret of [JSON.stringify(key.pinned), String(key.pinned.x), jcs(key.pinned)]) {
      const jws = await new CompactSign(new TextEncoder().encode(jcs(card10)))
        .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
        .sign(new TextEncoder().encode(secret))
      const [said = '', , signature = ''] = jws.split('.')
      const signatures = [{ protected: said, signature }]
      expect(await judge({ ...card10, signatures })).toMatchObject({ trust: 'invalid' })
      // Not even an operator who pins a symmetric key is obeyed.
      const pinned = { kty: 'oct', k: Buffer.from(secret).toString('base64url'), kid: 'key-1', alg: 'HS256' }
      expect(await judge({ ...card10, signatures }, [pinned])).toMatchObject({ trust: 'invalid' })
    }
  })

  it('needs an extension of the header (crit, b64): invalid, however right it is', async () => {
    const critical = await signText(key, jcs(card10), { crit: ['x-strict'], 'x-strict': true })
    const verdict = await judge({ ...card10, signatures: [critical] })
    expect(verdict).toMatchObject({ trust: 'invalid', explanation: expect.stringContaining('header extension') })
    const raw = await signText(key, jcs(card10), { b64: true })
    expect(await judge({ ...card10, signatures: [raw] })).toMatchObject({ trust: 'invalid' })
  })

  it('brings its own key or a place to fetch one: neither is looked at', async () => {
    const { alg: _, kid: __, ...jwk } = other.pinned
    const self = await signText({ ...other, pinned: { ...other.pinned, kid: 'key-1' } }, jcs(card10), {
      jwk,
      jku: 'https://evil.example/jwks.json',
      x5u: 'https://evil.example/chain.pem',
    })
    expect(await judge({ ...card10, signatures: [self] })).toMatchObject({ trust: 'invalid' })
  })

  it('is over a text that has no canonical form: invalid', async () => {
    const signatures = [await signText(key, jcs(card10))]
    expect(await judge({ ...card10, description: '\ud800', signatures })).toMatchObject({ trust: 'invalid' })
  })
})

describe('a signature header', () => {
  it('is read from what is protected alone', () => {
    expect(signatureHeader({ protected: header({ alg: 'ES256', kid: 'k' }), header: { kid: 'x' } })).toEqual({
      alg: 'ES256',
      kid: 'k',
      isPlain: true,
    })
    expect(signatureHeader({ protected: header({ __proto__: null, crit: [] }) })).toMatchObject({
      kid: null,
      isPlain: false,
    })
    for (const entry of [null, [], 'x', {}, { protected: 1 }, { protected: 'e30' + '\ud800' }, { protected: '' }])
      expect(signatureHeader(entry)).toBeNull()
  })
})

describe('a pinned key', () => {
  it('in order has no fault; one that can verify nothing says so', async () => {
    expect(await faultOfKey(key.pinned)).toBeNull()
    expect(await faultOfKey((await signer('k', 'RS256')).pinned)).toBeNull()
    expect(await faultOfKey((await signer('k', 'EdDSA')).pinned)).toBeNull()
    expect(await faultOfKey({ ...key.pinned, x: 'AAAA' })).not.toBeNull()
    expect(await faultOfKey({ ...key.pinned, alg: 'RS256' })).not.toBeNull()
    expect(await faultOfKey({ ...key.pinned, alg: 'ES384' })).not.toBeNull()
    expect(await faultOfKey({ kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'k', alg: 'RS256' })).not.toBeNull()
  })
})

describe('the card that is read of a verified one', () => {
  it('has the interfaces, schemes and skills of the original', async () => {
    const verdict = await judge(await overWhole(card10))
    if (verdict.trust !== 'verified') throw new Error(verdict.explanation)
    const original = parseCard(card10)
    const covered = parseCard(verdict.covered)
    if ('fault' in original || 'fault' in covered) throw new Error('The card cannot be read.')
    expect(covered.card).toEqual({ ...original.card, signatures: covered.card.signatures })
  })
})
