/** A drawn organization (visibility-world.ts) as rows: what it takes to be one, written in one transaction. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import type { Database } from '../../persistence/database.ts'
import { instant, type Actor, type Agent, type Task, type World } from './visibility-world.ts'

const isOver = ({ state }: Task): boolean => state === 'TASK_STATE_COMPLETED'
const none = { context: {}, status: 'done' }

/** Writes a world. `cardUrl` is where an agent's card is. */
export async function write(db: Database, world: World, cardUrl: (agent: Agent) => string): Promise<void> {
  const rows: readonly (readonly [table: string, rows: readonly object[]])[] = [
    ...whoRows(world, cardUrl),
    ...taskRows(world),
    ...commandRows(world),
    ...actorRows(world),
    ...auditRows(world),
  ]
  await db.pool.transaction(async (tx) => {
    for (const [table, records] of rows) {
      const [first] = records
      if (!first) continue
      const columns = sql.join(
        Object.keys(first).map((name) => sql.identifier([name])),
        sql.fragment`, `,
      )
      const into = sql.identifier([table])
      await tx.query(sql.unsafe`
        insert into ${into} (${columns}) select ${columns} from jsonb_populate_recordset(null::${into}, ${JSON.stringify(records)}::jsonb)
        on conflict do nothing`)
    }
  })
}

function whoRows(
  { organizationId: organization_id, people, teams, agents, grants }: World,
  cardUrl: (agent: Agent) => string,
) {
  const created_at = instant(0)
  return [
    ['organization', [{ id: organization_id, slug: organization_id, name: 'Drawn', created_at }]],
    ['person', people.map(({ personId: id, name: display_name }) => ({ id, display_name, created_at }))],
    [
      'membership',
      people.map(({ membershipId: id, personId: person_id, role, enabled }) => ({
        id,
        organization_id,
        person_id,
        role,
        enabled,
        created_at,
      })),
    ],
    ['team', teams.map(({ id, enabled }) => ({ id, organization_id, name: 'Team', enabled, created_at }))],
    [
      'team_member',
      teams.flatMap(({ id: team_id, members }) =>
        members.map(({ membershipId: membership_id }) => ({ id: uuidv7(), team_id, membership_id, created_at })),
      ),
    ],
    [
      'agent',
      agents.map((agent) => ({
        id: agent.id,
        organization_id,
        card_url: cardUrl(agent),
        source: 'managed',
        enabled: agent.enabled,
        name: 'Drawn agent',
        routes_skills: agent.known,
        created_at,
        updated_at: created_at,
      })),
    ],
    [
      'access_grant',
      grants.map(
        ({ id, agent, skillId: skill_id, subjectType: subject_type, subjectId: subject_id, permission, enabled }) => ({
          id,
          organization_id,
          agent_id: agent.id,
          skill_id,
          subject_type,
          subject_id,
          permission,
          enabled,
          created_at,
          updated_at: created_at,
        }),
      ),
    ],
  ] as const
}

function taskRows({ organizationId: organization_id, tasks }: World) {
  const updated_at = instant(0)
  const digests = [...new Set(tasks.map(({ digest }) => digest))]
  return [
    [
      'task',
      tasks.map(({ id, remoteId: remote_id, agent, skillId: skill_id, state, createdAt: created_at }) => ({
        id,
        organization_id,
        agent_id: agent.id,
        tenant: '',
        remote_id,
        kind: 'task',
        context_id: 'c',
        skill_id,
        title: 'Task',
        state,
        version: 1,
        events: 1,
        created_at,
        updated_at,
      })),
    ],
    [
      'task_event',
      tasks.map(({ id: task_id }) => ({ task_id, position: 0, source: 'sent', event: '{}', received_at: updated_at })),
    ],
    [
      'task_reference',
      tasks.flatMap(({ id: task_id, references }) => references.map((remote_id) => ({ task_id, remote_id }))),
    ],
    ['artifact', digests.map((digest) => ({ digest, size: 1, stored_at: updated_at }))],
    ['task_bytes', tasks.map(({ id: task_id, digest }) => ({ task_id, digest }))],
    [
      'ownership',
      tasks.flatMap((task) =>
        task.owner === null && task.dueAt === null
          ? []
          : [
              {
                task_id: task.id,
                organization_id,
                agent_id: task.agent.id,
                skill_id: task.skillId,
                assignee_membership_id: task.owner?.membershipId ?? null,
                due_at: task.dueAt,
                escalation_level: 0,
                task_created_at: task.createdAt,
                open: !isOver(task),
                updated_at,
              },
            ],
      ),
    ],
  ] as const
}

function commandRows({ organizationId: organization_id, people, commands }: World) {
  const [{ personId: person_id } = { personId: '' }] = people
  return [
    [
      'command',
      commands.map(({ id, agent, skillId: skill_id, status, about, at }) => ({
        id,
        organization_id,
        agent_id: agent.id,
        person_id,
        idempotency_key: id,
        content_digest: 'x',
        action: 'send',
        tenant: '',
        message_id: id,
        remote_task_id: about?.remoteId ?? null,
        title: 'Command',
        skill_id,
        status,
        body: '{"action":"send","tenant":"","text":"x"}',
        reply: '{"message":{}}',
        task_id: about?.id ?? null,
        created_at: at,
        updated_at: at,
        unsettled_at: status === 'failed' || status === 'uncertain' ? at : null,
      })),
    ],
    [
      'command_evidence',
      commands.flatMap(({ id: command_id, agent, evidence, at: since }) =>
        evidence
          ? [
              {
                command_id,
                organization_id,
                agent_id: agent.id,
                tenant: '',
                since,
                looks: 1,
                looked_at: since,
                outcome: 'found',
                is_whole: true,
                remote_task_id: evidence.remoteId,
                task_state: evidence.state,
              },
            ]
          : [],
      ),
    ],
  ] as const
}

function actorRows({ organizationId: organization_id, actors }: World) {
  return [
    [
      'actor_archive',
      actors.flatMap(({ kind, id, at, about }) =>
        isFailing(about) ? [] : [{ ...actorRow(kind, id, organization_id, at), created_at: at }],
      ),
    ],
    [
      'actor',
      actors.flatMap(({ kind, id, at, about }) =>
        isFailing(about)
          ? [
              {
                ...actorRow(kind, id, organization_id, at),
                snapshot: failing,
                lane: 'remoteId' in about ? about.agent.id : about.id,
                timers: {},
                created_at: at,
              },
            ]
          : [],
      ),
    ],
  ] as const
}

function auditRows({ organizationId: organization_id, people, tasks, commands }: World) {
  const [{ personId: actor_person_id } = { personId: '' }] = people
  const common = { organization_id, actor_type: 'user', actor_person_id, data: {} }
  const claims = tasks.map(({ id, createdAt: at }) => ({ kind: 'task.claimed', task_id: id, subject_id: id, at }))
  const sends = commands.map(({ id, about, at }) => {
    return { kind: 'task.send.accepted', task_id: about?.id ?? null, subject_id: id, at }
  })
  return [['audit', [...claims, ...sends].map((row) => ({ id: uuidv7(), ...common, ...row }))]] as const
}

/** Of no agent, and of no unfinished task, is anything read: everything that stands in a way is there to be seen. */
const isFailing = (about: Actor['about']): about is Task | Agent =>
  'remoteId' in about ? !isOver(about) : !('agent' in about)
const failing = { value: 'backingOff', context: { failures: 2, reason: 'No answer' }, status: 'active' }

const stateOf = { command: 'succeeded', subscription: 'finished', reconciliation: 'resting' } as const

const actorRow = (kind: Actor['kind'], id: string, organization_id: string, updated_at: string) => ({
  kind,
  id,
  organization_id,
  machine_version: '1',
  revision: 1,
  updated_at,
  snapshot: { value: stateOf[kind], ...none },
})
