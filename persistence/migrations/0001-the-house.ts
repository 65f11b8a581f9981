/**
 * The first schema: people, agents, commands, tasks, actors, and the four append-only records.
 * Works on PostgreSQL 15 and newer and on the embedded database; a shipped migration is never edited.
 */
import type { Migration } from '../migrate.ts'

const people = `
create table organization (
  id uuid primary key,
  slug text not null unique,
  name text not null,
  created_at timestamptz not null default now()
);
create table person (
  id uuid primary key,
  issuer text,
  subject text,
  display_name text not null,
  created_at timestamptz not null default now(),
  unique (issuer, subject)
);
create table membership (
  id uuid primary key,
  organization_id uuid not null references organization,
  person_id uuid not null references person,
  role text not null check (role in ('admin', 'operator', 'viewer')),
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  unique (organization_id, person_id)
);
`

// The card is JSON text, not jsonb: it is an agent's, kept byte for byte for signatures, and jsonb refuses NUL and lone surrogates.
const agents = `
create table agent (
  id uuid primary key,
  organization_id uuid not null references organization,
  card_url text not null,
  source text not null check (source in ('env', 'managed')),
  enabled boolean not null default true,
  name text not null,
  card_digest text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, card_url)
);
create table agent_card (
  agent_id uuid not null references agent,
  digest text not null,
  card text not null,
  trust text not null check (trust in ('unsigned', 'verified', 'untrusted', 'invalid')),
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  primary key (agent_id, digest)
);
`

// "body" is the input archive: what is delivered is what was accepted, whatever happens to the process in between.
const commands = `
create table command (
  id uuid primary key,
  organization_id uuid not null references organization,
  agent_id uuid not null references agent,
  person_id uuid not null references person,
  idempotency_key text not null,
  content_digest text not null,
  action text not null check (action in ('send', 'cancelTask')),
  tenant text not null,
  message_id text not null,
  remote_task_id text,
  title text,
  body text not null,
  status text not null check (status in ('pending', 'dispatching', 'succeeded', 'failed', 'uncertain')),
  error text,
  reply text,
  task_id uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (organization_id, idempotency_key)
) with (fillfactor = 85);
create index command_of_remote_task on command (agent_id, tenant, remote_task_id) where remote_task_id is not null;
create index command_of_task on command (task_id) where task_id is not null;
`

// One row per message, artifact and part: a stream of n chunks writes n rows, where a whole view per chunk would write n².
const tasks = `
create table task (
  id uuid primary key,
  organization_id uuid not null references organization,
  agent_id uuid not null references agent,
  tenant text not null,
  remote_id text,
  kind text not null check (kind in ('task', 'message')),
  context_id text,
  skill_id text,
  title text,
  state text not null,
  state_at timestamptz,
  version integer not null,
  events integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (agent_id, tenant, remote_id)
) with (fillfactor = 80);
create index task_newest on task (organization_id, created_at desc, id desc);
create index task_active on task (organization_id, created_at desc, id desc)
  where state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY');
create index task_needs_input on task (organization_id, created_at desc, id desc)
  where state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED');
create index task_done on task (organization_id, created_at desc, id desc)
  where state in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY');
create index task_conversation on task (agent_id, tenant, context_id);

create table task_event (
  task_id uuid not null references task,
  position integer not null,
  source text not null check (source in ('sent', 'reply', 'stream', 'push', 'poll')),
  event text not null,
  received_at timestamptz not null,
  primary key (task_id, position)
);
create table task_message (
  task_id uuid not null references task,
  message_id text not null,
  position bigint not null,
  role text not null check (role in ('user', 'agent')),
  parts text not null,
  said_at timestamptz not null,
  from_status boolean not null,
  primary key (task_id, message_id)
);
create table task_artifact (
  task_id uuid not null references task,
  artifact_id text not null,
  position bigint not null,
  name text,
  description text,
  extensions text not null,
  complete boolean not null,
  update_count integer not null,
  part_count integer not null,
  parts_digest text not null,
  primary key (task_id, artifact_id)
);
create table task_artifact_part (
  task_id uuid not null references task,
  artifact_id text not null,
  position integer not null,
  part text not null,
  primary key (task_id, artifact_id, position)
);
create table task_transition (
  task_id uuid not null references task,
  position integer not null,
  state text not null,
  at timestamptz not null,
  primary key (task_id, position)
);
create table task_reference (
  task_id uuid not null references task,
  remote_id text not null,
  primary key (task_id, remote_id)
);
create table artifact (
  digest text primary key,
  size bigint not null,
  stored_at timestamptz not null
);
create table task_bytes (
  task_id uuid not null references task,
  digest text not null references artifact,
  primary key (task_id, digest)
);
create index task_bytes_by_digest on task_bytes (digest);
create table ownership (
  task_id uuid primary key references task,
  assignee_membership_id uuid references membership,
  claimed_at timestamptz,
  due_at timestamptz,
  escalation_level integer not null,
  escalated_at timestamptz,
  updated_at timestamptz not null
);
create index ownership_of_assignee on ownership (assignee_membership_id) where assignee_membership_id is not null;
create index ownership_due on ownership (due_at) where due_at is not null;
`

// The live table is small and hot: only what still lives, room for updates in place, vacuumed early. What reached a final
// state moves to the archive in the same statement, so claims never scan history.
const actors = `
create table actor (
  kind text not null,
  id uuid not null,
  organization_id uuid not null,
  lane uuid,
  machine_version text not null,
  revision integer not null,
  snapshot jsonb not null,
  work text,
  work_started_at timestamptz,
  timers jsonb not null,
  wake_at timestamptz,
  lease_token uuid,
  lease_owner text,
  lease_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (kind, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
create index actor_due on actor (kind, wake_at) where wake_at is not null;
create table actor_archive (
  kind text not null,
  id uuid not null,
  organization_id uuid not null,
  machine_version text not null,
  revision integer not null,
  snapshot jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (kind, id)
);
create index actor_archive_newest on actor_archive (organization_id, updated_at desc, id desc);
create table actor_log (
  actor_id uuid not null,
  kind text not null,
  revision integer not null,
  machine_version text not null,
  event text not null,
  value jsonb not null,
  facts text[] not null,
  cause text not null,
  at timestamptz not null,
  batch_id uuid not null,
  primary key (actor_id, kind, revision)
);
create table fact (
  number bigint generated always as identity primary key,
  organization_id uuid not null,
  kind text not null,
  subject_id text not null,
  data jsonb not null,
  at timestamptz not null,
  batch_id uuid not null
);
create table audit (
  id uuid primary key,
  organization_id uuid not null references organization,
  at timestamptz not null,
  kind text not null,
  actor_type text not null check (actor_type in ('user', 'system', 'agent')),
  actor_person_id uuid references person,
  task_id uuid,
  subject_id text,
  data jsonb not null
);
create index audit_newest on audit (organization_id, at desc, id desc);
create index audit_of_task on audit (task_id, at desc, id desc) where task_id is not null;
`

const protectedTables = [
  ['audit', 'audit records are append-only'],
  ['actor_log', 'actor log entries are append-only'],
  ['fact', 'facts are append-only'],
  ['task_event', 'task events are append-only'],
] as const

const appendOnly = `
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '%', tg_argv[0];
end $$;
${protectedTables
  .map(
    ([table, message]) => `
create trigger ${table}_append_only before update or delete on ${table} for each row execute function refuse_change('${message}');
create trigger ${table}_no_truncate before truncate on ${table} for each statement execute function refuse_change('${message}');`,
  )
  .join('')}
`

const tables = [
  'audit',
  'fact',
  'actor_log',
  'actor_archive',
  'actor',
  'ownership',
  'task_bytes',
  'artifact',
  'task_reference',
  'task_transition',
  'task_artifact_part',
  'task_artifact',
  'task_message',
  'task_event',
  'task',
  'command',
  'agent_card',
  'agent',
  'membership',
  'person',
  'organization',
]

export const theHouse: Migration = {
  version: 1,
  name: 'the-house',
  up: people + agents + commands + tasks + actors + appendOnly,
  down: `${tables.map((table) => `drop table ${table};`).join('\n')}\ndrop function refuse_change();`,
}
