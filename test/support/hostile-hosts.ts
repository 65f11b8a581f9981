/**
 * Places that an agent's address must not lead to, in every spelling that got past somebody once. Owns the list and what each
 * spelling means; what follows from it is the tests' to say.
 */

/**
 * `loopback`: this machine, where development agents live. `private`: reachable with the flag. `never`: under no policy.
 * `refused`: not even an address, so it cannot be registered.
 */
export type HostileKind = 'loopback' | 'private' | 'never' | 'refused'

/** A host as written in a URL, and what it means after the URL standard has read it. */
export const hostileHosts: readonly (readonly [host: string, kind: HostileKind])[] = [
  // Spellings of 127.0.0.1 that the URL standard takes for it: short, decimal, hexadecimal, octal, dotted at the end.
  ['127.0.0.1', 'loopback'],
  ['127.1', 'loopback'],
  ['2130706433', 'loopback'],
  ['0x7f000001', 'loopback'],
  ['0x7f.1', 'loopback'],
  ['0177.0.0.1', 'loopback'],
  ['017700000001', 'loopback'],
  ['127.0.0.1.', 'loopback'],
  // Digits and dots of other scripts, percent-encoding.
  ['①②⑦.⓪.⓪.①', 'loopback'],
  ['127。0。0。1', 'loopback'],
  ['127.0.0.１', 'loopback'],
  ['%31%32%37.0.0.1', 'loopback'],
  ['127%2e0%2e0%2e1', 'loopback'],
  ['[::1]', 'loopback'],
  ['[0:0:0:0:0:0:0:1]', 'loopback'],
  // IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4 and Teredo are a way around.
  ['[::ffff:127.0.0.1]', 'never'],
  ['[::ffff:7f00:1]', 'never'],
  ['[::127.0.0.1]', 'never'],
  ['[::ffff:0:7f00:1]', 'never'],
  ['[64:ff9b::7f00:1]', 'never'],
  ['[64:ff9b:1::7f00:1]', 'never'],
  ['[2002:7f00:1::]', 'never'],
  ['[2001:0:7f00:1::]', 'never'],
  // Unspecified: a connection to it goes to loopback on Linux.
  ['0', 'never'],
  ['0.0.0.0', 'never'],
  ['0x0', 'never'],
  ['[::]', 'never'],
  // Metadata services of clouds, in all forms.
  ['169.254.169.254', 'never'],
  ['2852039166', 'never'],
  ['0xa9fea9fe', 'never'],
  ['0251.0376.0251.0376', 'never'],
  ['169.254.43518', 'never'],
  ['[::ffff:a9fe:a9fe]', 'never'],
  ['[::ffff:169.254.169.254]', 'never'],
  ['[64:ff9b::a9fe:a9fe]', 'never'],
  ['[fd00:ec2::254]', 'never'],
  ['[fd00:ec2::253]', 'never'],
  ['[fd00:c1::a9fe:a9fe]', 'never'],
  ['[fd00:42::42]', 'never'],
  ['[fd20:ce::254]', 'never'],
  ['169.254.170.2', 'never'],
  ['168.63.129.16', 'never'],
  ['100.100.100.200', 'never'],
  ['192.0.0.192', 'never'],
  // Link-local, site-local, multicast, broadcast, reserved, documentation, benchmarking.
  ['169.254.0.23', 'never'],
  ['[fe80::1]', 'never'],
  ['[fec0::1]', 'never'],
  ['224.0.0.1', 'never'],
  ['[ff02::1]', 'never'],
  ['255.255.255.255', 'never'],
  ['192.0.0.1', 'never'],
  ['192.88.99.1', 'never'],
  ['240.0.0.1', 'never'],
  ['198.18.0.1', 'never'],
  ['192.0.2.1', 'never'],
  ['[2001:db8::1]', 'never'],
  ['[4000::1]', 'never'],
  // Private and shared.
  ['10.0.0.1', 'private'],
  ['172.16.0.1', 'private'],
  ['192.168.1.1', 'private'],
  ['100.64.0.1', 'private'],
  ['[fc00::1]', 'private'],
  ['[::ffff:10.0.0.1]', 'never'],
  // No address at all: zone ids, a user's name before the host, things that only look like numbers.
  ['[fe80::1%25lo]', 'refused'],
  ['[::1%lo]', 'refused'],
  ['agent.example@127.0.0.1', 'refused'],
  ['agent.example:80@127.0.0.1', 'refused'],
  ['256.256.256.256', 'refused'],
  ['127.0.0.1%00', 'refused'],
  ['१२७.0.0.1', 'refused'],
]

/** Names, and what a resolver that means harm answers for each. */
export const hostileNames: readonly (readonly [name: string, answers: readonly string[], kind: HostileKind])[] = [
  ['localhost', ['127.0.0.1'], 'loopback'],
  ['localhost.', ['127.0.0.1'], 'loopback'],
  ['agent.localhost', ['127.0.0.1', '::1'], 'loopback'],
  ['ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', ['::1'], 'loopback'],
  ['127.0.0.1..', ['127.0.0.1'], 'loopback'],
  ['127.0.0.1.agent.test', ['127.0.0.1'], 'loopback'],
  ['mapped.test', ['::ffff:127.0.0.1'], 'never'],
  ['mixed.test', ['198.51.100.7', '127.0.0.1'], 'never'],
  ['mixed-last.test', ['127.0.0.1', '127.0.0.1', '169.254.169.254'], 'never'],
  ['metadata.google.internal', ['169.254.169.254'], 'never'],
  // Under these names there is nothing else, whatever a resolver says.
  ['METADATA.google.internal.', ['127.0.0.1'], 'never'],
  ['instance-data', ['127.0.0.1'], 'never'],
  ['mapped-metadata.test', ['::ffff:169.254.169.254'], 'never'],
  ['translated.test', ['64:ff9b::7f00:1'], 'never'],
  ['unspecified.test', ['0.0.0.0'], 'never'],
  ['zone.test', ['fe80::1%lo'], 'never'],
  ['short.test', ['127.1'], 'never'],
  ['nothing-said.test', [''], 'never'],
  ['private.test', ['10.0.0.1'], 'private'],
  ['mixed-private.test', ['127.0.0.1', '10.0.0.1'], 'private'],
]
