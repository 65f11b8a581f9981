/**
 * Rows of parts read whole. The value of a long one stands in its event (domain/part-text.ts), and the row says where. Owns how
 * both are put together; does not write them (task-writes.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { elsewhere, valueStart } from '../domain/part-text.ts'

/** From `task_artifact_part p`, with `e` as the event in which its value stands. */
export const partsAndEvents: FragmentSqlToken = sql.fragment`
  task_artifact_part p left join task_event e on e.task_id = p.task_id and e.position = p.value_event`

/**
 * The part as JSON text. By bytes: by characters 24 MiB would be counted through twice. A row that says where a value stands without
 * saying that it stands elsewhere was written over by a server that does not know of this (migration 17), and is whole.
 */
export const wholePart: FragmentSqlToken = sql.fragment`
  case when p.value_event is not null and left(p.part, ${elsewhere.length}) = ${elsewhere}
    then overlay(substr(p.part, ${elsewhere.length + 1}) placing
      convert_from(substring(convert_to(e.event, 'UTF8') from p.value_from + 1 for p.value_bytes), 'UTF8')
      from ${valueStart + 1} for 2)
    else p.part end`
