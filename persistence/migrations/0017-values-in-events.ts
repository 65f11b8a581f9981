/**
 * The value of a long part stands in its event, and its row says where: written once instead of twice, a heavy stream costs the
 * database half. What is stored already stays as it is, and `db:projections:rebuild` brings it into this form. Servers of the version
 * before show such a value as empty until they are replaced.
 */
import type { Migration } from '../migrate.ts'

export const valuesInEvents: Migration = {
  version: 17,
  name: 'values-in-events',
  up: `
alter table task_artifact_part add column value_event integer, add column value_from integer, add column value_bytes integer;`,
  // A space says that it stands elsewhere; 24 is where it belongs behind that (domain/part-text.ts).
  down: `
update task_artifact_part p set part = overlay(substr(p.part, 2) placing
  convert_from(substring(convert_to(e.event, 'UTF8') from p.value_from + 1 for p.value_bytes), 'UTF8') from 24 for 2)
from task_event e
where e.task_id = p.task_id and e.position = p.value_event and left(p.part, 1) = ' ';
alter table task_artifact_part drop column value_event, drop column value_from, drop column value_bytes;`,
}
