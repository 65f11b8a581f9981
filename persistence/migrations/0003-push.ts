/**
 * Push: callbacks that agents were told, deliveries that were taken, and the windows in which callers are counted. Works on
 * PostgreSQL 15 and newer and on the embedded database; a shipped migration is never edited.
 */
import type { Migration } from '../migrate.ts'

// No secret is stored: a registration's credential is derived from its id (actors/push-credential.ts).
const registrations = `
create table push_registration (
  id uuid primary key,
  task_id uuid not null unique references task,
  tenant text not null,
  created_at timestamptz not null
);
create table push_delivery (
  registration_id uuid not null references push_registration,
  key text not null,
  received_at timestamptz not null,
  primary key (registration_id, key)
);
create index push_delivery_oldest on push_delivery (received_at);
`

// Unlogged: a crash may empty it, which costs one window's count, and no request waits for the disk to be counted. One row
// a bucket, updated in place: room in the page keeps those updates out of the indexes.
const rates = `
create unlogged table rate_window (
  bucket text primary key,
  starts_at timestamptz not null,
  taken integer not null
) with (fillfactor = 50);
`

export const push: Migration = {
  version: 3,
  name: 'push',
  up: registrations + rates,
  down: `
drop table rate_window;
drop table push_delivery;
drop table push_registration;
`,
}
