/**
 * What reconciliation needs: the unfinished tasks of a scope by index, tasks that their agent no longer knows, and the
 * evidence about uncertain commands. Commands that were uncertain before this migration are looked for, too.
 */
import type { Migration } from '../migrate.ts'

// Narrow and partial: a task that is born finished never enters it, and a scope's page of unfinished tasks is one range.
const unfinishedTasks = `
create index task_unfinished on task (agent_id, tenant, id)
  where remote_id is not null
    and state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY');
`

// No reference to task: its check would lock the task's row after actors were locked, against the order of locks.
const lostTasks = `
create table lost_task (
  task_id uuid primary key,
  organization_id uuid not null,
  since timestamptz not null,
  looks integer not null,
  looked_at timestamptz not null,
  look_at timestamptz
);
`

const evidence = `
create table command_evidence (
  command_id uuid primary key references command,
  organization_id uuid not null,
  agent_id uuid not null,
  tenant text not null,
  since timestamptz not null,
  looks integer not null,
  looked_at timestamptz,
  look_at timestamptz,
  outcome text not null check (outcome in ('pending', 'found', 'absent', 'unreadable', 'unsearchable')),
  is_whole boolean not null,
  remote_task_id text,
  task_state text,
  reason text
);
create index command_evidence_open on command_evidence (agent_id, tenant, look_at) where look_at is not null;
insert into command_evidence (command_id, organization_id, agent_id, tenant, since, looks, look_at, outcome, is_whole)
select id, organization_id, agent_id, tenant, updated_at, 0, now(), 'pending', false from command where status = 'uncertain';
`

export const reconciliation: Migration = {
  version: 2,
  name: 'reconciliation',
  up: unfinishedTasks + lostTasks + evidence,
  down: `
drop table command_evidence;
drop table lost_task;
drop index task_unfinished;
`,
}
