/** The vault: what opens, what does not, and how little is said about it. */
import { CompactEncrypt } from 'jose'
import { describe, expect, it } from 'vitest'
import { Vault, VaultUnavailable, type KeyRing, type SealContext } from '../../actors/vault.ts'

const keys = { k1: '11'.repeat(32), k2: '22'.repeat(32) }
const ring = (activeKey: keyof typeof keys, ...ids: (keyof typeof keys)[]): KeyRing => ({
  keys: Object.fromEntries([activeKey, ...ids].map((id) => [id, keys[id]])),
  activeKey,
})
const context: SealContext = {
  organizationId: '0190d9f0-0000-7000-8000-000000000001',
  agentId: '0190d9f0-0000-7000-8000-000000000002',
  kind: 'bearer',
}
const text = JSON.stringify({ token: 'a secret of some length' })
const reasonOf = (opening: Promise<string>) =>
  opening.then(
    () => 'opened',
    (error: unknown) => (error instanceof VaultUnavailable ? error.reason : error),
  )

describe('a sealed text', () => {
  it('opens by any key of the ring, and is sealed by the active one', async () => {
    const { sealed, keyId } = await new Vault(ring('k1')).seal(context, text)
    expect(keyId).toBe('k1')
    expect(sealed).not.toContain('secret')
    expect(await new Vault(ring('k2', 'k1')).open(context, sealed)).toBe(text)
    expect(await reasonOf(new Vault(ring('k2')).open(context, sealed))).toBe('unknown-key')
    expect(await reasonOf(new Vault(null).open(context, sealed))).toBe('no-key-ring')
  })

  it('is never the same twice', async () => {
    const vault = new Vault(ring('k1'))
    const [one, two] = [await vault.seal(context, text), await vault.seal(context, text)]
    expect(one.sealed).not.toBe(two.sealed)
  })

  it.each<[string, Partial<SealContext>]>([
    ['organization', { organizationId: '0190d9f0-0000-7000-8000-00000000000a' }],
    ['agent', { agentId: '0190d9f0-0000-7000-8000-00000000000b' }],
    ['kind', { kind: 'apiKey' }],
  ])('does not open as that of another %s', async (_what, other) => {
    const vault = new Vault(ring('k1'))
    const { sealed } = await vault.seal(context, text)
    expect(await reasonOf(vault.open({ ...context, ...other }, sealed))).toBe('moved')
  })

  it('does not open once any part of it was changed', async () => {
    const vault = new Vault(ring('k1', 'k2'))
    const { sealed } = await vault.seal(context, text)
    const parts = sealed.split('.')
    const header: unknown = JSON.parse(Buffer.from(parts[0] ?? '', 'base64url').toString())
    const headed = (changes: object) =>
      [Buffer.from(JSON.stringify(Object.assign({}, header, changes))).toString('base64url'), ...parts.slice(1)].join(
        '.',
      )
    // Base64url of n bytes: the first character of a part always counts.
    const turned = (part: number) =>
      parts.map((each, i) => (i === part ? (each.startsWith('A') ? 'B' : 'A') + each.slice(1) : each)).join('.')
    const forged = [
      ...[2, 3, 4].map(turned),
      headed({ ctx: `${context.organizationId} ${context.agentId} mtls` }),
      headed({ kid: 'k2' }),
      headed({ zip: 'DEF' }),
      headed({ alg: 'none' }),
      headed({ alg: 'PBES2-HS512+A256KW', p2c: 2 ** 31 - 1, p2s: 'c2FsdHNhbHQ' }),
      headed({ enc: 'A128GCM' }),
      parts.slice(0, 4).join('.'),
      'not even that',
      '',
    ]
    for (const each of forged) expect(await reasonOf(vault.open(context, each)), each.slice(0, 200)).toBe('unreadable')
  })

  it('of another purpose does not open here, although its key is right', async () => {
    const ctx = `${context.organizationId} ${context.agentId} ${context.kind}`
    const foreign = await new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: 'k1', typ: 'something-else', ctx })
      .encrypt(Buffer.from(keys.k1, 'hex'))
    expect(await reasonOf(new Vault(ring('k1')).open(context, foreign))).toBe('moved')
  })
})
