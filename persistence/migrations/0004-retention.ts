/**
 * Retention: facts and logs of archived actors may be deleted once they are old, by whoever says that it is retention; and
 * where a run of it, or of a rebuild, has come to. Everything younger, and every change, stays refused (docs/adr/0009).
 */
import type { Migration } from '../migrate.ts'

/**
 * A statement's trigger sees all that the statement deleted at once, so the guard costs one look a pass and not one a row.
 * The day is a floor under every configuration: no setting lets anybody delete what is younger, or the log of what lives.
 */
const guards = `
drop trigger fact_append_only on fact;
create trigger fact_append_only before update on fact for each row execute function refuse_change('facts are append-only');
create function refuse_young_facts() returns trigger language plpgsql as $$
begin
  if exists (
    select 1 from gone
    where coalesce(current_setting('signalbox.retention', true), '') <> 'on' or at > now() - interval '1 day'
  ) then
    raise exception 'facts are append-only';
  end if;
  return null;
end $$;
create trigger fact_retention after delete on fact
  referencing old table as gone for each statement execute function refuse_young_facts();

drop trigger actor_log_append_only on actor_log;
create trigger actor_log_append_only before update on actor_log
  for each row execute function refuse_change('actor log entries are append-only');
create function refuse_young_logs() returns trigger language plpgsql as $$
begin
  if exists (
    select 1 from gone g
    where coalesce(current_setting('signalbox.retention', true), '') <> 'on' or g.at > now() - interval '1 day'
      or exists (select 1 from actor a where a.kind = g.kind and a.id = g.actor_id)
  ) then
    raise exception 'actor log entries are append-only';
  end if;
  return null;
end $$;
create trigger actor_log_retention after delete on actor_log
  referencing old table as gone for each statement execute function refuse_young_logs();
`

/** Archived actors are walked by an index that lists have anyway (migration 5), from a mark on: no command pays for another. */
const marks = `
create table retention_mark (
  organization_id uuid not null references organization,
  kind text not null,
  archived_at timestamptz not null,
  actor_id uuid not null,
  primary key (organization_id, kind)
);
create table rebuild_mark (
  organization_id uuid primary key references organization,
  started_at timestamptz not null,
  after_task_id uuid not null,
  tasks integer not null
);
`

/** Deletions leave room that is to be used again soon: at the default of a fifth, ten million facts would hold two million dead. */
const vacuuming = `
alter table fact set (autovacuum_vacuum_scale_factor = 0.02);
alter table actor_log set (autovacuum_vacuum_scale_factor = 0.02);
`

export const retention: Migration = {
  version: 4,
  name: 'retention',
  up: guards + marks + vacuuming,
  down: `
alter table fact reset (autovacuum_vacuum_scale_factor);
alter table actor_log reset (autovacuum_vacuum_scale_factor);
drop table rebuild_mark;
drop table retention_mark;
drop trigger actor_log_retention on actor_log;
drop function refuse_young_logs();
drop trigger actor_log_append_only on actor_log;
create trigger actor_log_append_only before update or delete on actor_log
  for each row execute function refuse_change('actor log entries are append-only');
drop trigger fact_retention on fact;
drop function refuse_young_facts();
drop trigger fact_append_only on fact;
create trigger fact_append_only before update or delete on fact
  for each row execute function refuse_change('facts are append-only');
`,
}
