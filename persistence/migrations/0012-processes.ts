/**
 * Processes tell of themselves, so that whoever asks one of several replicas sees them all, the workers too: without it a worker
 * is known by its leases alone, and one that waits for work by nothing.
 */
import type { Migration } from '../migrate.ts'

export const processes: Migration = {
  version: 12,
  name: 'processes',
  up: `
create table process (
  owner text primary key check (length(owner) between 1 and 500),
  seen_at timestamptz not null,
  told jsonb not null
);`,
  down: `
drop table process;`,
}
