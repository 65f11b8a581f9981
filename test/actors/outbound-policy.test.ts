/** Who may be reached: the address table, every spelling of a forbidden address, lying resolvers, redirects. */
import { describe, expect, it } from 'vitest'
import { classifyAddress } from '../../actors/outbound/addresses.ts'
import type { ResolveAll } from '../../actors/outbound/connector.ts'
import { admit, OutboundFailure, permitsAddress } from '../../actors/outbound/policy.ts'
import type { OutboundPolicy } from '../../actors/outbound/policy.ts'
import { bounds, canary, development, door, get, post, production, resolvesTo, streamBounds, web } from './listeners.ts'

describe('an address', () => {
  const table: [string, string][] = [
    ['8.8.8.8', 'public'],
    ['1.1.1.1', 'public'],
    ['172.15.255.255', 'public'],
    ['172.32.0.0', 'public'],
    ['100.128.0.0', 'public'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.255', 'loopback'],
    ['10.0.0.0', 'private'],
    ['172.16.0.0', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.255.255', 'private'],
    ['100.64.0.1', 'private'],
    ['169.254.0.1', 'link-local'],
    ['169.254.169.254', 'metadata'],
    ['169.254.170.2', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['192.0.0.192', 'metadata'],
    ['0.0.0.0', 'reserved'],
    ['0.255.255.255', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['198.19.255.255', 'reserved'],
    ['203.0.113.9', 'reserved'],
    ['224.0.0.1', 'reserved'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'reserved'],
    ['::', 'reserved'],
    ['::1', 'loopback'],
    ['::7f00:1', 'reserved'],
    ['::127.0.0.1', 'reserved'],
    ['::ffff:127.0.0.1', 'reserved'],
    ['::ffff:7f00:1', 'reserved'],
    ['::ffff:a9fe:a9fe', 'metadata'],
    ['::ffff:10.0.0.1', 'reserved'],
    ['::ffff:8.8.8.8', 'public'],
    ['::ffff:0:127.0.0.1', 'reserved'],
    ['64:ff9b::8.8.8.8', 'public'],
    ['64:ff9b::7f00:1', 'reserved'],
    ['64:ff9b::a9fe:a9fe', 'metadata'],
    ['64:ff9b:1::8.8.8.8', 'reserved'],
    ['100::1', 'reserved'],
    ['100:0:0:1::1', 'reserved'],
    ['2001::1', 'reserved'],
    ['2001:db8::1', 'reserved'],
    ['2002:7f00:1::1', 'reserved'],
    ['2606:4700:4700::1111', 'public'],
    ['3fff::1', 'reserved'],
    ['4000::1', 'reserved'],
    ['5f00::1', 'reserved'],
    ['fc00::1', 'private'],
    ['fd00:ec2::254', 'metadata'],
    ['fd00:ec2::23', 'metadata'],
    ['fd00:ec2::253', 'metadata'],
    ['fd20:ce::254', 'metadata'],
    ['fd00:c1::a9fe:a9fe', 'metadata'],
    ['fd00:42::42', 'metadata'],
    ['fd00:42::43', 'private'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'reserved'],
    ['fec0::1', 'reserved'],
    ['ff02::1', 'reserved'],
    ['', 'reserved'],
    ['localhost', 'reserved'],
    ['127.1', 'reserved'],
  ]
  it.each(table)('%s is %s', (address, is) => expect(classifyAddress(address)).toBe(is))

  it('is public or loopback only without the flag, and never link-local or metadata with it', () => {
    const open = { ...development, allowPrivateNetworks: true }
    const reached = (policy: OutboundPolicy) => [
      ...new Set(table.filter(([address]) => permitsAddress(policy, address)).map(([, is]) => is)),
    ]
    expect(reached(development)).toEqual(['public', 'loopback'])
    expect(reached(open)).toEqual(['public', 'loopback', 'private'])
    expect(reached(production())).toEqual(['public'])
    expect(reached({ ...production(), allowPrivateNetworks: true })).toEqual(['public', 'private'])
  })
})

describe('a target', () => {
  // Every spelling of a forbidden address that the URL parser accepts, in production with its origin allow-listed.
  const spellings = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0x0.0x0.0x1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '0',
    '0.0.0.0',
    '10.0.0.1',
    '0xa9fea9fe',
    '169.254.169.254',
    '2852039166',
    '168.63.129.16',
    '192.168.1.1',
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::127.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '[fc00::1]',
    '[100:0:0:1::1]',
  ]
  it.each(spellings)('https://%s is blocked before a connection', async (host) => {
    const target = `https://${host}:1/`
    const sent = await door(production(new URL(target).origin)).exchange(get(target), bounds)
    expect(sent).toMatchObject({
      kind: 'unsent',
      code: 'blocked-address',
      message: 'Agent network address is blocked.',
    })
  })

  it.each(['169.254.169.254', '[fd00:ec2::254]', '[fe80::1]', '10.0.0.1', '0.0.0.0', '[::]'])(
    'http://%s is blocked in development too',
    async (host) => {
      const sent = await door().exchange(get(`http://${host}:1/`), bounds)
      expect(sent).toMatchObject({ kind: 'unsent', code: 'blocked-address' })
    },
  )

  it.each([
    ['https://agent.example', 'https://agent.example/rpc', null],
    ['https://agent.example', 'https://agent.example:443/rpc?x=1', null],
    ['https://agent.example', 'https://agent.example:8443/rpc', 'origin-not-allowed'],
    ['https://agent.example', 'https://agent.example.evil/rpc', 'origin-not-allowed'],
    ['https://agent.example', 'https://agent.example@evil.example/', 'invalid-request'],
    ['https://agent.example', 'https://evil.example\\@agent.example/', 'origin-not-allowed'],
    ['https://agent.example', 'https://agent.example./', 'origin-not-allowed'],
    ['https://agent.example', 'http://agent.example/rpc', 'origin-not-allowed'],
    ['http://agent.example', 'http://agent.example/rpc', 'https-required'],
    ['https://agent.example', 'file:///etc/passwd', 'invalid-request'],
    ['https://metadata.google.internal', 'https://METADATA.google.internal/x', 'blocked-address'],
    ['https://agent.localhost.', 'https://agent.localhost./x', 'blocked-address'],
    ['https://notlocalhost', 'https://notlocalhost/x', null],
    ['https://instance-data.', 'https://instance-data./x', 'blocked-address'],
    ['https://agent.example', ' HTTPS:\\\\agent.example\\r\tpc\n', null],
    ['https://agent.example', 'https:agent.example/rpc', null],
    ['https://agent.example', 'https:\\\\169.254.169.254\\rpc', 'origin-not-allowed'],
    ['https://agent.example', 'https://[fe80::1%25eth0]/', 'invalid-request'],
    ['https://agent.example', 'not a url', 'invalid-request'],
  ])('in production with %s allowed: %s → %s', (allowed, target, code) => {
    const admitted = admit(production(allowed), target)
    expect(admitted instanceof OutboundFailure ? admitted.code : null).toBe(code)
  })

  it.each([
    ['mixed answers', ['127.0.0.1', '10.0.0.1']],
    ['a private answer', ['192.168.0.1']],
    ['a mapped metadata answer', ['::ffff:169.254.169.254']],
    ['an answer with a zone', ['fe80::1%lo']],
  ])('a name with %s is blocked', async (_case, addresses) => {
    const listener = await canary()
    const outbound = door(development, { resolve: resolvesTo(...addresses) })
    const sent = await outbound.exchange(post(`http://agent.test:${listener.port}/`), bounds)
    expect(sent).toMatchObject({ kind: 'unsent', code: 'blocked-address' })
    expect(listener.connections).toBe(0)
  })

  it('is connected to at the checked addresses, resolved once a connection', async () => {
    let asked = 0
    const url = new URL(await web((_request, response) => response.end('{}')))
    const resolve: ResolveAll = (_name, done) => {
      asked += 1
      done(null, [{ address: asked === 1 ? '127.0.0.1' : '10.0.0.1', family: 4 }])
    }
    const sent = await door(development, { resolve }).exchange(get(`http://flip.test:${url.port}/`), bounds)
    expect(sent).toMatchObject({ kind: 'answered', status: 200 })
    expect(asked).toBe(1)
  })

  it('does not follow redirects, and leaves the place they name alone', async () => {
    const place = await canary()
    for (const status of [301, 302, 303, 307, 308, 300, 304]) {
      const url = await web((_request, response) => response.writeHead(status, { location: place.url }).end())
      expect(await door().exchange(post(url), bounds)).toMatchObject({
        kind: 'lost',
        code: 'redirect',
        message: 'Agent redirects are not permitted.',
      })
      expect(await door().openStream(post(url), streamBounds)).toMatchObject({ kind: 'lost', code: 'redirect' })
    }
    expect(place.connections).toBe(0)
  })
})
