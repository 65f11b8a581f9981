/**
 * Tasks that were given up because their agent does not know them are asked for once an hour for a month (persistence/given-up.ts): an agent
 * may be given back what it lost, and where nothing else of it is unfinished nobody would notice. Whose turn it is is read every few
 * seconds by every process, from this index, in the order in which they were asked for; those that are still asked for at once are not in it,
 * nor those whose month is over. One that is lost because it is too large to be read is not asked for by the hour, for it would be read each
 * time; a release from before does not say so.
 */
import type { Migration } from '../migrate.ts'

export const forgottenTasks: Migration = {
  version: 22,
  name: 'forgotten-tasks',
  up: `
alter table lost_task add column oversized boolean not null default false;
create index lost_task_given_up on lost_task (looked_at)
  where look_at is null and not oversized and looked_at - since < interval '30 days';`,
  down: `
drop index lost_task_given_up;
alter table lost_task drop column oversized;`,
}
