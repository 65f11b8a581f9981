/**
 * Checking the audit chain against its rows, a bounded piece at a time: a walk that begins anew now and then, whose place is a row, so
 * that any process goes on with it. Does not decide when (actors/audit-chain.ts) or what a link should be (domain/audit-chain.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { ChainWalk, chainStart, type ChainAnchor, type ChainFault, type Digest } from '../domain/audit-chain.ts'
import { findHead, readLinks, type LinkedRow } from './audit-chain.ts'
import type { Database } from './database.ts'
import type { Connection, Transaction } from './connection.ts'

const linksAtOnce = 250

const Fault = z.custom<ChainFault>().nullable()
const Walk = z.object({ number: z.number(), hash: z.string(), place: z.number(), isOver: z.boolean() })
type Walk = z.infer<typeof Walk>

/** `rests`: nothing to do for now. `goes on`: there is more to look at. Otherwise a walk ended, and this is what it found. */
export type Checked = 'rests' | 'goes on' | { readonly fault: ChainFault | null }

/** Organizations whose chain is followed: all, for one whose head is gone is the one to look at. */
export const chainedOrganizations = (db: Connection): Promise<readonly string[]> =>
  db.anyFirst(sql.type(z.object({ id: z.string() }))`select id from organization order by 1`)

export interface CheckTimes {
  readonly at: string
  /** A walk that began before this instant, and ended, is followed by another. */
  readonly staleBefore: string
}

/** Follows some links of one organization. Another process that is at it is left alone. */
export async function checkLinks(
  db: Database['pool'],
  organizationId: string,
  digest: Digest,
  times: CheckTimes,
): Promise<Checked> {
  await db.query(sql.unsafe`
    insert into audit_check (organization_id, number, hash, place, began_at)
    values (${organizationId}, 0, ${`\\x${chainStart.hash}`}::bytea, 0, ${times.at}) on conflict do nothing`)
  return db.transaction(async (tx) => {
    // One snapshot: a link that is made meanwhile would look like one too many.
    await tx.query(sql.unsafe`set transaction isolation level repeatable read`)
    const walk = await begin(tx, organizationId, times)
    if (!walk) return 'rests'
    const head = await findHead(tx, organizationId)
    const links = await readLinks(tx, organizationId, { after: walk.number, to: head.number, limit: linksAtOnce })
    const last = links.at(-1)
    const isEnd = links.length < linksAtOnce
    const at = { number: last?.number ?? walk.number, hash: last?.hash ?? walk.hash, place: last?.place ?? walk.place }
    const fault =
      faultIn(organizationId, walk, links, digest) ??
      (await strays(tx, organizationId, { ...walk, to: at.place, rows: links.length })) ??
      (isEnd ? await faultAtEnd(tx, organizationId, at, head) : null)
    const isOver = isEnd || fault !== null
    await tx.query(sql.unsafe`
      update audit_check set number = ${at.number}, hash = ${`\\x${at.hash}`}::bytea, place = ${at.place},
        checked_at = ${isOver ? sql.fragment`${times.at}` : sql.fragment`checked_at`},
        fault = ${isOver ? sql.fragment`${fault && JSON.stringify(fault)}::jsonb` : sql.fragment`fault`}
      where organization_id = ${organizationId}`)
    return isOver ? { fault } : 'goes on'
  })
}

/** Takes the walk up where it stands, or begins another; null where it is not time, or somebody else is at it. */
async function begin(tx: Transaction, organizationId: string, { at, staleBefore }: CheckTimes): Promise<Walk | null> {
  const walk = await tx.maybeOne(sql.type(Walk)`
    select number, encode(hash, 'hex') as hash, place, coalesce(checked_at >= began_at, false) as "isOver" from audit_check
    where organization_id = ${organizationId}
      and (checked_at is null or checked_at < began_at or began_at < ${staleBefore})
    for update skip locked`)
  if (!walk?.isOver) return walk
  await tx.query(sql.unsafe`update audit_check set began_at = ${at} where organization_id = ${organizationId}`)
  return { ...chainStart, place: 0, isOver: false }
}

function faultIn(
  organizationId: string,
  from: ChainAnchor,
  links: readonly LinkedRow[],
  digest: Digest,
): ChainFault | null {
  const walk = new ChainWalk(organizationId, from, digest)
  for (const link of links) {
    const kind = walk.follow(link, link.row)
    if (kind) return { kind, number: link.number }
  }
  return null
}

/** Between two linked places every row of the organization has a link: what was put in later has none. */
async function strays(
  tx: Transaction,
  organizationId: string,
  span: { readonly number: number; readonly place: number; readonly to: number; readonly rows: number },
): Promise<ChainFault | null> {
  const { n } = await tx.one(sql.type(z.object({ n: z.number() }))`
    select count(*)::int as n from audit
    where place > ${span.place} and place <= ${span.to} and organization_id = ${organizationId}`)
  return n > span.rows ? { kind: 'stray', number: span.number + 1 } : null
}

/** The last link is the head's, none stands beyond it, and no row stands beyond it that the linker has passed. */
async function faultAtEnd(
  tx: Transaction,
  organizationId: string,
  last: ChainAnchor & { readonly place: number },
  head: ChainAnchor,
): Promise<ChainFault | null> {
  const { isMore } = await tx.one(sql.type(z.object({ isMore: z.boolean() }))`
    select exists (select 1 from audit_link where organization_id = ${organizationId} and number > ${head.number})
      or exists (select 1 from audit where organization_id = ${organizationId} and place > ${last.place}
        and place <= (select place from audit_linking)) as "isMore"`)
  const isHead = last.number === head.number && last.hash === head.hash
  return isHead && !isMore ? null : { kind: 'end', number: head.number }
}

export interface LastCheck {
  /** When the last walk along the whole chain ended; null before the first has. */
  readonly checkedAt: string | null
  readonly fault: ChainFault | null
}

export async function lastCheck(db: Connection, organizationId: string): Promise<LastCheck> {
  const row = await db.maybeOne(sql.type(z.object({ checkedAt: z.string().nullable(), fault: Fault }))`
    select checked_at as "checkedAt", fault from audit_check where organization_id = ${organizationId}`)
  return row ?? { checkedAt: null, fault: null }
}
