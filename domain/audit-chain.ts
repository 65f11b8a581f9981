/**
 * The audit chain as arithmetic: what a link's hash is made of, and what can be wrong with a run of links. Owns neither rows
 * (persistence/audit-chain.ts) nor hashing, which needs a platform's crypto; what a chain proves is docs/adr/0011.
 */
import * as z from 'zod/mini'
import { canonicalJson, NotCanonical } from '../a2a/canonical-json.ts'
import type { AuditActorType } from './audit.ts'

/** An audit row whole, as it is hashed. `at` is UTC with microseconds, all that the database keeps. */
export interface ChainedRow {
  /** Its key in the table; grows in the order of the chain. */
  readonly place: number
  readonly id: string
  readonly organizationId: string
  readonly at: string
  readonly kind: string
  readonly actorType: AuditActorType
  readonly actorPersonId: string | null
  readonly taskId: string | null
  readonly subjectId: string | null
  readonly data: unknown
}

/** Hashes are SHA-256, 64 lower-case hexadecimal digits. Numbers begin at 1. */
export interface ChainLink {
  readonly number: number
  readonly previousHash: string
  readonly hash: string
}

/** A place in a chain that somebody vouches for: where a check begins, or what it must come to. */
export type ChainAnchor = Pick<ChainLink, 'number' | 'hash'>

/** Before the first row. */
export const chainStart: ChainAnchor = { number: 0, hash: '0'.repeat(64) }

/**
 * What is hashed, UTF-8 of RFC 8785 canonical JSON of `{previousHash, number, row}`: the row whole, its number, and the hash of its
 * predecessor. Written out with the keys in their order, which is a quarter of the general way's cost (a test compares them):
 * all but `data` are texts, whole numbers and null, which JSON.stringify writes as the RFC says. Null for a row that has no such
 * text: the database takes numbers that JSON cannot say, and we never write one.
 */
export function linkText(previousHash: string, number: number, row: ChainedRow): string | null {
  const { actorPersonId, actorType, at, data, id, kind, organizationId, place, subjectId, taskId } = row
  const head = JSON.stringify({ actorPersonId, actorType, at })
  const tail = JSON.stringify({ id, kind, organizationId, place, subjectId, taskId })
  const said = canonicalOrNull(data)
  if (said === null) return null
  const whole = `${head.slice(0, -1)},"data":${said},${tail.slice(1)}`
  return `{"number":${number},"previousHash":${JSON.stringify(previousHash)},"row":${whole}}`
}

function canonicalOrNull(data: unknown): string | null {
  try {
    return canonicalJson(data)
  } catch (error) {
    if (error instanceof NotCanonical) return null
    throw error
  }
}

/**
 * `gap`: a number is missing, comes twice or in another order. `previous`: the predecessor is not the one that was linked.
 * `row`: the row is not what was hashed. `missing`: a link without its row. `stray`: a row among linked ones that no link names.
 * `organization`: the row of another organization. `end`: the chain does not end where it is said to. `anchor`: it does not hold
 * the hash that was noted elsewhere.
 */
export type ChainFaultKind = 'gap' | 'previous' | 'row' | 'missing' | 'stray' | 'organization' | 'end' | 'anchor'

export interface ChainFault {
  readonly kind: ChainFaultKind
  /** The link where it was seen. */
  readonly number: number
}

const sentences: Record<ChainFaultKind, string> = {
  gap: 'a row is missing, repeated or out of order before it',
  previous: 'the row before it is not the one it was linked to',
  row: 'the row was changed after it was linked',
  missing: 'its row is gone',
  stray: 'a row that was never linked stands before it',
  organization: 'the row belongs to another organization',
  end: 'the chain does not end where its head says',
  anchor: 'the hash is not the one that was noted',
}
export const faultWords = ({ kind, number }: ChainFault): string => `Row ${number}: ${sentences[kind]}.`

export type Digest = (text: string) => string

/** Follows one organization's links, row by row. A fault does not end it: the walk goes on from what it was shown. */
export class ChainWalk {
  readonly #organizationId: string
  readonly #digest: Digest
  #at: ChainAnchor

  constructor(organizationId: string, from: ChainAnchor, digest: Digest) {
    this.#organizationId = organizationId
    this.#at = from
    this.#digest = digest
  }

  /** The last link that was followed, or where the walk began. */
  get at(): ChainAnchor {
    return this.#at
  }

  /** The first thing that is wrong with a link, seen from the one before it. */
  follow(link: ChainLink, row: ChainedRow | null): ChainFaultKind | null {
    const before = this.#at
    this.#at = { number: link.number, hash: link.hash }
    if (link.number !== before.number + 1) return 'gap'
    if (link.previousHash !== before.hash) return 'previous'
    if (row === null) return 'missing'
    if (row.organizationId !== this.#organizationId) return 'organization'
    const text = linkText(link.previousHash, link.number, row)
    return text !== null && this.#digest(text) === link.hash ? null : 'row'
  }
}

const Hash = z.string().check(z.regex(/^[0-9a-f]{64}$/))
const Count = z.int().check(z.nonnegative())
const Anchor = z.strictObject({ number: Count, hash: Hash })

/**
 * The first line of an exported chain (JSON lines): `after` is where it goes on, the chain's start or the end of an earlier
 * file. Strict, as all lines: what no hash covers must not be read as if one did.
 */
export const chainFormat = 'signalbox-audit-chain/1'
export const ChainFileStart = z.strictObject({
  format: z.literal(chainFormat),
  organizationId: z.string(),
  exportedAt: z.string(),
  after: Anchor,
})
export type ChainFileStart = z.infer<typeof ChainFileStart>

/** A line for each link. */
export const ChainFileLink = z.strictObject({
  number: Count,
  previousHash: Hash,
  hash: Hash,
  row: z.nullable(
    z.strictObject({
      place: z.number(),
      id: z.string(),
      organizationId: z.string(),
      at: z.string(),
      kind: z.string(),
      actorType: z.enum(['user', 'system', 'agent']),
      actorPersonId: z.nullable(z.string()),
      taskId: z.nullable(z.string()),
      subjectId: z.nullable(z.string()),
      data: z.unknown(),
    }),
  ),
})

/** The last line. `unlinked`: rows that had no link yet when the file was made; they are in the next one. */
export const ChainFileEnd = z.strictObject({ head: Anchor, unlinked: Count })
export type ChainFileEnd = z.infer<typeof ChainFileEnd>
