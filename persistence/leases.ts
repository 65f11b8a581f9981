/**
 * Leases in the rows: claiming what is due, renewing, giving back. Each function is one statement for any number of actors.
 * Does not know what the work is, or whether a lease is still trusted (actors/loop/lease.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import { actorColumns, type ActorRef, type ActorRow } from './actors.ts'
import type { AstrayLooks } from './astray.ts'
import type { Database } from './database.ts'
import type { Connection } from './connection.ts'

export interface Claim {
  readonly kind: string
  readonly limit: number
  readonly leaseMs: number
  /** Lanes in which this process has no room: their rows stay where they are. */
  readonly fullLanes: readonly string[]
  /**
   * Of what failed or was slow last, by any of these counts in a machine's context, the process has no room for more: it stays where it
   * is, too. Not so what somebody had begun: that its holder is gone is to be told.
   */
  readonly exceptDoubted?: readonly string[]
  /** How far back to look, where all that fell due before is theirs; absent: at everything that is due. */
  readonly reachMs?: number
  /** Names for the leases that are granted, `limit` of them: whoever never hears the answer knows what it may have taken. */
  readonly tokens?: readonly string[]
  /** Tokens of claims whose answer was lost. Nothing can have begun under them, so their rows are free. */
  readonly unheard?: readonly string[]
  /** Where lanes take turns, what each holds and its place in their order; who has none had no turn yet, and comes first. */
  readonly turns?: ReadonlyMap<string, Turn> | null
  /** Only at what is due by the clock: nothing is astray (astray.ts). */
  readonly near?: true
  /** Its timers are dates, which ring by the calendar wherever a clock is set (actors/loop/kinds.ts). */
  readonly byCalendar?: true
}

export interface Turn {
  readonly held: number
  readonly number: number
}

/** Who claims. `exclusive`: no other process can be alive on this database; `held`: tokens whose work is under way here. */
export interface Holder {
  readonly owner: string
  readonly exclusive: boolean
  readonly held: readonly string[]
}

/** `claimed`: the lease is ours and the work is marked as begun. `begun`: it had been begun before, by a holder that is gone. */
export interface DueActor extends ActorRow {
  readonly claimed: boolean
  readonly begun: boolean
  /** The database's clock at the claim, or a later instant where that clock was set back: what is due by it is due. */
  readonly seenAt: string
  /** How long it had been due, less than nothing for what is taken before its time. */
  readonly dueMs: number
}

const Due = z.custom<DueActor>()

/**
 * Takes what is due: work that nobody holds is leased to `owner` and marked as begun; a row that only has a timer to ring
 * comes back unclaimed and is put off for five seconds, so that one process rings it. On an embedded database the clock
 * decides nothing about the living: another owner's lease is free at once, for the directory's lock says that it is dead,
 * and a lease whose work is under way here is not free, wherever a wall clock jumps. Nor does anything wait until a clock that
 * was set back has come to where it was: what is due after an instant that has yet to come again is due now.
 */
export const claimActors = (db: Pick<Connection, 'any'>, claim: Claim, holder: Holder): Promise<readonly DueActor[]> =>
  db.any(sql.type(Due)`${claiming(claim, holder)}`)

/** Where it never holds it is no condition: with a value in its place a plan that knows no values would read every waiting row. */
const isStale = ({ owner, exclusive }: Holder) =>
  exclusive ? sql.fragment`(lease_owner is not null and lease_owner <> ${owner})` : sql.fragment`false`
const isAhead = ({ byCalendar }: Claim, { exclusive }: Holder) =>
  exclusive && byCalendar === undefined
    ? sql.fragment`(lease_token is null and updated_at > now() + interval '1 second' and wake_at >= updated_at)`
    : sql.fragment`false`

/** The statement. */
export function claiming(claim: Claim, holder: Holder): FragmentSqlToken {
  const { owner, exclusive } = holder
  const stale = isStale(holder)
  const expired = sql.fragment`(lease_until <= now() and not (${exclusive} and lease_token = any(${sql.array([...holder.held], 'uuid')})))`
  const unheard = isUnheard(claim.unheard ?? [])
  // Begun by that very claim, and by nobody before it: then it has not begun at all.
  const justMarked = sql.fragment`(${unheard} and work_started_at = lease_until - ${claim.leaseMs} * interval '1 millisecond')`
  const ahead = isAhead(claim, holder)
  const open = sql.fragment`(lane is null or lane <> all(${sql.array([...claim.fullLanes], 'uuid')}))`
  const answering =
    claim.exceptDoubted === undefined
      ? sql.fragment``
      : sql.fragment`and (lease_token is not null or not ${hasCount(claim.exceptDoubted)})`
  const recent =
    claim.reachMs === undefined
      ? sql.fragment``
      : sql.fragment`and wake_at > now() - ${claim.reachMs} * interval '1 millisecond'`
  // With another condition beside it the clock is no range of the index, and every row of the kind is read.
  const far =
    claim.near && !claim.unheard?.length ? sql.fragment`` : sql.fragment`or ${stale} or ${unheard} or ${ahead}`
  const isDue = sql.fragment`kind = ${claim.kind} and wake_at is not null and (wake_at <= now() ${far}) and ${open} ${answering} ${recent}`
  const due = sql.fragment`
    select kind, id, work_started_at is not null and not ${justMarked} as begun,
      work is not null and (lease_until is null or ${expired} or ${stale} or ${unheard}) as free,
      case when ${ahead} then wake_at else now() end as seen_at,
      (extract(epoch from now() - wake_at) * 1000)::float8 as due_ms
    from actor where ${isDue}`
  return sql.fragment`
    with due as (
      ${claim.turns ? inTurns(claim.turns, claim.limit, isDue, due) : sql.fragment`${due} order by wake_at limit ${claim.limit} for update skip locked`}
    ), numbered as (
      select due.*, row_number() over () as n from due
    )
    update actor a set
      lease_token = case when due.free then coalesce((${sql.array([...(claim.tokens ?? [])], 'uuid')})[due.n], gen_random_uuid()) else a.lease_token end,
      lease_owner = case when due.free then ${owner} else a.lease_owner end,
      lease_until = case when due.free then now() + ${claim.leaseMs} * interval '1 millisecond' else a.lease_until end,
      work_started_at = case when due.free and not due.begun then now() else a.work_started_at end,
      wake_at = case when due.free then now() + ${claim.leaseMs} * interval '1 millisecond' else now() + interval '5 seconds' end
    from numbered due where a.kind = due.kind and a.id = due.id
    returning ${actorColumns}, due.free as claimed, due.free and due.begun as begun, due.seen_at as "seenAt",
      due.due_ms as "dueMs"`
}

/**
 * Claims for a process of which `held` says what is under way in it. On the embedded database that is asked once the session is
 * ours: commits that wait for it grant leases, too, and who asked before they are through would not know those. `looks`: what this
 * process knows of rows that are astray there; without, it looks for them.
 */
export function claimFor(
  db: Database,
  claim: Claim,
  {
    owner,
    held,
    looks,
  }: { readonly owner: string; readonly held: () => readonly string[]; readonly looks?: AstrayLooks },
): Promise<readonly DueActor[]> {
  if (db.profile === 'pglite')
    return db.pool.transaction(async (tx) => {
      const holder = { owner, exclusive: true, held: held() }
      const isAstray = sql.fragment`(${isStale(holder)} or ${isAhead(claim, holder)})`
      const near = looks !== undefined && !(await looks.areDue(tx, claim.kind, isAstray))
      return claimActors(tx, near ? { ...claim, near } : claim, holder)
    })
  // Elsewhere the rows alone say what is held, and nobody's list is asked for.
  const others = { owner, exclusive: false, held: [] }
  // Beside the pool: people who read for long, or many at once, are not to keep work from those who have room for it. Behind a pooler it is
  // a transaction, which is told to be on disk before it is acknowledged: the first byte follows a claim.
  return claimActors(db.direct, claim, others)
}

/** Of a row by its name in the statement: nobody has it, or whoever did let it run out. */
export const isUnheld = (actor: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`(${actor}.lease_until is null or ${actor}.lease_until <= now())`

/** Whether an actor's last try failed or was slow, by counts in its machine's context (Kind.doubt, actors/loop/kinds.ts). */
export const hasCount = (counts: readonly string[]): FragmentSqlToken =>
  sql.fragment`(${sql.join(
    counts.map(
      (count) => sql.fragment`case when jsonb_typeof(snapshot->'context'->${count}) = 'number'
        then (snapshot->'context'->>${count})::numeric > 0 else false end`,
    ),
    sql.fragment` or `,
  )})`

/** Hardly ever is there one, and then the statement is without it. */
const isUnheard = (tokens: readonly string[]) =>
  tokens.length === 0
    ? sql.fragment`false`
    : sql.fragment`coalesce(lease_token = any(${sql.array([...tokens], 'uuid')}), false)`

/**
 * All that is due in order: each lane's first before any lane's second, with what it holds counted. The order is made once, whatever the
 * planner believes of how many there are (`offset 0`), and each row is looked at again as it is locked, only as many as are taken.
 */
const inTurns = (
  turns: ReadonlyMap<string, Turn>,
  limit: number,
  isDue: FragmentSqlToken,
  due: FragmentSqlToken,
): FragmentSqlToken => sql.fragment`
  select taken.* from (
    select id as of_id, turn.number as turn_number, wake_at as of_wake_at,
      coalesce(turn.held, 0) + row_number() over (partition by lane order by wake_at) as nth
    from actor left join ${sql.unnest(
      [...turns].map(([lane, { held, number }]) => [lane, held, number]),
      ['uuid', 'int4', 'int4'],
    )} as turn(of_lane, held, number) on turn.of_lane = actor.lane
    where ${isDue}
    order by nth, turn_number nulls first, of_wake_at offset 0
  ) ranked cross join lateral (${due} and id = ranked.of_id for update skip locked) taken
  limit ${limit}`

/**
 * The lanes of those of a kind that are due for a second already, the oldest first: whoever had room would have taken them. Of the oldest
 * and of the newest: behind a crowd of one lane may stand the first of another.
 */
export async function waitingLanes(db: Pick<Connection, 'any'>, kind: string): Promise<readonly (string | null)[]> {
  const lanes = await db.any(sql.type(Waiting)`
    with due as not materialized (select lane, id, wake_at from actor where kind = ${kind} and wake_at <= now() - interval '1 second')
    select lane, least(count(*), ${placesCounted})::int as waiting from (
      (select * from due order by wake_at limit ${waitingCounted})
      union (select * from due order by wake_at desc limit ${waitingCounted})) seen
    group by lane order by min(wake_at)`)
  return lanes.flatMap(({ lane, waiting }) => Array.from({ length: waiting }, () => lane))
}

const Waiting = z.object({ lane: z.string().nullable(), waiting: z.number() })
const waitingCounted = 2_000
/** More than any lane has places. */
const placesCounted = 100

export interface LeaseOf {
  readonly ref: ActorRef
  readonly token: string
  readonly work: string
}

/** These leases, as `held` of a statement. */
const heldLeases = (held: readonly LeaseOf[]) => sql.fragment`
  held as (
    select * from ${sql.unnest(
      held.map(({ ref, token, work }) => [ref.kind, ref.id, token, work]),
      ['text', 'uuid', 'uuid', 'text'],
    )} as h(kind, id, token, work))`

/** Of `held`, the rows that are still ours. */
const oursOfHeld = sql.fragment`
  select a.kind, a.id, a.lease_token from actor a
  join held h on a.kind = h.kind and a.id = h.id and a.lease_token = h.token and a.work = h.work`
/** The order in which everybody locks actors. */
const inOrder = sql.fragment`order by a.kind, a.id for update of a`

/** `locked`: ours, but somebody has the row locked at the moment, so it was left as it was: ask again soon. */
export type Renewal = 'renewed' | 'locked'

const Ours = z.object({ token: z.string(), renewed: z.boolean() })

/**
 * Renews leases by token, for `leaseMs` from now. Those that are missing in the answer were taken over: their holders must stop.
 * Waits for no row: one that somebody keeps locked, an operator or a commit that is slow, would keep every other lease from
 * being renewed. That it is ours all the same is read without a lock.
 */
export async function renewLeases(
  db: Pick<Connection, 'any'>,
  held: readonly LeaseOf[],
  leaseMs: number,
): Promise<ReadonlyMap<string, Renewal>> {
  if (held.length === 0) return new Map()
  const rows = await db.any(sql.type(Ours)`
    with ${heldLeases(held)}, free as (${oursOfHeld} ${inOrder} skip locked), renewed as (
      update actor a set
        lease_until = now() + ${leaseMs} * interval '1 millisecond',
        wake_at = least(now() + ${leaseMs} * interval '1 millisecond', (
          select min((t.value->>'dueAt')::timestamptz) from jsonb_each(a.timers) t))
      from free where a.kind = free.kind and a.id = free.id
      returning a.lease_token as token
    )
    select token, true as renewed from renewed
    union all select ours.lease_token as token, false as renewed from (${oursOfHeld}) ours`)
  const named = (renewal: Renewal) =>
    rows.filter(({ renewed }) => renewed === (renewal === 'renewed')).map(({ token }) => [token, renewal] as const)
  // What was renewed is ours as well, and so is read twice: the latter word counts.
  return new Map([...named('locked'), ...named('renewed')])
}

/** Gives work back as if it had never begun, to be taken after a pause: work that did nothing yet. Waits for its rows: what ran out instead would be in doubt. */
export const releaseUnbegun = async (db: Connection, held: readonly LeaseOf[], pauseMs = 0): Promise<void> =>
  void (await giveBack(db, held, sql.fragment``, pauseMs))

/** Says of work that waits before it begins that it has not begun, under the same lease. False: it is not ours any more. */
export const markUnbegun = (db: Connection, lease: LeaseOf): Promise<boolean> => mark(db, lease, sql.fragment`null`)

/** Says that it begins now. Once this is acknowledged, and not before, it may. */
export const markBegun = (db: Connection, lease: LeaseOf): Promise<boolean> => mark(db, lease, sql.fragment`now()`)

async function mark(db: Connection, { ref, token, work }: LeaseOf, startedAt: FragmentSqlToken): Promise<boolean> {
  const { rowCount } = await db.query(sql.unsafe`
    update actor set work_started_at = ${startedAt}
    where kind = ${ref.kind} and id = ${ref.id} and lease_token = ${token} and work = ${work}`)
  return rowCount > 0
}

/**
 * The same for work that may be repeated, by its machine's word. Waits for no row: one that somebody keeps locked would keep all others
 * from being given back, and its own lease runs out by itself. Resolves with how many were.
 */
export const releaseRepeatable = (db: Connection, held: readonly LeaseOf[]): Promise<number> =>
  giveBack(db, held, sql.fragment`skip locked`)

async function giveBack(
  db: Connection,
  held: readonly LeaseOf[],
  whereLocked: FragmentSqlToken,
  pauseMs = 0,
): Promise<number> {
  if (held.length === 0) return 0
  const { rowCount } = await db.query(sql.unsafe`
    with ${heldLeases(held)}, mine as (${oursOfHeld} ${inOrder} ${whereLocked})
    update actor a set lease_token = null, lease_owner = null, lease_until = null, work_started_at = null,
      wake_at = now() + ${pauseMs} * interval '1 millisecond'
    from mine where a.kind = mine.kind and a.id = mine.id`)
  return rowCount
}

/** Leaves a row alone for a while. What had begun stays begun; a lease that was just taken on it is given up. */
export async function postponeActor(
  db: Connection,
  actor: Pick<ActorRow, 'kind' | 'id' | 'leaseToken'>,
  ms: number,
): Promise<void> {
  await db.query(sql.unsafe`
    update actor set lease_token = null, lease_owner = null, lease_until = null,
      wake_at = now() + ${ms} * interval '1 millisecond'
    where kind = ${actor.kind} and id = ${actor.id} and lease_token is not distinct from ${actor.leaseToken}`)
}
