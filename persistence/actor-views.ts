/**
 * Actors for reading: lists, one actor, its log. Live and archived rows look alike here. Does not move anything.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { StateValue } from '../domain/chart.ts'
import type { Viewer } from '../domain/access.ts'
import { leaseGraceMs } from '../domain/patience.ts'
import type { ActorRef, Snapshot, Timer } from './actors.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { failsForLong, isLeftBehind, isUntaken, movedAt } from './failing.ts'
import { isUnheld } from './leases.ts'
import { isHeardOf } from './processes.ts'
import { taskHeld } from './task-views.ts'
import { held } from './visibility.ts'

export interface ActorRecord {
  readonly kind: string
  readonly id: string
  readonly snapshot: Snapshot
  readonly work: string | null
  readonly workStartedAt: string | null
  readonly timers: Readonly<Record<string, Timer>>
  readonly leaseOwner: string | null
  readonly leaseUntil: string | null
  /** Who holds it is not heard of any more. */
  readonly isHolderSilent: boolean
  /** Its work, or its timer, is due for longer than a worker needs to take it, and nobody has. */
  readonly isUntaken: boolean
  /** And no process works that could. */
  readonly isLeftBehind: boolean
  readonly revision: number
  readonly machineVersion: string
  readonly createdAt: string
  /** Of its last step; it may have brought it nowhere. */
  readonly updatedAt: string
  readonly movedAt: string
  /** When a person settled the command that it was; null while nobody has, and of all others. */
  readonly settledAt: string | null
  /** It has failed for so long that a person should know, whatever its state is called. */
  readonly failsForLong: boolean
  /** The database's clock at this read: leases and timers are set by it. */
  readonly seenAt: string
  /** What a person calls it: the task's title, the first words of the message, or the agent that it is about. */
  readonly title: string | null
  readonly agentId: string | null
  /** Read for one actor, and not for each of a list. */
  readonly agentName: string | null
  /** The local task it is about. */
  readonly taskId: string | null
}

const Timers = z.record(z.string(), z.object({ event: z.looseObject({ type: z.string() }), dueAt: z.string() }))
const Value: z.ZodType<StateValue> = z.lazy(() => z.union([z.string(), z.record(z.string(), Value)]))
const Record_ = z.object({
  kind: z.string(),
  id: z.string(),
  snapshot: z.object({
    value: Value,
    context: z.record(z.string(), z.unknown()),
    status: z.enum(['active', 'done']),
  }),
  work: z.string().nullable(),
  workStartedAt: z.string().nullable(),
  timers: Timers,
  leaseOwner: z.string().nullable(),
  leaseUntil: z.string().nullable(),
  isHolderSilent: z.boolean(),
  isUntaken: z.boolean(),
  isLeftBehind: z.boolean(),
  revision: z.number(),
  machineVersion: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
  movedAt: z.string(),
  settledAt: z.string().nullable(),
  failsForLong: z.boolean(),
  seenAt: z.string(),
  title: z.string().nullable(),
  agentId: z.string().nullable(),
  agentName: z.string().nullable(),
  taskId: z.string().nullable(),
})

/** States that need a person, as the machines tag them: `state` is the JSON text that the stored value must contain. */
export interface AttentionState {
  readonly kind: string
  readonly state: string
}

export interface ActorFilter {
  /** Which kinds: every one that lives here, or one. */
  readonly kinds: readonly string[]
  /** A state's name, anywhere in the state value. */
  readonly state: string | null
  /** Only what is in one of these states, whose lease ran out or what fails for long. Null: everything. */
  readonly attention: readonly AttentionState[] | null
  /** Part of the id, of the kind, or in letters of any case of the title or the state: by its own name, or by its words (`polling › backing off`). */
  readonly q: string | null
  /** Only what is due and held by nobody, or only what is held by who is heard of, by a lease that has not run out. Null: either, and neither. */
  readonly work: 'due' | 'held' | null
  /** Only what this process holds, by leases that ran out too. Null: whoever does. */
  readonly owner: string | null
  /** Only what is about this agent: in its lane, or of a command or task of it. Null: whatever it is about. */
  readonly agentId: string | null
  readonly before: { readonly updatedAt: string; readonly id: string } | null
  readonly limit: number
}

type Fragment = ReturnType<typeof sql.fragment>

const everyActor = sql.fragment`
  select kind, id, organization_id, lane, machine_version, revision, snapshot, work, work_started_at, timers, wake_at, lease_owner,
    lease_until, created_at, updated_at, null::timestamptz as settled_at from actor
  union all
  select kind, id, organization_id, null, machine_version, revision, snapshot, null, null, '{}'::jsonb, null, null, null,
    created_at, updated_at, settled_at from actor_archive`

const aboutAgent = sql.fragment`coalesce(t.agent_id, c.agent_id, g.id)`
const nameOfAgent = sql.fragment`(select named.name from agent named where named.id = ${aboutAgent})`
const noName = sql.fragment`null::text`

const selected = (agentName: Fragment): Fragment => sql.fragment`
  select a.kind, a.id, a.snapshot, a.work, a.work_started_at as "workStartedAt", a.timers, a.lease_owner as "leaseOwner",
    a.lease_until as "leaseUntil", coalesce(not ${isHeardOf(sql.fragment`a.lease_owner`)}, false) as "isHolderSilent", ${isUntaken} as "isUntaken", ${isLeftBehind} as "isLeftBehind", a.revision, a.machine_version as "machineVersion", a.created_at as "createdAt",
    a.updated_at as "updatedAt", ${movedAt} as "movedAt", a.settled_at as "settledAt", ${failsForLong} as "failsForLong",
    now() as "seenAt", coalesce(t.title, c.title, g.name) as title, ${aboutAgent} as "agentId",
    ${agentName} as "agentName", coalesce(t.id, c.task_id) as "taskId"`

/** What the command of `a` is called: a send by its task or its words, a cancel by the task that it is to end. */
const ofCommand = sql.fragment`
  select command.agent_id, command.task_id, case when command.action = 'cancelTask'
    then 'Cancel: ' || coalesce(owned.title, about.title, command.remote_task_id, '')
    else coalesce(owned.title, command.title, about.title) end as title
  from command left join task owned on owned.id = command.task_id
  left join task about on about.agent_id = command.agent_id and about.tenant = command.tenant and about.remote_id = command.remote_task_id
  where command.id = a.id`

const subjects = sql.fragment`
  left join task t on t.id = a.id and a.kind <> 'command'
  left join lateral (${ofCommand} and a.kind = 'command') c on true
  left join agent g on g.id = a.lane and t.id is null and c.agent_id is null`

/** Live work whose holder stopped renewing, and nobody has taken it over. */
const abandoned = sql.fragment`
  (a.work is not null and a.lease_until < now() - ${leaseGraceMs} * interval '1 millisecond')`

/** Of `actor a` or `actor_archive a`: in one of these states. The array is compared first: a subplan a row costs twice that. */
export const isInState = (states: readonly AttentionState[]) =>
  states.length === 0
    ? sql.fragment`false`
    : sql.fragment`(
        a.snapshot->'value' @> any(${sql.array(
          states.map(({ state }) => state),
          'jsonb',
        )})
        and exists (
          select 1 from ${sql.unnest(
            states.map(({ kind, state }) => [kind, state]),
            ['text', 'text'],
          )} as wanted(kind, state) where wanted.kind = a.kind and a.snapshot->'value' @> wanted.state::jsonb))`

/** Of `actor a`: it needs a person. */
export const needsPerson = (states: readonly AttentionState[]) =>
  sql.fragment`(${isInState(states)} or ${abandoned} or ${failsForLong} or ${isLeftBehind})`

/** In the words of the index `actor_archive_unusual`, which the planner looks for: unlike most, and settled by nobody. */
export const unsettledEnd = sql.fragment`
  a.snapshot->>'value' not in ('succeeded', 'finished', 'ended', 'unsupported') and a.settled_at is null`

/**
 * Of `actor a` or `actor_archive a`: what it is about is the viewer's to see. A command's or a task's actor is seen with it; what
 * belongs to an agent as a whole, which only its lane tells, by who holds the whole agent. An archived row has no lane.
 */
const actorHeld = (viewer: Viewer, lane: Fragment): Fragment =>
  sql.fragment`(case when a.kind = 'command'
    then exists (select 1 from command c where c.id = a.id and ${commandHeld(viewer, 'read')})
    else exists (select 1 from task t where t.id = a.id and ${taskHeld(viewer, 'read')}) or ${held(viewer, 'read', lane, null)}
    end)`
const ownLane = sql.fragment`a.lane`
const noLane = sql.fragment`null::uuid`

/** Words, and what somebody may see, are looked for among this many finished actors of a kind, the newest: a million are not read for a pattern. */
const searchedArchive = 10_000
/** Titles among these of them: each is looked up by its key, and 10,000 of five kinds took 270 ms of the database for a page. */
const searchedTitles = 2_000

/** Actors that the viewer may see, the last moved first. */
export async function listActors(db: Connection, viewer: Viewer, filter: ActorFilter): Promise<readonly ActorRecord[]> {
  const { kinds, before, limit } = filter
  const { organizationId } = viewer
  const page = sql.fragment`order by updated_at desc, id desc limit ${limit}`
  const older =
    before === null ? sql.fragment`true` : sql.fragment`(a.updated_at, a.id) < (${before.updatedAt}, ${before.id})`
  const live = [
    sql.fragment`a.organization_id = ${organizationId}`,
    sql.fragment`a.kind = any(${sql.array([...kinds], 'text')})`,
    older,
    ...wordConditions(filter, isTitled(filter, ownLane)),
    ...workConditions(filter),
    ...agentConditions(filter, sql.fragment`a.lane = ${filter.agentId} or`),
    ...seenBy(viewer, ownLane),
  ]
  if (filter.attention !== null) live.push(needsPerson(filter.attention))
  return db.any(sql.type(Record_)`
    with found as (
      (select a.kind, a.id, a.updated_at from actor a where ${allOf(live)} ${page})
      union all
      (${archived(organizationId, filter, older, [
        ...wordConditions(filter, sql.fragment`(a.place <= ${searchedTitles} and ${isTitled(filter, noLane)})`),
        ...agentConditions(filter, sql.fragment`a.place <= ${searchedTitles} and`),
        ...seenBy(viewer, noLane),
      ])})
    ), newest as (select * from found ${page})
    ${selected(noName)}
    from newest n join lateral (select * from (${everyActor}) b where b.kind = n.kind and b.id = n.id) a on true ${subjects}
    order by a.updated_at desc, a.id desc`)
}

const allOf = (conditions: readonly Fragment[]): Fragment =>
  sql.fragment`${sql.join([...conditions], sql.fragment` and `)}`

/** No condition where everything may be seen: then a page of the archive is read by its index alone. */
const seenBy = (viewer: Viewer, lane: Fragment): Fragment[] =>
  viewer.role === 'admin' ? [] : [actorHeld(viewer, lane)]

const like = (text: string): string => `%${escapeLike(text)}%`

/** As places are written for reading, `polling › backing off`: by their parts, each without its spaces. */
const partsOf = (q: string): readonly string[] =>
  q.split('›').flatMap((part) => {
    const name = part.replaceAll(/\s/g, '')
    return name === '' ? [] : [name]
  })

/** Nothing but blanks and signs between places asks for nothing. */
function searchOf(q: string, titled: Fragment): Fragment[] {
  const parts = partsOf(q)
  if (parts.length === 0) return []
  const placed = allOf(parts.map((part) => sql.fragment`a.snapshot->>'value' ilike ${like(part)}`))
  return [sql.fragment`(a.id::text like ${like(q)} or a.kind like ${like(q)} or (${placed}) or ${titled})`]
}

function wordConditions({ state, q }: ActorFilter, titled: Fragment): Fragment[] {
  return [
    ...(state === null ? [] : [sql.fragment`a.snapshot->>'value' like ${like(state)}`]),
    ...(q === null ? [] : searchOf(q, titled)),
  ]
}

/** The title that `subjects` shows has these words. */
const isTitled = ({ q }: ActorFilter, lane: Fragment): Fragment =>
  sql.fragment`(case when a.kind = 'command'
    then (select named.title from (${ofCommand}) named)
    else coalesce((select coalesce(t.title, '') from task t where t.id = a.id), (select g.name from agent g where g.id = ${lane}))
    end) ilike ${like(q ?? '')}`

/** In the words of the index `actor_due`: what has work that is due, or held, is scheduled. */
const workConditions = ({ work, owner }: ActorFilter): Fragment[] => [
  ...(work === 'due'
    ? [sql.fragment`a.wake_at <= now() and ${isUnheld(sql.fragment`a`)}`]
    : work === 'held'
      ? [sql.fragment`a.wake_at is not null and a.lease_until > now() and ${isHeardOf(sql.fragment`a.lease_owner`)}`]
      : []),
  ...(owner === null ? [] : [sql.fragment`a.wake_at is not null and a.lease_owner = ${owner}`]),
]

/**
 * Of what has no lane the command or the task tells whose it is; `first`: what is looked at before them. A page took 55 ms where
 * 40,000 actors live, thrice that of all agents: such a page is asked for by a press, and not by the second.
 */
const agentConditions = ({ agentId }: ActorFilter, first: Fragment): Fragment[] =>
  agentId === null
    ? []
    : [
        sql.fragment`(${first} (exists (select 1 from command c where c.id = a.id and c.agent_id = ${agentId})
          or exists (select 1 from task t where t.id = a.id and t.agent_id = ${agentId})))`,
      ]

/** The archive's part of a page, by the index that fits: none of these reads more than it was told to look at. */
function archived(organizationId: string, filter: ActorFilter, older: Fragment, words: readonly Fragment[]): Fragment {
  const { kinds, attention, work, owner, limit } = filter
  const wanted = sql.array([...kinds], 'text')
  const page = sql.fragment`order by a.updated_at desc, a.id desc limit ${limit}`
  const columns = sql.fragment`a.kind, a.id, a.updated_at`
  // What is finished has no work.
  if (work !== null || owner !== null) return sql.fragment`select ${columns} from actor_archive a where false`
  // Few by their index, so all of them are looked at as the first of a kind are.
  const few = sql.fragment`(select b.*, 1 as place from actor_archive b) a`
  if (attention !== null)
    return sql.fragment`
      select ${columns} from ${few} where a.organization_id = ${organizationId} and ${unsettledEnd}
        and a.kind = any(${wanted}) and ${isInState(attention)} and ${allOf([older, ...words])} ${page}`
  if (filter.q !== null && wholeId.test(filter.q))
    return sql.fragment`
      select ${columns} from ${few}
      where a.organization_id = ${organizationId} and a.kind = any(${wanted}) and a.id = ${filter.q} and ${allOf([...words])} ${page}`
  const ofKind = sql.fragment`a.organization_id = ${organizationId} and a.kind = k.kind and ${older}`
  const arm =
    words.length === 0
      ? sql.fragment`select ${columns} from actor_archive a where ${ofKind} ${page}`
      : sql.fragment`
          select ${columns} from (
            select a.*, row_number() over (order by a.updated_at desc, a.id desc) as place
            from actor_archive a where ${ofKind} order by a.updated_at desc, a.id desc limit ${searchedArchive}
          ) a where ${allOf(words)} ${page}`
  return sql.fragment`select s.* from unnest(${wanted}) as k(kind) cross join lateral (${arm}) s`
}

const wholeId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const escapeLike = (text: string): string => text.replace(/[\\%_]/g, (c) => `\\${c}`)

export async function findActor(db: Connection, viewer: Viewer, kind: string, id: string): Promise<ActorRecord | null> {
  return db.maybeOne(
    sql.type(Record_)`${selected(nameOfAgent)} from (${everyActor}) a ${subjects}
      where a.organization_id = ${viewer.organizationId} and a.kind = ${kind} and a.id = ${id} and ${actorHeld(viewer, ownLane)}`,
  )
}

/** Those of these that are there and the viewer may see, in the same order. */
export async function findActors(
  db: Connection,
  viewer: Viewer,
  refs: readonly ActorRef[],
): Promise<readonly ActorRecord[]> {
  if (refs.length === 0) return []
  return db.any(
    sql.type(Record_)`${selected(nameOfAgent)}
      from ${sql.unnest(
        refs.map(({ kind, id }, place) => [kind, id, place]),
        ['text', 'uuid', 'int4'],
      )} as r(kind, id, place)
      join lateral (select * from (${everyActor}) b where b.kind = r.kind and b.id = r.id) a on true ${subjects}
      where a.organization_id = ${viewer.organizationId} and ${actorHeld(viewer, ownLane)} order by r.place`,
  )
}

export interface LogRecord {
  readonly revision: number
  readonly machineVersion: string
  /** JSON text. */
  readonly event: string
  readonly value: StateValue
  readonly facts: readonly string[]
  readonly cause: string
  readonly at: string
}

/** Where a page of a log begins, exclusive: it reads on from `after`, or back from `before`. */
export type LogPlace = { readonly after: number } | { readonly before: number }

/** Committed steps, oldest first whichever way they are read. Routine rounds are not kept: revisions have gaps. */
export async function readActorLog(
  db: Connection,
  kind: string,
  id: string,
  place: LogPlace,
  limit: number,
): Promise<readonly LogRecord[]> {
  const rows = await db.any(
    sql.type(
      z.object({
        revision: z.number(),
        machineVersion: z.string(),
        event: z.string(),
        value: Value,
        facts: z.array(z.string()),
        cause: z.string(),
        at: z.string(),
      }),
    )`
      select revision, machine_version as "machineVersion", event, value, facts, cause, at from actor_log
      where actor_id = ${id} and kind = ${kind}
        and ${'after' in place ? sql.fragment`revision > ${place.after}` : sql.fragment`revision < ${place.before}`}
      order by revision ${'after' in place ? sql.fragment`asc` : sql.fragment`desc`} limit ${limit}`,
  )
  return 'after' in place ? rows : rows.toReversed()
}
