/** Why somebody sees an agent: every way a grant reaches them, what keeps it from counting, and the words for it. */
import { describe, expect, test } from 'vitest'
import { accessReasons, explainAccess, type AccessReasons } from '../../domain/access-reasons.ts'
import type { Role } from '../../domain/access.ts'
import type { AccessRecord, Grant } from '../../domain/grant.ts'

const agentId = 'agent'
const plain = (text: string): string => text.replaceAll(/[\u2068\u2069]/g, '')

let grants = 0
const grant = (over: Partial<Grant> = {}): Grant => ({
  id: `grant-${++grants}`,
  agentId,
  skillId: null,
  subjectType: 'membership',
  subjectId: 'ada',
  permission: 'read',
  enabled: true,
  ...over,
})

function record(role: Role, given: readonly Grant[]): AccessRecord {
  return {
    organizationId: 'here',
    teams: [
      { id: 'ops', name: 'Ops', enabled: true },
      { id: 'old', name: 'Old', enabled: false },
      { id: 'others', name: 'Others', enabled: true },
    ],
    memberships: [{ id: 'ada', role, name: 'Ada' }],
    teamMembers: ['ops', 'old'].map((teamId) => ({ id: `in-${teamId}`, teamId, membershipId: 'ada' })),
    grants: [...given],
    credentials: [],
  }
}

function reasonsOf(role: Role, given: readonly Grant[], routesSkills: boolean | null = true): AccessReasons {
  const reasons = accessReasons(record(role, given), { membershipId: 'ada', agentId, routesSkills })
  if (!reasons) throw new Error('Ada is somebody.')
  return reasons
}
function told(role: Role, given: readonly Grant[], routesSkills: boolean | null = true) {
  const { verdict, lines } = explainAccess(reasonsOf(role, given, routesSkills), 'Payments')
  return { verdict: plain(verdict), lines: lines.map(({ text, counts }) => [counts, plain(text)]) }
}

describe('why somebody sees an agent', () => {
  test('no grant: it does not exist for them', () => {
    expect(told('operator', [])).toEqual({
      verdict: 'Ada does not see Payments: for them it does not exist.',
      lines: [[false, 'No grant names Ada, a team of theirs or the organization.']],
    })
  })

  test('grants of other agents, people, teams and organizations are not theirs', () => {
    const foreign = [
      grant({ agentId: 'another' }),
      grant({ subjectId: 'bob' }),
      grant({ subjectType: 'team', subjectId: 'others' }),
      grant({ subjectType: 'organization', subjectId: 'elsewhere' }),
    ]
    expect(reasonsOf('operator', foreign).ways).toEqual([])
  })

  test('an administrator needs none, and what they have is told as needless', () => {
    const { verdict, lines } = told('admin', [grant()])
    expect(verdict).toContain('may change who else does')
    expect(lines.map(([counts]) => counts)).toEqual([true, false])
  })

  test.each([
    ['organization', 'here', 'The agent was granted to everybody in the organization, to read and send.'],
    ['membership', 'ada', 'The agent was granted to Ada, to read and send.'],
    ['team', 'ops', 'The agent was granted to the team “Ops”, which Ada is in, to read and send.'],
  ] as const)('a grant to the %s', (subjectType, subjectId, line) => {
    expect(told('operator', [grant({ subjectType, subjectId, permission: 'operate' })])).toEqual({
      verdict: 'Ada sees Payments and all its tasks, and may send to it.',
      lines: [[true, line]],
    })
  })

  test('a viewer reads, whatever they were granted', () => {
    const { verdict, lines } = told('viewer', [grant({ permission: 'operate' })])
    expect(verdict).toBe('Ada sees Payments and all its tasks, and may send nothing.')
    expect(lines[0]?.[1]).toContain('As a viewer they read only.')
  })

  test('a disabled team and a revoked grant give nothing, and are told after what does', () => {
    const given = [
      grant({ subjectType: 'team', subjectId: 'old', permission: 'operate' }),
      grant({ permission: 'operate', enabled: false }),
      grant(),
    ]
    const reasons = reasonsOf('operator', given)
    expect(reasons.whole).toBe('read')
    expect(reasons.ways.map(({ obstacle }) => obstacle)).toEqual([null, 'team', 'revoked'])
    expect(told('operator', given.slice(0, 2)).verdict).toContain('does not see')
  })

  test('a revoked grant of a disabled team is told as revoked', () => {
    const [way] = reasonsOf('operator', [grant({ subjectType: 'team', subjectId: 'old', enabled: false })]).ways
    expect(way?.obstacle).toBe('revoked')
  })

  test('skills: only those, and sending only where it was granted', () => {
    const given = [grant({ skillId: 'pay', permission: 'operate' }), grant({ skillId: 'look' })]
    expect(told('operator', given).verdict).toBe(
      'Ada sees Payments with the skills “pay”, “look” only, and may send only to the skill “pay”.',
    )
    expect(told('viewer', given).verdict).toContain('may send nothing')
  })

  test('a skill beside the whole is told only where it gives more', () => {
    const skills = [grant({ skillId: 'pay', permission: 'operate' }), grant({ skillId: 'look' })]
    expect([...reasonsOf('operator', [grant(), ...skills]).skills]).toEqual([['pay', 'operate']])
    expect(reasonsOf('operator', [grant({ permission: 'operate' }), ...skills]).skills.size).toBe(0)
  })

  test('a grant of a skill gives nothing where the agent is known to ignore skills', () => {
    const given = [grant({ skillId: 'pay' })]
    expect(reasonsOf('operator', given, false).ways[0]?.obstacle).toBe('unrouted')
    expect(told('operator', given, false).verdict).toContain('does not see')
    expect(reasonsOf('operator', given, null).skills.get('pay')).toBe('read')
  })

  test('somebody who may not sign in is nobody', () => {
    expect(accessReasons(record('operator', []), { membershipId: 'eve', agentId, routesSkills: true })).toBeNull()
  })
})
