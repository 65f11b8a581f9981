/**
 * An answer that was on its way while something newer was heard of its task shows it as it was: of what is known it replaces nothing, until
 * the next look. Which answers were such is known only when they come, so they are marked, and whoever folds the events again comes to the
 * same view. Code from before marks none and reads no mark. A constant default rewrites no row.
 */
import type { Migration } from '../migrate.ts'

export const answersBehind: Migration = {
  version: 23,
  name: 'answers-behind',
  up: `
alter table task_event add column is_behind boolean not null default false;`,
  down: `
alter table task_event drop column is_behind;`,
}
