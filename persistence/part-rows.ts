/**
 * Rows of parts read whole. The value of a long one stands in its event (domain/part-text.ts), and the row says where. Owns how
 * both are put together; does not write them (task-writes.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { elsewhere, valueStart } from '../domain/part-text.ts'

/** Only where somebody took out of the database what is never changed there. */
const lost = JSON.stringify({
  kind: 'unknown',
  value: 'The event that holds this value is missing.',
  mediaType: 'text/plain',
})

/**
 * Of `task_artifact_part p`: the part as JSON text. By bytes: by characters 24 MiB would be counted through twice. The event is a
 * subplan and no join, for of 20,000 short parts a join reads every event of the task. A row that says where a value stands without
 * saying that it stands elsewhere was written over by a server that does not know of this (migration 17), and is whole.
 */
export const wholePart: FragmentSqlToken = sql.fragment`
  case when left(p.part, ${elsewhere.length}) = ${elsewhere}
    then coalesce(overlay(substr(p.part, ${elsewhere.length + 1}) placing (
        select convert_from(substring(convert_to(e.event, 'UTF8') from p.value_from + 1 for p.value_bytes), 'UTF8')
        from task_event e where e.task_id = p.task_id and e.position = p.value_event)
      from ${valueStart + 1} for 2), ${lost})
    else p.part end`
