/**
 * What a command's end costs: nothing that an index knows changes in the row of one that succeeds, so that PostgreSQL writes the
 * row beside itself and no index at all (a heap-only tuple). Before, the index of sends that need a person read the status, and
 * each success was written into every index of the table once more. A page keeps room for the second state of each of its rows: it
 * comes milliseconds after the first, when nothing of the page can be cleared away yet.
 */
import type { Migration } from '../migrate.ts'

export const lighterUpdates: Migration = {
  version: 11,
  name: 'lighter-updates',
  up: `
alter table command add column unsettled_at timestamptz;
update command set unsettled_at = updated_at where status in ('failed', 'uncertain');
drop index command_unsettled;
create index command_unsettled on command (organization_id, unsettled_at desc, id desc) where unsettled_at is not null;
alter table command set (fillfactor = 55);`,
  down: `
alter table command set (fillfactor = 85);
drop index command_unsettled;
alter table command drop column unsettled_at;
create index command_unsettled on command (organization_id, updated_at desc, id desc) where status in ('failed', 'uncertain');`,
}
