/**
 * Who may see and do what: teams, and grants of an agent or of one of its skills to the organization, a person's membership or
 * a team. Grants add up; a revoked one stays as a disabled row, so that its id keeps naming it. What lists of a person with
 * few grants need among a million tasks is here, too.
 */
import type { Migration } from '../migrate.ts'

// `subject_id` is an organization's, a membership's or a team's id, as `subject_type` says; no foreign key can say that.
const grants = `
create table team (
  id uuid primary key,
  organization_id uuid not null references organization,
  name text not null,
  enabled boolean not null default true,
  created_at timestamptz not null default now()
);
create index team_of_organization on team (organization_id, name);
create table team_member (
  id uuid primary key,
  team_id uuid not null references team,
  membership_id uuid not null references membership,
  created_at timestamptz not null default now(),
  unique (team_id, membership_id)
);
create index team_member_by_membership on team_member (membership_id);
create table access_grant (
  id uuid primary key,
  organization_id uuid not null references organization,
  agent_id uuid not null references agent,
  skill_id text,
  subject_type text not null check (subject_type in ('organization', 'membership', 'team')),
  subject_id uuid not null,
  permission text not null check (permission in ('read', 'operate')),
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index access_grant_once on access_grant
  (organization_id, agent_id, coalesce(skill_id, ''), subject_type, subject_id, permission) where enabled;
create index access_grant_of_subject on access_grant (organization_id, subject_type, subject_id) where enabled;
`

// A skill's grant counts only at an agent that promises to keep a send to its skill; null until a card says it or does not.
// A command is seen by whoever holds its skill: the one it named, or its task's.
const skills = `
alter table agent add column routes_skills boolean;
alter table command add column skill_id text;
update command c set skill_id = t.skill_id from task t where t.skill_id is not null
  and (t.id = c.task_id or (t.agent_id = c.agent_id and t.tenant = c.tenant and t.remote_id = c.remote_task_id));
`

// Newest first within one agent, or one skill of it: a page of somebody who holds three agents merges the beginnings of three
// lists, where the organization's order would be walked past everything that others own. Skills' rows are few: theirs are partial.
const unfinished = `state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY')`
const lists = `
create index task_of_agent on task (agent_id, created_at desc, id desc);
create index task_of_agent_active on task (agent_id, created_at desc, id desc) where ${unfinished};
create index task_of_agent_needs_input on task (agent_id, created_at desc, id desc)
  where state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED');
create index task_of_agent_by_id on task (agent_id, id);
create index task_of_skill on task (agent_id, skill_id, created_at desc, id desc) where skill_id is not null;
create index task_of_skill_active on task (agent_id, skill_id, created_at desc, id desc)
  where skill_id is not null and ${unfinished};
`

// What is owned and what is overdue is looked for among owners, so whose task it is stands beside its owner.
const owned = `
alter table ownership add column agent_id uuid;
alter table ownership add column skill_id text;
update ownership o set agent_id = t.agent_id, skill_id = t.skill_id from task t where t.id = o.task_id;
alter table ownership alter column agent_id set not null;
drop index ownership_due;
create index ownership_due on ownership (organization_id, due_at) include (task_created_at, task_id, agent_id, skill_id)
  where due_at is not null and open;
drop index ownership_of_assignee;
create index ownership_of_assignee on ownership
  (organization_id, assignee_membership_id, task_created_at desc, task_id desc) include (agent_id, skill_id)
  where assignee_membership_id is not null;
`
const ownedBefore = `
drop index ownership_of_assignee;
create index ownership_of_assignee on ownership (organization_id, assignee_membership_id, task_created_at desc, task_id desc)
  where assignee_membership_id is not null;
drop index ownership_due;
create index ownership_due on ownership (organization_id, due_at) include (task_created_at, task_id) where due_at is not null and open;
alter table ownership drop column skill_id;
alter table ownership drop column agent_id;
`

const indexes = [
  'task_of_skill_active',
  'task_of_skill',
  'task_of_agent_by_id',
  'task_of_agent_needs_input',
  'task_of_agent_active',
  'task_of_agent',
]

export const access: Migration = {
  version: 7,
  name: 'access',
  up: grants + skills + lists + owned,
  down: `${ownedBefore}
${indexes.map((name) => `drop index ${name};`).join('\n')}
alter table command drop column skill_id;
alter table agent drop column routes_skills;
drop table access_grant;
drop table team_member;
drop table team;`,
}
