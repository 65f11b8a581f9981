/** Every kind of the closed list has words, and names are shown where they are known. */
import { expect, test } from 'vitest'
import { auditGroups, kindsOf, type AuditRecord } from '../../domain/audit.ts'
import { auditActor, auditWords, type AuditNames } from '../../domain/audit-words.ts'

const names: AuditNames = {
  person: (id) => ({ ada: 'Ada', 'member-bob': 'Bob' })[id],
  agent: (id) => ({ pay: 'Payments' })[id],
  team: (id) => ({ ops: 'Ops' })[id],
}
const nobody: AuditNames = { person: () => undefined, agent: () => undefined, team: () => undefined }

const entry = (kind: string, data: AuditRecord['data'] = {}, subjectId: string | null = null): AuditRecord => ({
  key: 'key',
  at: '2026-01-01T00:00:00.000Z',
  kind,
  actorType: 'user',
  actorUserId: 'ada',
  taskId: null,
  subjectId,
  data,
})
const words = (...given: Parameters<typeof entry>): string =>
  auditWords(entry(...given), names).replaceAll(/[\u2068\u2069]/g, '')

test('every kind there is has words of its own', () => {
  const kinds = auditGroups.flatMap((group) => kindsOf(group))
  const told = kinds.map((kind) => auditWords(entry(kind, {}, 'subject'), nobody))
  expect(new Set(told).size).toBe(kinds.length)
  for (const [at, text] of told.entries()) expect(text).not.toBe(kinds[at])
})

test('a kind newer than the page is told by its name', () => {
  expect(words('task.teleported')).toBe('task.teleported')
})

test.each([
  [
    words('access.granted', {
      agentId: 'pay',
      skillId: null,
      subjectType: 'team',
      subjectId: 'ops',
      permission: 'read',
    }),
    'granted Payments to the team “Ops”, to read',
  ],
  [
    words('access.granted', {
      agentId: 'pay',
      skillId: 'look',
      subjectType: 'organization',
      subjectId: 'x',
      permission: 'operate',
    }),
    'granted the skill “look” of Payments to everybody in the organization, to read and send',
  ],
  [
    words('access.revoked', {
      agentId: 'pay',
      skillId: null,
      subjectType: 'membership',
      subjectId: 'member-bob',
      permission: 'read',
    }),
    'revoked Payments from Bob',
  ],
  [
    words('access.revoked', { issuer: 'https://i', subject: 's', sessions: 2 }, 'member-bob'),
    'withdrew the membership of Bob; their sessions ended',
  ],
  [words('team.member_added', { membershipId: 'member-bob' }, 'ops'), 'added Bob to the team “Ops”'],
  [words('task.send.accepted', { agentId: 'gone-agent-id' }), 'sent a message to an agent (gone-age)'],
  [
    words('command.settled', { agentId: 'pay', decision: 'not-arrived', successorId: null, noteDigest: null }, 'id'),
    'settled a send to Payments as not arrived',
  ],
  [
    words('command.reopened', { agentId: 'pay', decision: 'not-arrived', successorId: null, noteDigest: null }, 'id'),
    'reopened a send to Payments that was settled as not arrived',
  ],
  [words('audit.exported', { format: 'jsonl', after: 0, to: 12 }), 'exported the chain, rows 1 to 12'],
  [words('audit.exported', { format: 'csv', records: 3 }), 'exported the audit trail as CSV, 3 records'],
])('%s', (told, expected) => expect(told).toBe(expected))

test('who did it: a person by name, an agent, the system', () => {
  expect(auditActor(entry('session.started'), names)).toContain('Ada')
  expect(auditActor({ ...entry('session.started'), actorUserId: 'unknown-person' }, names)).toContain('Person unknown-')
  expect(auditActor({ ...entry('decision.requested'), actorType: 'agent', actorUserId: null }, names)).toBe('The agent')
  expect(auditActor({ ...entry('decision.expired'), actorType: 'system', actorUserId: null }, names)).toBe('The system')
})
