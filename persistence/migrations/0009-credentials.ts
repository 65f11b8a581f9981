/**
 * Credentials for agents: one binding an agent, sealed. What is readable here is what an administrator may see: the kind, and
 * when it changed. Origins are sealed with the secret, bound to organization, agent and kind. A revoked binding stays as a row
 * without its text: callers are told so, and there is nothing left to steal. `version` grows with every store and revocation,
 * never with a re-encryption, so that what is kept in memory for a binding is known to be of that binding.
 */
import type { Migration } from '../migrate.ts'

const up = `
create table credential (
  agent_id uuid primary key references agent,
  organization_id uuid not null references organization,
  kind text not null check (kind in ('bearer', 'apiKey', 'oauthClient', 'mtls')),
  version integer not null default 1,
  enabled boolean not null default true,
  sealed text,
  key_id text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check (enabled = (sealed is not null) and enabled = (key_id is not null))
);
create index credential_by_key on credential (organization_id, key_id, agent_id);
`

export const credentials: Migration = {
  version: 9,
  name: 'credentials',
  up,
  down: 'drop table credential;',
}
