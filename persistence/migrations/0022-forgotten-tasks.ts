/**
 * Tasks that were given up because their agent does not know them are asked for once an hour for a month (persistence/given-up.ts): an agent
 * may be given back what it lost, and where nothing else of it is unfinished nobody would notice. Whose turn it is is read every few
 * seconds by every process, from this index, in the order in which they were asked for; those that are still asked for at once are not in it.
 */
import type { Migration } from '../migrate.ts'

export const forgottenTasks: Migration = {
  version: 22,
  name: 'forgotten-tasks',
  up: `
create index lost_task_given_up on lost_task (looked_at) where look_at is null;`,
  down: `drop index lost_task_given_up;`,
}
