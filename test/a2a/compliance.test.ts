/** Every check of the compliance report fires on a card made to break it, and the score follows. */
import { describe, expect, it } from 'vitest'
import { complianceReport } from '../../a2a/compliance.ts'
import { cardChecks } from '../../a2a/compliance-checks.ts'
import { checksV03 } from '../../a2a/compliance-v0_3.ts'
import { checksV1 } from '../../a2a/compliance-v1.ts'
import { ComplianceReport } from '../../domain/agent.ts'
import { card03, card10 } from './cards.ts'
import { header } from './signing.ts'

const ids = (json: unknown) => complianceReport(json).issues.map((issue) => `${issue.id} ${issue.path}`)
const without = (card: object, name: string) => Object.fromEntries(Object.entries(card).filter(([key]) => key !== name))
const skill = card10.skills[0]
const face = card10.supportedInterfaces[0]

it('finds nothing in a card without fault', () => {
  for (const card of [card10, card03]) {
    const report = complianceReport(card)
    expect(report).toMatchObject({ score: 100, issues: [], counts: { error: 0, warning: 0, info: 0 } })
    expect(report.passed).toContain('/name')
    expect(new Set(report.passed).size).toBe(report.passed.length)
    expect(ComplianceReport.safeParse(report).success).toBe(true)
  }
  expect(complianceReport(card10).version).toBe('1.0')
  expect(complianceReport(card03).version).toBe('0.3')
})

/** What is wrong with a card, and what the report says about it: the whole of it, so a check that fires twice is seen. */
const faults10: [change: object, issues: string[]][] = [
  [without(card10, 'name'), ['card.name /name']],
  [{ ...card10, description: ' ' }, ['card.description /description']],
  [{ ...card10, version: 1 }, ['card.version /version']],
  [{ ...card10, documentationUrl: '/docs' }, ['card.documentationUrl /documentationUrl']],
  [{ ...card10, iconUrl: 'data:,' }, ['card.iconUrl /iconUrl']],
  [{ ...card10, iconUrl: '' }, ['card.emptyDefaults /iconUrl']],
  [{ ...card10, default_input_modes: [] }, ['card.fieldNames /default_input_modes']],
  [{ ...card10, provider: { organization: 'O' } }, ['provider.complete /provider/url']],
  [without(card10, 'capabilities'), ['capabilities.object /capabilities']],
  [{ ...card10, capabilities: { streaming: 'yes' } }, ['capabilities.flags /capabilities/streaming']],
  [{ ...card10, capabilities: { extensions: [{}] } }, ['extension.uri /capabilities/extensions/0/uri']],
  [{ ...card10, capabilities: { extensions: [{ uri: 'x' }] } }, ['extension.uriForm /capabilities/extensions/0/uri']],
  [
    { ...card10, capabilities: { extensions: [{ uri: 'urn:x' }, { uri: 'urn:x' }] } },
    ['extension.unique /capabilities/extensions/1/uri'],
  ],
  [without(card10, 'defaultInputModes'), ['modes.list /defaultInputModes']],
  [{ ...card10, defaultOutputModes: [] }, ['modes.some /defaultOutputModes']],
  [{ ...card10, defaultOutputModes: ['text'] }, ['modes.mediaType /defaultOutputModes/0']],
  [without(card10, 'skills'), ['skills.list /skills']],
  [{ ...card10, skills: [] }, ['skills.some /skills']],
  [{ ...card10, skills: ['s'] }, ['skills.objects /skills/0']],
  [{ ...card10, skills: [{ ...skill, id: '' }] }, ['skill.id /skills/0/id']],
  [{ ...card10, skills: [{ ...skill, name: null }] }, ['skill.name /skills/0/name']],
  [{ ...card10, skills: [{ ...skill, description: '' }] }, ['skill.description /skills/0/description']],
  [{ ...card10, skills: [skill, skill] }, ['skill.idUnique /skills/1/id']],
  [{ ...card10, skills: [{ ...skill, tags: [1] }] }, ['skill.tags /skills/0/tags']],
  [{ ...card10, skills: [{ ...skill, examples: [] }] }, ['skill.examples /skills/0/examples']],
  [
    { ...card10, signatures: [{ protected: header({ alg: 'ES256', kid: 'k' }) }] },
    ['signature.fields /signatures/0/signature'],
  ],
  [
    { ...card10, signatures: [{ protected: header({ alg: 'ES256' }), signature: 's' }] },
    ['signature.header /signatures/0/protected'],
  ],
  [
    { ...card10, signatures: [{ protected: header({ alg: 'HS256', kid: 'k' }), signature: 's' }] },
    ['signature.algorithm /signatures/0/protected'],
  ],
  [{ ...card10, supportedInterfaces: [] }, ['interfaces.some /supportedInterfaces']],
  [{ ...card10, supportedInterfaces: [{ ...face, url: '/a2a' }] }, ['interface.url /supportedInterfaces/0/url']],
  [{ ...card10, supportedInterfaces: [{ ...face, url: 'http://h/' }] }, ['interface.https /supportedInterfaces/0/url']],
  [{ ...card10, supportedInterfaces: [{ ...face, url: 'http://127.0.0.1:1/' }] }, []],
  [
    { ...card10, supportedInterfaces: [{ ...face, protocolBinding: '' }] },
    ['interface.binding /supportedInterfaces/0/protocolBinding'],
  ],
  [
    { ...card10, supportedInterfaces: [{ ...face, protocolBinding: 'X' }] },
    ['interface.bindingKnown /supportedInterfaces/0/protocolBinding'],
  ],
  [
    { ...card10, supportedInterfaces: [without(face ?? {}, 'protocolVersion')] },
    ['interface.version /supportedInterfaces/0/protocolVersion'],
  ],
  [
    { ...card10, supportedInterfaces: [{ ...face, protocolVersion: '1.0.0' }] },
    ['interface.versionForm /supportedInterfaces/0/protocolVersion'],
  ],
  [{ ...card10, supportedInterfaces: [face, face] }, ['interface.unique /supportedInterfaces/1']],
  [
    { ...card10, supportedInterfaces: [{ ...face, protocolBinding: 'GRPC', url: 'h:443' }] },
    ['interface.reachable /supportedInterfaces'],
  ],
  [{ ...card10, url: 'https://h' }, ['card.legacyFields /url']],
  [{ ...without(card10, 'securityRequirements'), security: [] }, ['card.legacySecurity /security']],
  [
    { ...card10, securitySchemes: { ...card10.securitySchemes, http: { type: 'http', scheme: 'x' } } },
    ['security.schemeForm /securitySchemes/http'],
  ],
  [
    { ...card10, securitySchemes: { ...card10.securitySchemes, http: {} } },
    ['security.schemeForm /securitySchemes/http'],
  ],
  [
    {
      ...card10,
      securitySchemes: { ...card10.securitySchemes, 'a/b': { scheme: { $case: 'mtlsSecurityScheme', value: {} } } },
    },
    ['security.leakedCase /securitySchemes/a~1b'],
  ],
  [
    { ...card10, securitySchemes: { ...card10.securitySchemes, key: { apiKeySecurityScheme: { name: 'k' } } } },
    ['security.schemeFields /securitySchemes/key/apiKeySecurityScheme/location'],
  ],
  [
    { ...card10, securityRequirements: [{ schemes: { nobody: { list: [] } } }] },
    ['security.requirements /securityRequirements/0/schemes/nobody'],
  ],
]

const faults03: [change: object, issues: string[]][] = [
  [{ ...card03, url: 'h' }, ['card.url /url', 'interface.main /additionalInterfaces']],
  [{ ...without(card03, 'additionalInterfaces'), url: 'http://h' }, ['card.https /url']],
  [without(card03, 'protocolVersion'), ['card.protocolVersion /protocolVersion']],
  [
    { ...without(card03, 'additionalInterfaces'), preferredTransport: 'REST' },
    ['card.preferredTransport /preferredTransport'],
  ],
  [
    without(without(card03, 'additionalInterfaces'), 'preferredTransport'),
    ['card.preferredTransportSaid /preferredTransport'],
  ],
  [
    { ...card03, additionalInterfaces: [...card03.additionalInterfaces, { url: 'https://x' }] },
    ['interface.fields /additionalInterfaces/2/transport'],
  ],
  [
    { ...card03, additionalInterfaces: [{ url: 'https://x', transport: 'JSONRPC' }] },
    ['interface.main /additionalInterfaces'],
  ],
  [{ ...card03, preferredTransport: 'JSONRPC' }, ['interface.conflict /preferredTransport']],
  [
    { ...card03, supportsAuthenticatedExtendedCard: 'no' },
    ['card.extendedCardFlag /supportsAuthenticatedExtendedCard'],
  ],
  [
    { ...card03, securitySchemes: { ...card03.securitySchemes, http: { type: 'basic' } } },
    ['security.schemeType /securitySchemes/http/type'],
  ],
  [
    { ...card03, securitySchemes: { ...card03.securitySchemes, key: { type: 'apiKey', name: 'k' } } },
    ['security.schemeFields /securitySchemes/key/in'],
  ],
  [{ ...card03, security: [{ nobody: [] }] }, ['security.requirements /security/0/nobody']],
  [{ ...without(card03, 'security'), securityRequirements: [] }, ['security.newForm /securityRequirements']],
]

describe('names each fault once, with its place', () => {
  it.each(faults10.map(([card, issues]) => [issues.join(' + ') || 'loopback', card, issues] as const))(
    '1.0 %s',
    (_, card, issues) => {
      expect(ids(card)).toEqual(issues)
    },
  )
  it.each(faults03.map(([card, issues]) => [issues.join(' + '), card, issues] as const))(
    '0.3 %s',
    (_, card, issues) => {
      expect(ids(card)).toEqual(issues)
    },
  )
})

it('has a test for every check, and ids that are sections of one vocabulary', () => {
  const tested = new Set([...faults10, ...faults03].flatMap(([, issues]) => issues.map((issue) => issue.split(' ')[0])))
  const all = [...cardChecks, ...checksV1, ...checksV03]
  expect(all.length).toBeGreaterThanOrEqual(25)
  expect(all.map((check) => check.id).filter((id) => !tested.has(id))).toEqual([])
  expect(all.filter((check) => check.spec === undefined && check.specV03 === undefined)).toEqual([])
})

it('scores by severity and tells the worst first', () => {
  const report = complianceReport({ ...card10, name: '', iconUrl: '', skills: [] })
  expect(report.counts).toEqual({ error: 1, warning: 1, info: 1 })
  expect(report.score).toBe(100 - 18 - 6 - 2)
  expect(report.issues.map((issue) => issue.severity)).toEqual(['error', 'warning', 'info'])
  expect(report.passed).not.toContain('/name')
})

it('judges what is no card', () => {
  expect(complianceReport('x')).toMatchObject({
    version: 'unknown',
    issues: [{ id: 'card.object', path: '' }],
    passed: [],
  })
  expect(complianceReport({})).toMatchObject({ version: 'unknown', score: 0 })
})

it('stays bounded for a card that is all faults', () => {
  const skills = Array.from({ length: 5_000 }, () => ({}))
  const report = complianceReport({
    ['x_'.repeat(100_000)]: 1,
    ...card10,
    skills,
    securitySchemes: { ['s'.repeat(1_000_000)]: 1 },
  })
  expect(report.issues.length).toBeLessThanOrEqual(200)
  expect(JSON.stringify(report).length).toBeLessThan(200_000)
})
