/**
 * Tasks that their agent forgot are asked for no more, and no longer stand among those that are: an index knows them by their own row.
 * Before, whoever looked for what is to be asked for read every lost task of the scope, every few seconds in every process, and an agent
 * that forgets all its tasks whenever it starts makes ever more of them.
 *
 * `task.given_up_version` only thins the index `task_watched`; what is lost is said by `lost_task`, as before. It is set behind the note
 * (persistence/given-up.ts), which `told_version` remembers, and triggers clear it: the index may not compare it to the version by itself,
 * for then each event of a stream would be written into every index of the table. Triggers and not statements, because code from before
 * goes on beside it during a rolling restart, and neither moves a task nor finds it again with a word about it. That code reads
 * `task_unfinished`, which stays: those who look for troubles read it, too. Both are built under their tables' locks.
 */
import type { Migration } from '../migrate.ts'

const watched = `remote_id is not null and given_up_version is null
    and state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY')`

// After the update, not before it: a trigger before would lock each row once more on every event of a stream.
const triggers = `
create function watch_task_again() returns trigger language plpgsql as $$
begin
  if tg_table_name = 'task' then
    update task set given_up_version = null where id = new.id and given_up_version <> version;
  else
    update task set given_up_version = null where id = old.task_id and given_up_version is not null;
  end if;
  return null;
end $$;
create trigger task_heard_of after update on task for each row
  when (new.given_up_version <> new.version) execute function watch_task_again();
create trigger task_seen_again after delete on lost_task for each row execute function watch_task_again();
`

export const givenUpTasks: Migration = {
  version: 21,
  name: 'given-up-tasks',
  up: `
alter table task add column given_up_version integer;
alter table lost_task add column told_version integer;
update task t set given_up_version = t.version from lost_task l
  where l.task_id = t.id and l.task_version = t.version and l.look_at is null
    and t.state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY');
update lost_task set told_version = task_version where look_at is null;
create index task_watched on task (agent_id, tenant, id) where ${watched};
create index lost_task_untold on lost_task (task_id) where look_at is null and told_version is distinct from task_version;
${triggers}`,
  down: `
drop trigger task_seen_again on lost_task;
drop trigger task_heard_of on task;
drop function watch_task_again();
drop index lost_task_untold;
drop index task_watched;
alter table lost_task drop column told_version;
alter table task drop column given_up_version;`,
}
