/**
 * What an IP address is, so that the policy can say who may be reached. Owns the table; default deny: an address is
 * public only when no special-purpose registry names it. Pure; does not resolve names, connect, or decide.
 *
 * Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), RFC 6052 (NAT64), RFC 4291 (mapped), and
 * the metadata addresses that cloud vendors document. Text comparison and published "is private" packages are not used:
 * `::ffff:a9fe:a9fe`, `::7f00:1` and 168.63.129.16 got past them.
 */
import { isIPv4, isIPv6 } from 'node:net'

export type AddressClass = 'public' | 'loopback' | 'private' | 'link-local' | 'metadata' | 'reserved'

interface Range {
  readonly first: bigint
  readonly last: bigint
  readonly is: AddressClass
}

/** Read from the top, first match wins. */
const v4Table: readonly Range[] = [
  ...ranges('metadata', ['169.254.169.254', '169.254.170.2', '169.254.170.23', '168.63.129.16']),
  ...ranges('metadata', ['100.100.100.200', '192.0.0.192']),
  ...ranges('loopback', ['127.0.0.0/8']),
  ...ranges('link-local', ['169.254.0.0/16']),
  ...ranges('private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10']),
  // "This network", protocol assignments, documentation, AS112, AMT, 6to4 relays, benchmarking, multicast, class E.
  ...ranges('reserved', ['0.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24']),
  ...ranges('reserved', ['192.88.99.0/24', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24']),
  ...ranges('reserved', ['224.0.0.0/4', '240.0.0.0/4']),
]

const v6Table: readonly Range[] = [
  // AWS's services for its own hosts, Google's, Oracle's, Scaleway's.
  ...ranges('metadata', ['fd00:ec2::/32', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:42::42']),
  ...ranges('loopback', ['::1']),
  ...ranges('link-local', ['fe80::/10']),
  ...ranges('private', ['fc00::/7']),
  // Teredo, ORCHID, benchmarking; documentation; 6to4; AS112: inside global unicast and yet nobody's host.
  ...ranges('reserved', ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']),
  ...ranges('public', ['2000::/3']),
]

/** Mapped, and what a NAT64 translates. */
const embedding = ranges('reserved', ['::ffff:0:0/96', '64:ff9b::/96'])
const low32 = 0xffff_ffffn

/** Classifies an address as text, as a resolver or a socket says it. Anything that is not one is `reserved`. */
export function classifyAddress(address: string): AddressClass {
  if (isIPv4(address)) return lookUp(v4Table, v4Bits(address)) ?? 'public'
  // A zone id (`fe80::1%eth0`) names an interface of this machine: no agent lives there.
  if (!isIPv6(address) || address.includes('%')) return 'reserved'
  const bits = v6Bits(address)
  if (embedding.some((entry) => within(entry, bits))) return embedded(bits & low32)
  return lookUp(v6Table, bits) ?? 'reserved'
}

/**
 * A translator may carry public hosts only [RFC 6052 §3.1]. A mapped address is the same host as its IPv4 spelling, but nobody
 * writes this machine or a network of ours that way who does not mean to get past somebody.
 */
function embedded(v4: bigint): AddressClass {
  const inner = lookUp(v4Table, v4) ?? 'public'
  return inner === 'public' || inner === 'metadata' ? inner : 'reserved'
}

const within = (entry: Range, bits: bigint): boolean => bits >= entry.first && bits <= entry.last

const lookUp = (table: readonly Range[], bits: bigint): AddressClass | undefined =>
  table.find((entry) => within(entry, bits))?.is

function ranges(is: AddressClass, blocks: readonly string[]): Range[] {
  return blocks.map((block) => range(block, is))
}

function range(block: string, is: AddressClass): Range {
  const [address = '', prefix] = block.split('/')
  const width = isIPv4(address) ? 32 : 128
  const first = width === 32 ? v4Bits(address) : v6Bits(address)
  const free = BigInt(width - Number(prefix ?? width))
  return { first, last: first | ((1n << free) - 1n), is }
}

/** Takes what `isIPv4` accepts: four decimal numbers, no leading zeros. */
function v4Bits(address: string): bigint {
  return address.split('.').reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n)
}

/** Takes what `isIPv6` accepts without a zone: hex groups, at most one `::`, perhaps a dotted tail. */
function v6Bits(address: string): bigint {
  const [head = '', tail] = address.split('::')
  const left = groups(head)
  const right = tail === undefined ? [] : groups(tail)
  const gap = Array.from({ length: 8 - left.length - right.length }, () => 0n)
  return [...left, ...gap, ...right].reduce((bits, group) => (bits << 16n) | group, 0n)
}

function groups(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)]
    const v4 = v4Bits(group)
    return [v4 >> 16n, v4 & 0xffffn]
  })
}
