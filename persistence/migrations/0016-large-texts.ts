/**
 * How agents' words are compressed: by lz4 where the server can, else not at all. PostgreSQL's own pglz takes 0.4 s for 24 MiB of prose
 * and the embedded database 0.8 s, twice for one event, while everybody waits for its only session; kept as they are they take a third.
 * What is stored already stays as it is. The price is room on disk where there is no lz4: of prose two to five times as much.
 */
import type { Migration } from '../migrate.ts'

/** In the order in which a commit writes them: locks in another could wait for each other in a circle. */
const columns = `(values ('command', 'reply'), ('task_event', 'event'), ('task_message', 'parts'), ('task_artifact_part', 'part'))
    as c (tab, col)`

export const largeTexts: Migration = {
  version: 16,
  name: 'large-texts',
  up: `
do $$
declare
  how text := case when exists (
    select from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals))
    then 'compression lz4' else 'storage external' end;
  c record;
begin
  for c in select * from ${columns} loop
    execute format('alter table %I alter column %I set %s', c.tab, c.col, how);
  end loop;
end $$;`,
  down: `
do $$
declare
  c record;
begin
  for c in select * from ${columns} loop
    execute format('alter table %I alter column %I set storage extended', c.tab, c.col);
    execute format('alter table %I alter column %I set compression default', c.tab, c.col);
  end loop;
end $$;`,
}
