/** A past, written by SQL in one go: finished commands with everything they leave behind, and tasks of every kind. */

export interface Whose {
  readonly organizationId: string
  readonly personId: string
  readonly membershipId: string
  readonly agentId: string
}

/** A request with this header is the operator's; every other is the administrator's. */
export const asOperator = 'x-operator'

export interface Everybody extends Whose {
  /** All agents, `agentId` among them: tasks are dealt out among them in hundreds. */
  readonly agentIds: readonly string[]
  /** Owns as much as `membershipId`. */
  readonly otherMembershipId: string
}

/**
 * Tasks number `from` to `to`, newest first: 90 % completed, 3 % failed, 5 % at work, 2 % waiting for a person. One in ten is
 * owned; a hundredth by each of the two members, and half of those that are owned are overdue unless finished. One in five has a
 * skill.
 */
export function tasksSql(whose: Everybody, from: number, to: number): string {
  const agents = whose.agentIds.map((id) => `'${id}'::uuid`).join(', ')
  return `
with made as (
  insert into task (id, organization_id, agent_id, tenant, remote_id, kind, context_id, skill_id, title, state, state_at, version,
    events, created_at, updated_at)
  select gen_random_uuid(), '${whose.organizationId}', (array[${agents}])[1 + n / 100 % ${whose.agentIds.length}], '', 'past-' || n,
    'task', 'context-' || n / 3, case when n % 5 = 0 then 'invoices' end, 'Task ' || n,
    case when n % 100 < 90 then 'TASK_STATE_COMPLETED' when n % 100 < 93 then 'TASK_STATE_FAILED'
         when n % 100 < 98 then 'TASK_STATE_WORKING' else 'TASK_STATE_INPUT_REQUIRED' end,
    now() - n * interval '1 second', 3, 3, now() - n * interval '1 second', now() - n * interval '1 second'
  from generate_series(${from}, ${to}) n
  returning id, substr(remote_id, 6)::int as n, organization_id, agent_id, skill_id, created_at
)
insert into ownership (task_id, organization_id, agent_id, skill_id, task_created_at, open, assignee_membership_id, claimed_at, due_at,
  escalation_level, updated_at)
select id, organization_id, agent_id, skill_id, created_at, n % 100 >= 93,
  case when n % 100 = 0 then '${whose.membershipId}'::uuid when n % 100 = 10 then '${whose.otherMembershipId}'::uuid end, now(),
  now() + (case when (n / 100) % 2 = 0 then -1 else 1 end) * interval '1 day', 0, now()
from made where n % 10 in (0, 8)`
}

/** Succeeded commands number `from` to `to`, each with its audit row, archive, log, facts, task, events and messages. */
export function commandsSql(whose: Whose, from: number, to: number): readonly string[] {
  const { organizationId, personId, agentId } = whose
  const at = `now() - n * interval '1 second'`
  return [
    `create temp table past on commit drop as
     select n, gen_random_uuid() as id, gen_random_uuid() as task_id from generate_series(${from}, ${to}) n`,
    `insert into task (id, organization_id, agent_id, tenant, kind, title, state, version, events, created_at, updated_at)
     select task_id, '${organizationId}', '${agentId}', '', 'message', 'Do it.', 'MESSAGE_ONLY', 1, 2, ${at}, ${at} from past`,
    `insert into task_event (task_id, position, source, event, received_at)
     select task_id, p, case p when 1 then 'sent' else 'reply' end, '{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"Done."}]}}', ${at}
     from past, generate_series(1, 2) p`,
    `insert into task_message (task_id, message_id, position, role, parts, said_at, from_status)
     select task_id, 'm' || p, p, case p when 1 then 'user' else 'agent' end, '[{"kind":"text","value":"Done."}]', ${at}, false
     from past, generate_series(1, 2) p`,
    `insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id,
       body, status, reply, task_id, created_at, updated_at)
     select id, '${organizationId}', '${agentId}', '${personId}', 'past-' || n, md5(n::text), 'send', '', 'past-' || n,
       '{"action":"send","tenant":"","text":"Do it."}', 'succeeded', '{"message":{}}', task_id, ${at}, ${at} from past`,
    `insert into audit (id, organization_id, at, kind, actor_type, actor_person_id, subject_id, data)
     select gen_random_uuid(), '${organizationId}', ${at}, 'task.send.accepted', 'user', '${personId}', id::text, '{}' from past`,
    `insert into actor_archive (kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at)
     select 'command', id, '${organizationId}', '1', 3, '{"value":"succeeded","context":{"attempts":1,"error":null},"status":"done"}',
       ${at}, ${at} from past`,
    `insert into actor_log (actor_id, kind, revision, machine_version, event, value, facts, cause, at, batch_id)
     select id, 'command', r, '1', '{"type":"xstate.init"}', '"dispatching"', array['command.accepted'], 'worker', ${at}, id
     from past, generate_series(1, 3) r`,
    `insert into fact (organization_id, kind, subject_id, data, at, batch_id)
     select '${organizationId}', 'command.succeeded', id, '{}', ${at}, id from past, generate_series(1, 5)`,
  ]
}
