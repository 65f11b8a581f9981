/**
 * An answer that was on its way while more was heard of its task shows it as it was: what of it did not count is known only when it comes, so
 * it is kept with the event, and whoever folds the events again comes to the same view. JSON text; null where all of it counted. Code from
 * before writes none and reads none.
 */
import type { Migration } from '../migrate.ts'

export const answersBehind: Migration = {
  version: 23,
  name: 'answers-behind',
  up: `
alter table task_event add column passed_over text;`,
  down: `
alter table task_event drop column passed_over;`,
}
