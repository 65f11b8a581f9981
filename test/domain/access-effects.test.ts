/** What a change of access changes for whom, in words, before it is made. */
import { expect, test } from 'vitest'
import type { AccessChange, AccessRecord, Grant } from '../../domain/grant.ts'
import { changedRecord, effectsOf, effectWords } from '../../domain/access-effects.ts'

const grant = (id: string, over: Partial<Grant>): Grant => ({
  id,
  agentId: 'pay',
  skillId: null,
  subjectType: 'team',
  subjectId: 'ops',
  permission: 'read',
  enabled: true,
  ...over,
})
const record: AccessRecord = {
  organizationId: 'here',
  teams: [{ id: 'ops', name: 'Ops', enabled: true }],
  memberships: [
    { id: 'root', role: 'admin', name: 'Root' },
    { id: 'ada', role: 'operator', name: 'Ada' },
    { id: 'bob', role: 'viewer', name: 'Bob' },
  ],
  teamMembers: ['root', 'ada', 'bob'].map((membershipId) => ({
    id: `ops-${membershipId}`,
    teamId: 'ops',
    membershipId,
  })),
  grants: [
    grant('team', { permission: 'operate' }),
    grant('ada-reads', { subjectType: 'membership', subjectId: 'ada' }),
    grant('ships', { agentId: 'ship', skillId: 'track' }),
  ],
  credentials: [],
}
const told = (change: AccessChange, of = record): string[] =>
  effectWords(
    effectsOf(of, change, () => true),
    (id) => ({ pay: 'Payments', ship: 'Shipping' })[id] ?? id,
  ).map((text) => text.replaceAll(/[\u2068\u2069]/g, ''))

test('revoking tells those who lose it from those who hold less, and leaves out who loses nothing', () => {
  expect(told({ action: 'revokeGrant', grantId: 'team' })).toEqual([
    'Ada will still see Payments, and may no longer send to it.',
    'Bob will no longer see Payments.',
  ])
  expect(told({ action: 'revokeGrant', grantId: 'ada-reads' })).toEqual([])
})

test('disabling a team, and leaving it, takes what it was given of every agent', () => {
  const lost = ['Ada and Bob will no longer see Shipping.', 'Bob will no longer see Payments.']
  expect(told({ action: 'disableTeam', teamId: 'ops' })).toEqual(expect.arrayContaining(lost))
  expect(told({ action: 'removeTeamMember', teamId: 'ops', membershipId: 'bob' })).toEqual([
    'Bob will no longer see Payments.',
    'Bob will no longer see Shipping.',
  ])
})

test('granting: the whole, one skill, more than before, and to a role that reads only', () => {
  const bare = { ...record, grants: [] }
  const given = { action: 'grant', agentId: 'pay', subjectType: 'organization', subjectId: 'here' } as const
  expect(told({ ...given, skillId: null, permission: 'operate' }, bare)).toEqual([
    'Ada will see Payments and all its tasks, and may send to it.',
    'Bob will see Payments and all its tasks, and may not send to it.',
  ])
  expect(told({ ...given, skillId: 'look', permission: 'read' }, bare)).toEqual([
    'Ada and Bob will see Payments with the skill “look” (read) only.',
  ])
  const reads = { ...record, grants: [grant('all', { subjectType: 'organization', subjectId: 'here' })] }
  expect(told({ ...given, skillId: null, permission: 'operate' }, reads)).toEqual([
    'Ada may send to Payments, which they see already.',
  ])
})

test('a member who comes gains what the team holds', () => {
  const without = changedRecord(record, { action: 'removeTeamMember', teamId: 'ops', membershipId: 'bob' })
  const joining = { action: 'addTeamMember', teamId: 'ops', membershipId: 'bob' } as const
  expect(told(joining, without)).toHaveLength(2)
  expect(told({ action: 'createTeam', name: 'New' })).toEqual([])
})

test('many people are counted, not listed', () => {
  const crowd = Array.from({ length: 9 }, (_, at) => ({ id: `p${at}`, role: 'operator' as const, name: `P${at}` }))
  const change = { action: 'grant', agentId: 'pay', skillId: null, permission: 'read' } as const
  const [sentence] = told(
    { ...change, subjectType: 'organization', subjectId: 'here' },
    { ...record, memberships: crowd, grants: [] },
  )
  expect(sentence).toMatch(/^P0, P1, P2, P3, P4 and 4 more will see Payments/)
})
