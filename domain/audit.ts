/**
 * The audit trail's words: the closed list of what is recorded, the groups people filter by, and the shapes that `/api/audit`
 * answers with, as schemas that the browser checks with. Does not own rows (persistence/audit.ts), their chain
 * (audit-chain.ts) or who may read them (http/audit.ts).
 */
import * as z from 'zod/mini'
import { Role } from './access.ts'

export const auditGroups = ['approvals', 'ownership', 'commands', 'access'] as const
export type AuditGroup = (typeof auditGroups)[number]

/** Every kind there is, by its group [decided-shapes: "Audit"]. `access` holds the facts about identity and access. */
const kindsByGroup = {
  approvals: [
    'decision.requested',
    'decision.revised',
    'decision.approve',
    'decision.edit',
    'decision.reject',
    'decision.request_changes',
    'decision.delegate',
    'decision.expired',
    'decision.superseded',
  ],
  ownership: [
    'task.claimed',
    'task.released',
    'task.assigned',
    'task.due_set',
    'task.due_cleared',
    'task.escalated',
    'task.note_added',
    'escalation.policy_saved',
  ],
  commands: ['task.send.accepted', 'task.cancel.accepted', 'command.settled', 'command.reopened'],
  access: [
    'session.started',
    'session.ended',
    'identity.provisioned',
    'agent.registered',
    'agent.removed',
    'credential.rotated',
    'credential.revoked',
    'access.granted',
    'access.revoked',
    'team.created',
    'team.member_added',
    'team.member_removed',
    'team.disabled',
    'audit.exported',
  ],
} as const satisfies Record<AuditGroup, readonly string[]>

export type AuditKind = (typeof kindsByGroup)[AuditGroup][number]

const ActorType = z.enum(['user', 'system', 'agent'])
export type AuditActorType = z.infer<typeof ActorType>

export const kindsOf = (group: AuditGroup): readonly AuditKind[] => kindsByGroup[group]

/** One record as people read it. `taskId` of a command is that of the task it brought, which its row cannot know. */
export const AuditRecord = z.object({
  key: z.string(),
  at: z.string(),
  kind: z.string(),
  actorType: ActorType,
  actorUserId: z.nullable(z.string()),
  taskId: z.nullable(z.string()),
  subjectId: z.nullable(z.string()),
  data: z.record(z.string(), z.unknown()),
})
export type AuditRecord = z.infer<typeof AuditRecord>

/** What a record's task is called, and where it stands now. */
export const AuditContext = z.object({ title: z.string(), agentName: z.string(), state: z.string() })
export type AuditContext = z.infer<typeof AuditContext>

/** `GET /api/audit`, newest first. `people`: names by user id, or by membership id where a record speaks of one. */
export const AuditAnswer = z.object({
  entries: z.array(AuditRecord),
  people: z.record(z.string(), z.string()),
  context: z.record(z.string(), AuditContext),
  next: z.nullable(z.string()),
  viewer: z.object({ userId: z.string(), membershipId: z.string(), role: Role }),
})
export type AuditAnswer = z.infer<typeof AuditAnswer>

/** `GET /api/audit/chain`: how far rows are linked, and what the last walk along the whole chain found. */
export const ChainAnswer = z.object({
  number: z.number(),
  hash: z.string(),
  linkedAt: z.nullable(z.string()),
  /** Rows that have no link yet; 10,001 stands for more than ten thousand. */
  unlinked: z.number(),
  /** Null before the first walk has ended. */
  checkedAt: z.nullable(z.string()),
  fault: z.nullable(z.object({ kind: z.string(), number: z.number(), message: z.string() })),
})
export type ChainAnswer = z.infer<typeof ChainAnswer>
