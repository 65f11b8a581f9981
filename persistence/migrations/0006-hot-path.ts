/**
 * What every command pays for and nobody uses, taken out; and what lists of owned tasks need to stay as quick among a
 * million tasks as among a thousand (docs/adr/0010).
 */
import type { Migration } from '../migrate.ts'

/**
 * References whose target is written by the same statement, or locked or joined by it, or never deleted by anybody: twelve
 * checks a command, each a query and a lock on a shared row, were a quarter of the database's time. Kept where a row may go
 * (task_bytes to artifact, which the orphan sweep deletes) and where rows are few.
 */
const references: readonly (readonly [table: string, column: string, target: string])[] = [
  ['command', 'organization_id', 'organization'],
  ['command', 'agent_id', 'agent'],
  ['command', 'person_id', 'person'],
  ['audit', 'organization_id', 'organization'],
  ['audit', 'actor_person_id', 'person'],
  ['task', 'organization_id', 'organization'],
  ['task', 'agent_id', 'agent'],
  ['task_event', 'task_id', 'task'],
  ['task_message', 'task_id', 'task'],
  ['task_artifact', 'task_id', 'task'],
  ['task_artifact_part', 'task_id', 'task'],
  ['task_transition', 'task_id', 'task'],
  ['task_reference', 'task_id', 'task'],
  ['task_bytes', 'task_id', 'task'],
]
const checksGone = references
  .map(([table, column]) => `alter table ${table} drop constraint ${table}_${column}_fkey;`)
  .join('\n')
const checksBack = references
  .map(([table, column, target]) => `alter table ${table} add foreign key (${column}) references ${target};`)
  .join('\n')

// A list of owned tasks is newest first by the task, and so the task's birth stands beside its owner; `open` keeps the
// finished ones out of what can be overdue. Both lists then read their own rows only, without a look at any task.
const owned = `
alter table ownership add column organization_id uuid;
alter table ownership add column task_created_at timestamptz;
alter table ownership add column open boolean not null default true;
update ownership o set organization_id = t.organization_id, task_created_at = t.created_at,
  open = t.state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY')
from task t where t.id = o.task_id;
alter table ownership alter column organization_id set not null;
alter table ownership alter column task_created_at set not null;
drop index ownership_of_assignee;
create index ownership_of_assignee on ownership (organization_id, assignee_membership_id, task_created_at desc, task_id desc)
  where assignee_membership_id is not null;
drop index ownership_due;
create index ownership_due on ownership (organization_id, due_at) include (task_created_at, task_id) where due_at is not null and open;
`

export const hotPath: Migration = {
  version: 6,
  name: 'hot-path',
  up: `${checksGone}
drop index command_of_task;
${owned}`,
  down: `
drop index ownership_due;
create index ownership_due on ownership (due_at) where due_at is not null;
drop index ownership_of_assignee;
create index ownership_of_assignee on ownership (assignee_membership_id) where assignee_membership_id is not null;
alter table ownership drop column open;
alter table ownership drop column task_created_at;
alter table ownership drop column organization_id;
create index command_of_task on command (task_id) where task_id is not null;
${checksBack}`,
}
