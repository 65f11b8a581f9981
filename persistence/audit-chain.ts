/**
 * The audit chain as rows: linking what is committed, and reading links with their rows. Owns the proof that no row is passed
 * over and that nobody waits for a link; not what a link's hash is made of (domain/audit-chain.ts), nor when (actors/audit-chain.ts).
 *
 * A place is drawn before its commit, so 7 may be seen before 6. Whoever holds a place has a transaction id by then (the
 * column's default sees to it), and places are drawn in order. So: read the last place M; draw an id x afterwards; everybody
 * who holds a place up to M has a smaller id than x. When a snapshot says that no id below x is alive, what is visible up to
 * M is all there will ever be, and it is linked in order of place. Writers lock nothing for this and never wait.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import {
  chainStart,
  linkText,
  type ChainAnchor,
  type ChainedRow,
  type ChainLink,
  type Digest,
} from '../domain/audit-chain.ts'
import type { Database } from './database.ts'
import type { Connection, Transaction } from './connection.ts'
import { drawnId, oldestAlive } from './transaction-ids.ts'

/** Some five milliseconds of the main thread, and one statement's worth of rows. */
const rowsAtOnce = 250

const Row = z.custom<ChainedRow>()
/** A left join: of a row that is gone every column is null. */
const StoredLink = z.custom<ChainLink & { readonly linkedPlace: number } & (ChainedRow | { readonly id: null })>()
const Anchor = z.object({ organizationId: z.string(), number: z.number(), hash: z.string() })

/** With microseconds, which the driver's times do not have; and with the era, or a row could be moved to the same day before Christ. */
const exactAt = sql.fragment`to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || case when a.at < timestamptz '0001-01-01 00:00:00+00' then ' BC' else '' end`
const rowColumns = sql.fragment`
  a.place, a.id, a.organization_id as "organizationId", ${exactAt} as at, a.kind,
  a.actor_type as "actorType", a.actor_person_id as "actorPersonId", a.task_id as "taskId", a.subject_id as "subjectId", a.data`

export interface Linked {
  readonly links: number
  /** Whether more rows can be linked now. */
  readonly more: boolean
}
const nothing: Linked = { links: 0, more: false }

const Ends = z.object({ last: z.number(), place: z.number().nullable() })
const Linking = z.object({
  place: z.number(),
  pendingPlace: z.number().nullable(),
  pendingXid: z.number().nullable(),
  xid: z.number(),
  oldest: z.number(),
})

/** Links committed rows, a bounded number. While another process is at it, nothing. */
export async function linkRows(db: Database['pool'], digest: Digest, at: string): Promise<Linked> {
  // Before the transaction, so that its id is drawn after this was read.
  const { last, place: known } = await db.one(sql.type(Ends)`
    select coalesce((select max(place) from audit), 0) as last, (select place from audit_linking) as place`)
  if (known !== null && last <= known) return nothing
  // Somebody took it away: linking goes on behind the last link.
  if (known === null) await db.query(sql.unsafe`insert into audit_linking (place) values (0) on conflict do nothing`)
  return db.transaction(async (tx) => {
    const linking = await tx.maybeOne(sql.type(Linking)`
      select greatest(place, (select max(place) from audit_link)) as place, pending_place as "pendingPlace",
        pending_xid::text::int8 as "pendingXid", ${drawnId}::text::int8 as xid, ${oldestAlive} as oldest
      from audit_linking for update skip locked`)
    if (!linking) return nothing
    const { settled, wanted } = boundsOf(linking, last)
    const rows = await tx.any(sql.type(Row)`
      select ${rowColumns} from audit a where a.place > ${linking.place} and a.place <= ${settled.place}
      order by a.place limit ${rowsAtOnce}`)
    await link(tx, rows, digest, at)
    const more = rows.length === rowsAtOnce
    // What is settled stays so: a backlog is linked to its end before the next end is looked for.
    const place = more ? (rows.at(-1)?.place ?? settled.place) : settled.place
    const pending = more ? settled : wanted
    await tx.query(sql.unsafe`
      update audit_linking set place = ${place}, pending_place = ${pending.place},
        pending_xid = ${String(pending.xid)}::text::xid8`)
    return { links: rows.length, more }
  })
}

/** Everything up to the place is there for good once no transaction below the id is alive. */
interface Bound {
  readonly place: number
  readonly xid: number
}

/** Up to where nothing can appear any more, and what to wait for once that is linked. */
function boundsOf(linking: z.infer<typeof Linking>, last: number): { settled: Bound; wanted: Bound } {
  const { place, pendingPlace, pendingXid, xid, oldest } = linking
  const newest = { place: last, xid }
  if (oldest >= xid) return { settled: newest, wanted: newest }
  const nothingYet = { place, xid }
  // An id from the future is another cluster's: the database was restored from a dump, and what it waited for is not here.
  if (pendingPlace === null || pendingXid === null || pendingXid >= xid) return { settled: nothingYet, wanted: newest }
  const pending = { place: pendingPlace, xid: pendingXid }
  if (oldest < pendingXid) return { settled: nothingYet, wanted: pending }
  return { settled: pendingPlace > place ? pending : nothingYet, wanted: newest }
}

async function link(tx: Transaction, rows: readonly ChainedRow[], digest: Digest, at: string): Promise<void> {
  if (rows.length === 0) return
  const heads = await readHeads(tx, [...new Set(rows.map(({ organizationId }) => organizationId))])
  const links = rows.flatMap((row) => {
    const { number: before, hash: previousHash } = heads.get(row.organizationId) ?? chainStart
    const number = before + 1
    const text = linkText(previousHash, number, row)
    // Passed over: without a link among linked rows it is a stray, and told as one. Failing for it would be failing for ever.
    if (text === null) return []
    const hash = digest(text)
    heads.set(row.organizationId, { number, hash })
    return [[row.organizationId, number, row.place, bytea(previousHash), bytea(hash)]]
  })
  if (links.length === 0) return
  await tx.query(sql.unsafe`
    insert into audit_link (organization_id, number, place, previous_hash, hash)
    select * from ${sql.unnest(links, ['uuid', 'int8', 'int8', 'bytea', 'bytea'])} l`)
  await tx.query(sql.unsafe`
    insert into audit_chain (organization_id, number, hash, linked_at)
    select h.*, ${at} from ${sql.unnest(
      [...heads].map(([organizationId, { number, hash }]) => [organizationId, number, bytea(hash)]),
      ['uuid', 'int8', 'bytea'],
    )} h
    on conflict (organization_id) do update set number = excluded.number, hash = excluded.hash, linked_at = excluded.linked_at`)
}

const bytea = (hash: string): string => `\\x${hash}`

/**
 * Where chains are gone on with: at the head, or at a last link that stands beyond it. A head that was set back or taken away
 * must not make the linker forge a number that exists: it would fail for ever, and the process with it.
 */
async function readHeads(tx: Transaction, organizationIds: readonly string[]): Promise<Map<string, ChainAnchor>> {
  const rows = await tx.any(sql.type(Anchor)`
    select o.id as "organizationId", far.number, encode(far.hash, 'hex') as hash
    from unnest(${sql.array([...organizationIds], 'uuid')}) o(id) cross join lateral (
      (select number, hash, 0 as rank from audit_chain where organization_id = o.id)
      union all
      (select number, hash, 1 from audit_link where organization_id = o.id order by number desc limit 1)
      order by number desc, rank limit 1
    ) far`)
  return new Map(rows.map(({ organizationId, number, hash }) => [organizationId, { number, hash }]))
}

export interface LinkedRow extends ChainLink {
  readonly place: number
  /** Null: the row is gone. */
  readonly row: ChainedRow | null
}

/** Links with their rows, from behind a number to another, in order; a bounded number. */
export async function readLinks(
  db: Pick<Connection, 'any'>,
  organizationId: string,
  range: { readonly after: number; readonly to: number; readonly limit: number },
): Promise<readonly LinkedRow[]> {
  const rows = await db.any(sql.type(StoredLink)`
    select l.number, encode(l.previous_hash, 'hex') as "previousHash", encode(l.hash, 'hex') as hash,
      l.place as "linkedPlace", ${rowColumns}
    from audit_link l left join audit a on a.place = l.place
    where l.organization_id = ${organizationId} and l.number > ${range.after} and l.number <= ${range.to}
    order by l.number limit ${range.limit}`)
  return rows.map(({ number, previousHash, hash, linkedPlace, ...row }) => {
    return { number, previousHash, hash, place: linkedPlace, row: row.id === null ? null : row }
  })
}

/** Where an organization's chain stands. */
export interface ChainHead extends ChainAnchor {
  readonly linkedAt: string | null
}

const Head = z.object({ number: z.number(), hash: z.string(), linkedAt: z.string() })

export async function findHead(db: Pick<Connection, 'maybeOne'>, organizationId: string): Promise<ChainHead> {
  const head = await db.maybeOne(sql.type(Head)`
    select number, encode(hash, 'hex') as hash, linked_at as "linkedAt" from audit_chain
    where organization_id = ${organizationId}`)
  return head ?? { ...chainStart, linkedAt: null }
}

/** Counting stops here: a first start on a large database links for minutes. */
const unlinkedLimit = 10_000

/** Rows that have no link yet; one more than ten thousand stands for more. */
export async function countUnlinked(db: Connection, organizationId: string): Promise<number> {
  return db.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*)::int as n from (
      select 1 from audit where place > coalesce((select place from audit_linking), 0) and organization_id = ${organizationId}
      limit ${unlinkedLimit + 1}) waiting`)
}

/** Where a link stands; null where there is none of that number. */
export async function findLink(db: Connection, organizationId: string, number: number): Promise<ChainAnchor | null> {
  return db.maybeOne(sql.type(z.object({ number: z.number(), hash: z.string() }))`
    select number, encode(hash, 'hex') as hash from audit_link
    where organization_id = ${organizationId} and number = ${number}`)
}
