/**
 * Decisions about sends that were taken back: who had decided what, and who took it back and why. A decision that stands is a row of
 * `command_settlement`; reopening moves it here, so that no word of a person is lost. Code from before goes on beside it during a
 * rolling restart: where it reopens, the decision is not kept, as it was not then.
 */
import type { Migration } from '../migrate.ts'

export const reopenings: Migration = {
  version: 15,
  name: 'reopenings',
  up: `
create table command_reopening (
  command_id uuid not null references command on delete cascade,
  organization_id uuid not null references organization,
  person_id uuid not null references person,
  decision text not null,
  note text,
  successor_id uuid references command on delete set null,
  settled_at timestamptz not null,
  reopened_by uuid not null references person,
  reopened_note text check (length(reopened_note) between 1 and 500),
  reopened_at timestamptz not null,
  primary key (command_id, settled_at)
);
create index command_reopening_successor on command_reopening (successor_id) where successor_id is not null;`,
  down: `drop table command_reopening;`,
}
