/**
 * Folded tasks written as rows: one statement a table, and none where there is nothing for it, all asked for in one turn, so
 * that in a flight they leave as one group (drivers/flight.ts). What an agent said is never escaped: node-postgres' arrays cost two
 * regular expressions an element, and JSON around JSON text cost 10 ms a megabyte on the main thread and the same again in
 * the database. Does not lock or read (tasks.ts).
 */
import { sql, type QuerySqlToken } from 'slonik'
import type { Folded } from '../domain/fold.ts'
import { decodeText, isLong, type JsonText } from '../domain/json-text.ts'
import { textValue } from './drivers/bind-message.ts'
import type { Transaction } from './connection.ts'
import { storable } from '../domain/storable.ts'

export interface NewTask {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
  readonly tenant: string
  readonly remoteId: string | null
  readonly kind: 'task' | 'message'
  readonly contextId: string | null
  readonly skillId: string | null
  readonly title: string | null
  readonly references: readonly string[]
  /** Whose reply brought it: that command's audit row is older than the task, and so does not name it. */
  readonly commandId: string | null
}

export interface TaskWrite {
  readonly id: string
  /** Present for a task that has no row yet. */
  readonly fresh: NewTask | null
  readonly contextId: string | null
  readonly folded: Folded
}

/** Writes any number of folded tasks. Everything is asked for before the first wait. */
export async function writeTasks(tx: Transaction, writes: readonly TaskWrite[], at: string): Promise<void> {
  const statements = [
    ...tasks(writes, at),
    ...events(writes, at),
    ...messages(writes),
    ...artifacts(writes),
    ...parts(writes),
    ...transitions(writes),
    ...references(writes),
    ...bytes(writes, at),
  ]
  await Promise.all(statements.map((statement) => tx.query(statement)))
}

type Statements = readonly QuerySqlToken[]
type Row = readonly (string | number | boolean | null)[]

const storableOrNull = (text: string | null): string | null => (text === null ? null : storable(text))

function tasks(writes: readonly TaskWrite[], at: string): Statements {
  const fresh: Row[] = []
  const moved: Row[] = []
  for (const { id, fresh: row, contextId, folded } of writes) {
    const { state, stateAt, version, eventCount } = folded
    const stands = [state, stateAt, version, eventCount]
    if (!row) moved.push([id, contextId, ...stands])
    else {
      const { organizationId, agentId, tenant, remoteId, kind, skillId, title, commandId } = row
      const names = [organizationId, agentId, tenant, remoteId, kind, row.contextId, skillId, storableOrNull(title)]
      fresh.push([row.id, ...names, commandId, ...stands])
    }
  }
  return [...(fresh.length > 0 ? [created(fresh, at)] : []), ...(moved.length > 0 ? [changed(moved, at)] : [])]
}

const created = (rows: readonly Row[], at: string): QuerySqlToken => sql.unsafe`
  insert into task (id, organization_id, agent_id, tenant, remote_id, kind, context_id, skill_id, title, command_id, state,
    state_at, version, events, created_at, updated_at)
  select f.*, ${at}, ${at} from ${sql.unnest(rows, [
    'uuid',
    'uuid',
    'uuid',
    'text',
    'text',
    'text',
    'text',
    'text',
    'text',
    'uuid',
    'text',
    'timestamptz',
    'int4',
    'int4',
  ])} f`

const changed = (rows: readonly Row[], at: string): QuerySqlToken => sql.unsafe`
  update task t set context_id = coalesce(t.context_id, m.context_id), state = m.state, state_at = m.state_at,
    version = m.version, events = m.events, updated_at = ${at}
  from ${sql.unnest(rows, ['uuid', 'text', 'text', 'timestamptz', 'int4', 'int4'])}
    as m(id, context_id, state, state_at, version, events)
  where t.id = m.id`

/** A row with a text of an agent's: JSON as `JSON.stringify` writes it, so that no line feed stands in it. */
interface Worded {
  readonly row: Row
  readonly text: JsonText
}

/** Characters of one statement's texts together: what PostgreSQL keeps in memory of a set of rows (`work_mem`). */
const togetherLimit = 1024 * 1024

/**
 * Statements for rows with texts: long ones alone, the others as one parameter, a line each. Splitting at line feeds costs
 * nothing to write and little to read; were one inside a text, the lists would differ in length and a column be null.
 */
function worded(
  rows: readonly Worded[],
  alone: (worded: Worded) => QuerySqlToken,
  together: (rows: readonly Worded[]) => QuerySqlToken,
): Statements {
  const statements: QuerySqlToken[] = []
  let run: Worded[] = []
  let characters = 0
  const leave = (): void => {
    const [first] = run
    // A row of its own as plain values: a set of one row costs the database a function's result and us five arrays.
    if (first && run.length === 1) statements.push(alone(first))
    else if (first) statements.push(together(run))
    run = []
    characters = 0
  }
  for (const each of rows) {
    if (isLong(each.text)) {
      statements.push(alone(each))
      continue
    }
    if (characters + each.text.length > togetherLimit) leave()
    run.push(each)
    characters += each.text.length
  }
  leave()
  return statements
}

const lines = (rows: readonly Worded[]): string => rows.map(({ text }) => decodeText(text)).join('\n')
/** A column of rows, as an array parameter. */
const column = (
  rows: readonly Worded[],
  index: number,
  type: 'uuid' | 'text' | 'int4' | 'int8' | 'bool' | 'timestamptz',
) =>
  sql.array(
    rows.map(({ row }) => row[index] ?? null),
    type,
  )

function events(writes: readonly TaskWrite[], at: string): Statements {
  const rows = writes.flatMap(({ id, folded }) =>
    folded.events.map(({ position, source, event, isPresent, passedOver }): Worded => ({
      row: [id, position, source, isPresent, passedOver && JSON.stringify(passedOver)],
      text: event,
    })),
  )
  return worded(
    rows,
    ({ row: [id = null, position = null, source = null, isPresent = false, passedOver = null], text }) => sql.unsafe`
      insert into task_event (task_id, position, source, is_present, passed_over, event, received_at)
      values (${id}, ${position}, ${source}, ${isPresent}, ${passedOver}, ${textValue(text)}, ${at})`,
    (run) => sql.unsafe`
      insert into task_event (task_id, position, source, is_present, passed_over, event, received_at)
      select e.*, ${at} from rows from (unnest(${column(run, 0, 'uuid')}, ${column(run, 1, 'int4')}, ${column(run, 2, 'text')},
        ${column(run, 3, 'bool')}, ${column(run, 4, 'text')}), string_to_table(${lines(run)}, E'\n'))
        as e(task_id, position, source, is_present, passed_over, event)`,
  )
}

function messages(writes: readonly TaskWrite[]): Statements {
  const rows = writes.flatMap(({ id, folded }) =>
    folded.messages.map((m): Worded => ({
      row: [id, m.id, m.position, m.role, m.saidAt, m.fromStatus],
      text: m.parts,
    })),
  )
  return worded(
    rows,
    ({
      row: [id = null, name = null, position = null, role = null, saidAt = null, fromStatus = null],
      text,
    }) => sql.unsafe`
      insert into task_message (task_id, message_id, position, role, said_at, from_status, parts)
      values (${id}, ${name}, ${position}, ${role}, ${saidAt}, ${fromStatus}, ${textValue(text)})`,
    (run) => sql.unsafe`
      insert into task_message (task_id, message_id, position, role, said_at, from_status, parts)
      select m.* from rows from (unnest(${column(run, 0, 'uuid')}, ${column(run, 1, 'text')}, ${column(run, 2, 'int8')},
        ${column(run, 3, 'text')}, ${column(run, 4, 'timestamptz')}, ${column(run, 5, 'bool')}),
        string_to_table(${lines(run)}, E'\n')) as m(task_id, message_id, position, role, said_at, from_status, parts)`,
  )
}

function artifacts(writes: readonly TaskWrite[]): Statements {
  const rows = writes.flatMap(({ id, folded }) =>
    [...folded.artifacts].map(([artifactId, a]): Row => {
      const words = [a.name, a.description, JSON.stringify(a.extensions)]
      return [id, artifactId, a.position, ...words, a.complete, a.updateCount, a.partCount, a.partsDigest]
    }),
  )
  if (rows.length === 0) return []
  return [
    sql.unsafe`
    insert into task_artifact as a (task_id, artifact_id, position, name, description, extensions, complete,
      update_count, part_count, parts_digest)
    select * from ${sql.unnest(rows, ['uuid', 'text', 'int8', 'text', 'text', 'text', 'bool', 'int4', 'int4', 'text'])} n
    on conflict (task_id, artifact_id) do update set name = excluded.name, description = excluded.description,
      extensions = excluded.extensions, complete = excluded.complete, update_count = excluded.update_count,
      part_count = excluded.part_count, parts_digest = excluded.parts_digest`,
  ]
}

/** Parts that are new, over those that stood there; and those behind an end that came nearer are removed. */
function parts(writes: readonly TaskWrite[]): Statements {
  const made = writes.flatMap(({ id, folded }) =>
    [...folded.artifacts].map(([artifactId, a]) => ({ id, artifactId, a })),
  )
  const rows = made.flatMap(({ id, artifactId, a }) =>
    [...a.newParts]
      .filter(([position]) => position < a.partCount)
      .map(([position, { json, value }]): Worded => ({
        row: [id, artifactId, position, value?.event ?? null, value?.from ?? null, value?.bytes ?? null],
        text: json,
      })),
  )
  const filled = worded(rows, partAlone, partsTogether)
  const shorter = made.filter(({ a }) => a.isShorter).map(({ id, artifactId, a }) => [id, artifactId, a.partCount])
  if (shorter.length === 0) return filled
  const trimmed = sql.unsafe`
    delete from task_artifact_part p using ${sql.unnest(shorter, ['uuid', 'text', 'int4'])} as n(task_id, artifact_id, part_count)
    where p.task_id = n.task_id and p.artifact_id = n.artifact_id and p.position >= n.part_count`
  return [trimmed, ...filled]
}

const overPart = sql.fragment`
  on conflict (task_id, artifact_id, position) do update set part = excluded.part, value_event = excluded.value_event,
    value_from = excluded.value_from, value_bytes = excluded.value_bytes`

const partAlone = ({
  row: [id = null, artifactId = null, position = null, event = null, from = null, bytes = null],
  text,
}: Worded): QuerySqlToken => sql.unsafe`
  insert into task_artifact_part (task_id, artifact_id, position, value_event, value_from, value_bytes, part)
  values (${id}, ${artifactId}, ${position}, ${event}, ${from}, ${bytes}, ${textValue(text)}) ${overPart}`

const partsTogether = (run: readonly Worded[]): QuerySqlToken => sql.unsafe`
  insert into task_artifact_part (task_id, artifact_id, position, value_event, value_from, value_bytes, part)
  select n.* from rows from (unnest(${column(run, 0, 'uuid')}, ${column(run, 1, 'text')}, ${column(run, 2, 'int4')},
    ${column(run, 3, 'int4')}, ${column(run, 4, 'int4')}, ${column(run, 5, 'int4')}),
    string_to_table(${lines(run)}, E'\n')) as n(task_id, artifact_id, position, value_event, value_from, value_bytes, part)
  ${overPart}`

function transitions(writes: readonly TaskWrite[]): Statements {
  const rows = writes.flatMap(({ id, folded }) => folded.transitions.map((t) => [id, t.position, t.state, t.at]))
  if (rows.length === 0) return []
  return [
    sql.unsafe`
    insert into task_transition (task_id, position, state, at)
    select * from ${sql.unnest(rows, ['uuid', 'int4', 'text', 'timestamptz'])} n`,
  ]
}

function references(writes: readonly TaskWrite[]): Statements {
  const rows = writes.flatMap(({ id, fresh }) => (fresh?.references ?? []).map((remoteId) => [id, remoteId]))
  if (rows.length === 0) return []
  return [
    sql.unsafe`
    insert into task_reference (task_id, remote_id)
    select * from ${sql.unnest(rows, ['uuid', 'text'])} n on conflict do nothing`,
  ]
}

/** What is stored of files; their rows first, for those of the tasks refer to them. */
function bytes(writes: readonly TaskWrite[], at: string): Statements {
  // In one order: two batches that bring the same bytes must not wait for each other.
  const sizes = [...new Map(writes.flatMap(({ folded }) => [...folded.stored]))].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  )
  if (sizes.length === 0) return []
  const rows = writes.flatMap(({ id, folded }) => [...folded.stored.keys()].map((digest) => [id, digest]))
  return [
    sql.unsafe`
    insert into artifact (digest, size, stored_at)
    select n.*, ${at} from ${sql.unnest(sizes, ['text', 'int8'])} n on conflict (digest) do nothing`,
    sql.unsafe`
    insert into task_bytes (task_id, digest)
    select * from ${sql.unnest(rows, ['uuid', 'text'])} n on conflict do nothing`,
  ]
}
