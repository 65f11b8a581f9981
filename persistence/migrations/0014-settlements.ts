/**
 * What people decided about sends that failed or are uncertain; since when a process is heard of; and which actors look after an
 * agent, by index. What is settled leaves the lists: `command.unsettled_at` is null, and the index of unusual ends passes it over, so
 * that a hundred thousand settled ones cost the list of what needs a person nothing.
 *
 * Code from before goes on beside it during a rolling restart: it writes neither the table nor the columns, and until it is gone
 * counts what was settled as needing a person still, and finds it by the index of its kind, which is slower. What its processes
 * insert gets the default for `first_seen_at`, the database's clock. Those that told before were there before anybody else, so that
 * none of them passes for the successor of one that fell silent.
 *
 * The index of ends is built anew under its table's lock: ends of commands wait meanwhile.
 */
import type { Migration } from '../migrate.ts'

export const settlements: Migration = {
  version: 14,
  name: 'settlements',
  up: `
create table command_settlement (
  command_id uuid primary key references command on delete cascade,
  organization_id uuid not null references organization,
  person_id uuid not null references person,
  decision text not null check (decision in ('arrived', 'not-arrived', 'sent-again', 'no-matter')),
  note text check (length(note) between 1 and 500),
  successor_id uuid references command,
  at timestamptz not null,
  check ((decision = 'sent-again') = (successor_id is not null))
);
create index command_settlement_successor on command_settlement (successor_id) where successor_id is not null;
alter table process add column first_seen_at timestamptz not null default now();
update process set first_seen_at = 'epoch';
create index actor_looks_of_agent on actor (lane) where kind = 'reconciliation';
alter table actor_archive add column settled_at timestamptz;
drop index actor_archive_unusual;
create index actor_archive_unusual on actor_archive (organization_id, updated_at desc, id desc)
  where snapshot->>'value' not in ('succeeded', 'finished', 'ended', 'unsupported') and settled_at is null;`,
  down: `
alter table process drop column first_seen_at;
drop index actor_looks_of_agent;
update command c set unsettled_at = c.updated_at from command_settlement s where s.command_id = c.id;
drop index actor_archive_unusual;
alter table actor_archive drop column settled_at;
create index actor_archive_unusual on actor_archive (organization_id, updated_at desc, id desc)
  where snapshot->>'value' not in ('succeeded', 'finished', 'ended', 'unsupported');
drop table command_settlement;`,
}
