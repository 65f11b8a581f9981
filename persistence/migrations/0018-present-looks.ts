/**
 * An agent's clock may run back: a status that counted although its time is before the one that was known is marked, so that
 * whoever folds the events again comes to the same view. What is stored already counted by its time alone; an end that
 * came with an older time may be rebuilt to more than it showed, for what was made by then counts now.
 */
import type { Migration } from '../migrate.ts'

export const presentLooks: Migration = {
  version: 18,
  name: 'present-looks',
  up: `
alter table task_event add column is_present boolean not null default false;`,
  down: `
alter table task_event drop column is_present;`,
}
