/**
 * How much of tasks is read at once. A task may hold what an agent said in a day: a hundred of them on one page were more than a
 * string can hold, and everybody waited for it. Owns the bounds, in bytes of JSON as it is stored, and what is said beyond them; does
 * not own the views (task-views.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { StoredPart } from '../domain/part-text.ts'
import type { Connection } from './connection.ts'

const MiB = 1024 * 1024

/** Of one statement: an embedded database never gives back what one took, several times as much as it reads. A page may be more by the part it begins with. */
export const statementBytes = 8 * MiB
/** Of one page of views, which then is shorter than it may be. The first is there whatever it weighs. */
export const pageBytes = 32 * MiB
/** Of one view: the first of what was made, and the last of what was said. What is beyond stays in the events; one part says so, and one message. */
export const viewBytes = { artifacts: 128 * MiB, messages: 32 * MiB }
/** Of one view, the last. As many short ones are a few megabytes, and dear all the same: each is a row, and an object for whoever reads it. */
export const viewMessages = 20_000

const cut = (much: string): StoredPart => ({
  kind: 'unknown',
  value: `The task holds more than ${much}. The others are kept in the task's events and are not shown.`,
  mediaType: 'text/plain',
})
export const artifactsCut = cut(`${viewBytes.artifacts / MiB} MiB of artifacts`)
const messageBounds = `${viewBytes.messages / MiB} MiB of messages, or than ${viewMessages} of them`
const messageCut = `[${JSON.stringify(cut(messageBounds))}]`

/** Bytes of a value that its row is believed to have: asking events for more of them than are that long would cost more than the rest. */
const believed = MiB
/**
 * Of `task_artifact_part p` and of `task_message m`; the database knows them without reading the texts. A row that is damaged claims no
 * more than its event has: others would be left out for what it does not show.
 */
const valueWeight = sql.fragment`
  case when coalesce(p.value_bytes, 0) <= ${believed} then greatest(p.value_bytes, 0)
    else least(p.value_bytes, coalesce((
      select octet_length(e.event) from task_event e where e.task_id = p.task_id and e.position = p.value_event), 0)) end`
export const partWeight = sql.fragment`octet_length(p.part) + ${valueWeight}`
/** Of `task_artifact n`, beside its parts. */
const namesWeight = sql.fragment`octet_length(concat(n.name, n.description, n.extensions))`
const messageWeight = sql.fragment`octet_length(m.parts)`

const Weight = z.object({ id: z.string(), artifacts: z.number(), messages: z.number(), said: z.number() })
export type TaskWeight = z.infer<typeof Weight>

export async function weighTasks(db: Pick<Connection, 'any'>, ids: readonly string[]): Promise<readonly TaskWeight[]> {
  if (ids.length === 0) return []
  const rows = await db.any(sql.type(Weight)`
    select t.id,
      coalesce((select sum(${partWeight}) from task_artifact_part p where p.task_id = t.id), 0)::float8
        + coalesce((select sum(${namesWeight}) from task_artifact n where n.task_id = t.id), 0)::float8 as artifacts,
      coalesce(w.messages, 0)::float8 as messages, w.said::int as said
    from unnest(${sql.array([...ids], 'uuid')}) as t(id)
    cross join lateral (select sum(${messageWeight}) as messages, count(*) as said from task_message m where m.task_id = t.id) w`)
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Of what a view shows. */
export const shownBytes = ({ artifacts, messages }: TaskWeight): number =>
  Math.min(artifacts, viewBytes.artifacts) + Math.min(messages, viewBytes.messages)

/** What a message takes beside its words, where many views are read together: 400,000 short ones on a page kept the process for a second. */
const besideWords = 1024

/** How many of the first fit on a page. */
export function fitting(weights: readonly TaskWeight[]): number {
  let bytes = 0
  for (const [i, weight] of weights.entries()) {
    bytes += shownBytes(weight) + Math.min(weight.said, viewMessages) * besideWords
    if (i > 0 && bytes > pageBytes) return i
  }
  return weights.length
}

const idsOf = (weights: readonly TaskWeight[]) =>
  sql.array(
    weights.map(({ id }) => id),
    'uuid',
  )

/**
 * `(task_id, place, artifact_id, position)`: the first part of a task that its view does not show, or the artifact without any that it
 * says so in. Nothing behind it is shown, and nothing said of it: a sentence for each of a hundred thousand would be another task's worth.
 */
export const artifactsBeyond = (weights: readonly TaskWeight[]): FragmentSqlToken => sql.fragment`
  select distinct on (s.task_id) s.task_id, s.place, s.artifact_id, s.position from (
    select n.task_id, n.artifact_id, n.position as place, coalesce(p.position, 0) as position,
      sum(coalesce(${partWeight}, 0) + case when coalesce(p.position, 0) = 0 then ${namesWeight} else 0 end)
        over (partition by n.task_id order by n.position, n.artifact_id, p.position) as upto
    from task_artifact n left join task_artifact_part p on p.task_id = n.task_id and p.artifact_id = n.artifact_id
    where n.task_id = any(${idsOf(weights.filter(({ artifacts }) => artifacts > viewBytes.artifacts))})) s
  where s.upto > ${viewBytes.artifacts} order by s.task_id, s.place, s.artifact_id, s.position`

/** Whether a view of it does not show all that was said. */
const saysMore = ({ messages, said }: TaskWeight): boolean => messages > viewBytes.messages || said > viewMessages

/**
 * What views show of messages, in no order: all, but of who says more the last, and in the place of the one before them that there are others.
 * Each row is read once, and never looked for among those that are shown: without statistics of a table that has just grown, that was a
 * comparison of each with each. Cut by their number first: a window over a hundred thousand takes longer than reading those that are shown.
 */
export function messagesShown(weights: readonly TaskWeight[]): FragmentSqlToken {
  const more = weights.filter(saysMore)
  const others = weights.filter((weight) => !saysMore(weight))
  const columns = sql.fragment`m.task_id, m.message_id, m.position, m.role, m.said_at, m.from_status`
  return sql.fragment`
    select ${columns}, m.parts from task_message m where m.task_id = any(${idsOf(others)})
    union all
    select ${columns}, case when m.upto > ${viewBytes.messages} or m.nth > ${viewMessages} then ${messageCut} else m.parts end as parts
    from unnest(${idsOf(more)}) t(id) cross join lateral (
      select l.*, row_number() over newest as nth, sum(l.weight) over newest as upto from (
        select ${columns}, m.parts, ${messageWeight} as weight from task_message m
        where m.task_id = t.id order by m.position desc, m.message_id desc limit ${viewMessages + 1}) l
      window newest as (order by l.position desc, l.message_id desc)) m
    where m.upto - m.weight <= ${viewBytes.messages}`
}
