/**
 * The audit chain: one link a row, each with the hash of its predecessor, one chain an organization. Links are made after the
 * rows they link are committed, so that commits never wait for one another's place in the chain (docs/adr/0011).
 */
import type { Migration } from '../migrate.ts'

// A place is drawn before its commit, so 7 may be seen before 6. The linker waits for 6 by transaction ids, which works only
// if whoever holds a place has an id already: hence the condition, which is always true and takes one. The key of a row
// becomes its place: eight bytes at the right edge of one index, where a second index beside the uuid's would be dearer.
const places = `
create sequence audit_place as bigint;
alter table audit add column place bigint not null
  default case when pg_current_xact_id() is not null then nextval('audit_place') end;
alter sequence audit_place owned by audit.place;
alter table audit drop constraint audit_pkey;
alter table audit add primary key (place);
`

// Nearly every row is a command's. What people look for among them is found without reading those, and costs those nothing.
const others = `
create index audit_uncommon on audit (organization_id, at desc, id desc)
  where kind not in ('task.send.accepted', 'task.cancel.accepted');
`

// "Always": an ordinary trigger rests in a session that says it applies a replica's changes (session_replication_role).
const chain = `
create table audit_link (
  organization_id uuid not null,
  number bigint not null,
  place bigint not null unique,
  previous_hash bytea not null,
  hash bytea not null,
  primary key (organization_id, number)
);
create trigger audit_link_append_only before update or delete on audit_link
  for each row execute function refuse_change('audit records are append-only');
create trigger audit_link_no_truncate before truncate on audit_link
  for each statement execute function refuse_change('audit records are append-only');
alter table audit_link enable always trigger audit_link_append_only;
alter table audit_link enable always trigger audit_link_no_truncate;
alter table audit enable always trigger audit_append_only;
alter table audit enable always trigger audit_no_truncate;
create table audit_chain (
  organization_id uuid primary key,
  number bigint not null,
  hash bytea not null,
  linked_at timestamptz not null
);
create table audit_linking (
  single boolean primary key default true check (single),
  place bigint not null,
  pending_place bigint,
  pending_xid xid8
);
insert into audit_linking (place) values (0);
create table audit_check (
  organization_id uuid primary key,
  number bigint not null,
  hash bytea not null,
  place bigint not null,
  began_at timestamptz not null,
  checked_at timestamptz,
  fault jsonb
);
`

// The command that brought a task: its audit row is older than the task, and so cannot name it.
const firstCommands = `
alter table task add column command_id uuid;
update task t set command_id = c.id from (
  select distinct on (task_id) task_id, id from command where task_id is not null order by task_id, created_at, id
) c where c.task_id = t.id;
`

export const auditChain: Migration = {
  version: 10,
  name: 'audit-chain',
  up: places + others + chain + firstCommands,
  down: `
alter table audit enable trigger audit_append_only;
alter table audit enable trigger audit_no_truncate;
alter table task drop column command_id;
drop table audit_check;
drop table audit_linking;
drop table audit_chain;
drop table audit_link;
drop index audit_uncommon;
alter table audit drop constraint audit_pkey;
alter table audit drop column place;
alter table audit add primary key (id);`,
}
