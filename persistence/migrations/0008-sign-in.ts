/**
 * Signing in: attempts under way, and sessions. Of a secret that a browser holds only its SHA-256 is here, so that who reads
 * the database cannot sign in with what is in it.
 */
import type { Migration } from '../migrate.ts'

// `sealed` is a JWE: the verifier, the nonce and where to return to. `binding_hash` ties the attempt to one browser.
const up = `
create table sign_in_attempt (
  state_hash text primary key,
  binding_hash text not null,
  sealed text not null,
  expires_at timestamptz not null
);
create index sign_in_attempt_of_browser on sign_in_attempt (binding_hash);
create index sign_in_attempt_over on sign_in_attempt (expires_at);
create table session (
  token_hash text primary key,
  id uuid not null unique,
  membership_id uuid not null references membership,
  created_at timestamptz not null,
  seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index session_of_membership on session (membership_id);
create index session_over on session (expires_at);
`

export const signIn: Migration = {
  version: 8,
  name: 'sign-in',
  up,
  down: 'drop table session; drop table sign_in_attempt;',
}
