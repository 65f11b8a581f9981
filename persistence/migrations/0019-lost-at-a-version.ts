/**
 * At which version of its task a loss was noted: whatever was heard since made another. Before, instants of two processes were
 * compared, and by one whose clock was an hour behind no loss was ever noted. A loss that was noted by code from before, which goes on
 * beside it during a rolling restart, has no version or an old one: its task is asked for once more.
 */
import type { Migration } from '../migrate.ts'

export const lostAtAVersion: Migration = {
  version: 19,
  name: 'lost-at-a-version',
  up: `
alter table lost_task add column task_version integer;
update lost_task l set task_version = t.version from task t where t.id = l.task_id and l.looked_at >= t.updated_at;`,
  down: `alter table lost_task drop column task_version;`,
}
