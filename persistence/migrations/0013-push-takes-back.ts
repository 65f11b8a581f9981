/**
 * Push actors no longer read a task whose end was called in: its subscription does, which sees to every end. Those that were at it
 * go on with taking the registration back; that a task ended meanwhile is a yes or no, whoever told it.
 */
import type { Migration } from '../migrate.ts'

export const pushTakesBack: Migration = {
  version: 13,
  name: 'push-takes-back',
  up: `
update actor set snapshot = jsonb_set(snapshot, '{context,settled}',
    to_jsonb(coalesce(snapshot->'context'->>'settled', '') in ('told', 'pushed')))
  where kind = 'push';
update actor set snapshot = jsonb_set(jsonb_set(snapshot, '{value}', '{"removing": "trying"}'), '{context,failures}', '0'),
    work = 'remove', work_started_at = null, timers = '{}', wake_at = now(),
    lease_token = null, lease_owner = null, lease_until = null
  where kind = 'push' and jsonb_exists(snapshot->'value', 'reading');`,
  down: `
update actor set snapshot = jsonb_set(snapshot, '{context,settled}',
    case when (snapshot->'context'->>'settled')::boolean then '"told"'::jsonb else 'null'::jsonb end)
  where kind = 'push';`,
}
