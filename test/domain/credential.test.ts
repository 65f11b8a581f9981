/** What a binding is and is not, at its limits; and what an operator is told when a card asks for something else. */
import { describe, expect, test } from 'vitest'
import { parseCard } from '../../a2a/card.ts'
import { Binding, mismatchOf } from '../../domain/credential.ts'

const origin = 'https://agent.example'
const secret = 'a-secret'
const bearer = { type: 'bearer', token: secret }
const oauth = { type: 'oauthClient', issuer: origin, tokenEndpoint: `${origin}/t`, clientId: 'c', clientSecret: secret }
const with21 = Array.from({ length: 21 }, (_, i) => `https://agent${i}.example`)
const long = 'x'.repeat(100_000)
const isBinding = (origins: unknown, credential: unknown) => Binding.safeParse({ origins, credential }).success

describe('a binding', () => {
  test.each([
    [[origin], bearer],
    [['https://agent.example:8443', 'https://[2001:db8::1]', 'https://xn--bcher-kva.example'], bearer],
    [with21.slice(1), { type: 'bearer', token: long }],
    [[origin], { type: 'bearer', token: 'with a blank, and "quotes"' }],
    [[origin], { type: 'apiKey', name: 'X-Agent-Key', value: secret }],
    [[origin], { type: 'apiKey', name: 'Authorization', value: 'Token of ours' }],
    [[origin], oauth],
    [[origin], { ...oauth, scope: 'read write', clientSecret: 'ü'.repeat(8) }],
    [[origin], { type: 'mtls', cert: long, key: secret }],
    [[origin], { type: 'mtls', cert: secret, key: secret, ca: secret }],
  ])('%j %j', (origins, credential) => {
    expect(isBinding(origins, credential)).toBe(true)
  })

  test.each([
    { origins: [] },
    { origins: with21 },
    { origins: origin },
    { origins: ['http://agent.example'] },
    { origins: [`${origin}/`] },
    { origins: [`${origin}/path`] },
    { origins: [`${origin}:443`] },
    { origins: ['https://Agent.example'] },
    { origins: ['https://*.example'] },
    { origins: ['https://u:p@agent.example'] },
    { origins: [`${origin}?q`] },
    { origins: [origin, 'null'] },
    { origins: [null] },
  ])('has no such origins: %j', ({ origins }) => {
    expect(isBinding(origins, bearer)).toBe(false)
  })

  test.each([
    { type: 'bearer', token: '1234567' },
    { type: 'bearer', token: `${long}x` },
    { type: 'bearer', token: 'line\r\nbreak: yes' },
    { type: 'bearer', token: ' blank first' },
    { type: 'bearer', token: 'tökens are ASCII' },
    { type: 'bearer', token: secret, more: 1 },
    { type: 'bearer' },
    { type: 'apiKey', name: '', value: secret },
    { type: 'apiKey', name: 'Host', value: secret },
    { type: 'apiKey', name: 'content-length', value: secret },
    { type: 'apiKey', name: 'A2A-Version', value: secret },
    { type: 'apiKey', name: 'Proxy-Authorization', value: secret },
    { type: 'apiKey', name: 'X Key', value: secret },
    { type: 'apiKey', name: 'X:Key', value: secret },
    { ...oauth, tokenEndpoint: 'http://agent.example/t' },
    { ...oauth, tokenEndpoint: 'https://u:p@agent.example/t' },
    { ...oauth, clientSecret: 'short' },
    { ...oauth, clientId: '' },
    { type: 'mtls', cert: secret },
    { type: 'password', password: secret },
    'bearer',
    null,
  ])('is not of %j', (credential) => {
    expect(isBinding([origin], credential)).toBe(false)
  })
})

describe('a card that asks for something else', () => {
  const schemesOf = (securitySchemes: object) => {
    const card = {
      name: 'a',
      supportedInterfaces: [{ url: origin, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    }
    const parsed = parseCard({ ...card, securitySchemes })
    if ('fault' in parsed) throw new Error(parsed.fault)
    return parsed.card
  }
  const key = { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } }
  const http = { httpAuthSecurityScheme: { scheme: 'Bearer' } }

  test('is told in words that are ours', () => {
    expect(mismatchOf('bearer', schemesOf({ one: key }))).toBe(
      'The Agent Card asks for an API key, and the credential is of kind bearer.',
    )
    expect(mismatchOf('mtls', schemesOf({ one: key, two: http }))).toBe(
      'The Agent Card asks for an API key or a bearer token, and the credential is of kind mtls.',
    )
    expect(mismatchOf('apiKey', schemesOf({ one: { type: 'apiKey', in: 'query', name: 'k' } }))).toContain(
      'an API key outside the header',
    )
  })

  test('is none where one of its schemes fits, or it asks for nothing', () => {
    expect(mismatchOf('bearer', schemesOf({ one: key, two: http }))).toBeNull()
    expect(mismatchOf('oauthClient', schemesOf({ one: http }))).toBeNull()
    expect(mismatchOf('mtls', schemesOf({ one: { mtlsSecurityScheme: {} } }))).toBeNull()
    expect(mismatchOf('bearer', schemesOf({}))).toBeNull()
    expect(mismatchOf('bearer', schemesOf({ one: { unheardOf: {} } }))).toBeNull()
  })
})
