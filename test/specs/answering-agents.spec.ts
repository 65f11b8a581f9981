/**
 * The agents as a page asks for them: what is kept of each is told at once, and one whose card hangs keeps nothing of the others back.
 * Who sees what of an agent is grants.spec.ts and visibility.spec.ts; here, that what is told first is no way around it.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { skillRoutingUri } from '../../a2a/extensions/skill-routing.ts'
import { Agent } from '../../domain/agent.ts'
import type { EventStream } from '../support/api.ts'
import { startConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startOrganization, type Organization, type Person } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const uri = skillRoutingUri('signalbox.example')
const skills = ['invoices', 'payroll'].map((id) => ({ id, name: id, description: `Does ${id}.`, tags: ['test'] }))
const routing = { streaming: true, pushNotifications: false, extensions: [{ uri }] }
const Kept = z.object({ agents: z.array(Agent) })
const Answered = z.object({ id: z.string(), agent: z.nullable(Agent) })

describe.each(bothDatabases)('agents that answer, on %s', (database) => {
  let house: Organization
  let admin: Person
  let clerk: Person
  let peers: readonly RawPeer[]
  /** In the order of registration: one that hangs and was read before, one that never was, one that routes skills, one that is gone. */
  let ids: readonly string[]

  beforeAll(async () => {
    house = await startOrganization({ database })
    ;[admin, clerk] = await Promise.all([house.person('admin'), house.person('operator')])
    const [ledger, mute, router, gone] = await Promise.all([
      startRawPeer({ card: { name: 'Ledger Agent' } }),
      startRawPeer(),
      startRawPeer({ card: { name: 'Router', skills, capabilities: routing } }),
      startRawPeer(),
    ])
    peers = [ledger, mute, router]
    const [first, third] = [await admin.api.register(ledger.cardUrl), await admin.api.register(router.cardUrl)]
    await admin.api.get('/api/agents')
    ids = [first, third, await admin.api.register(mute.cardUrl), await admin.api.register(gone.cardUrl)]
    for (const peer of [ledger, mute]) peer.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
    await gone.close()
  })
  afterAll(async () => {
    await house.close()
    await Promise.all(peers.map((peer) => peer.close()))
  })

  const asked = ({ api }: Person): Promise<EventStream> => api.stream('/api/answering-agents')
  const calls = (): number => peers.reduce((sum, peer) => sum + peer.callsOf('GetAgentCard'), 0)
  const give = async (agentId: string, skillId: string): Promise<void> => {
    const to = { subjectType: 'membership', subjectId: clerk.viewer.membershipId, permission: 'read' }
    const reply = await admin.api.post('/api/admin/security', { action: 'grant', agentId, skillId, ...to })
    expect(reply.status).toBe(200)
  }

  test('are told by name, address and source before anybody has answered, then each as it answers, who hangs last', async () => {
    const [ledgerId, routerId, muteId, goneId] = ids
    const stream = await asked(admin)
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream')
    const first = await stream.next()
    expect(first.event).toBe('kept')
    const [ledger, mute, router] = peers
    const of = (id: string | undefined, cardUrl: unknown) => ({ id, cardUrl, source: 'managed', operableSkills: null })
    expect(Kept.parse(first.data).agents).toEqual([
      { ...of(ledgerId, ledger?.cardUrl), name: 'Ledger Agent' },
      { ...of(routerId, router?.cardUrl), name: 'Router' },
      of(muteId, mute?.cardUrl),
      of(goneId, expect.any(String)),
    ])
    const soon = [await stream.next(), await stream.next()].map(({ data }) => Answered.parse(data))
    expect(new Set(soon.map(({ id }) => id))).toEqual(new Set([routerId, goneId]))
    expect(soon.find(({ id }) => id === routerId)?.agent).toMatchObject({ name: 'Router', trust: 'unsigned', skills })
    expect(soon.find(({ id }) => id === goneId)?.agent?.error).toMatch(/^Agent Card discovery failed\. Tried: /)
    const late = await stream.rest()
    expect(late.pop()).toEqual({ event: 'end', data: {} })
    const silent = late.map(({ data }) => Answered.parse(data).agent)
    expect(new Set(silent.map((agent) => agent?.id))).toEqual(new Set([ledgerId, muteId]))
    for (const agent of silent) expect(agent?.error).toMatch(/ \(no answer yet\)$/)
    expect(silent.find((agent) => agent?.id === ledgerId)?.name).toBe('Ledger Agent')
  })

  test('are told to nobody who holds nothing of them, and reduced to who holds a skill', async () => {
    const nothing = await asked(clerk)
    expect(await nothing.rest()).toEqual([
      { event: 'kept', data: { agents: [] } },
      { event: 'end', data: {} },
    ])
    const routerId = ids[1] ?? ''
    await give(routerId, 'invoices')
    // It is not known to ignore skills, for it never showed a card: when it does, and ignores them, nothing of it is to be seen.
    const plain = await startRawPeer({ card: { name: 'Plain Agent' } })
    const plainId = await admin.api.register(plain.cardUrl)
    await give(plainId, 'invoices')
    const [kept, ...answers] = await (await asked(clerk)).rest()
    const router = { id: routerId, cardUrl: peers[2]?.cardUrl, source: 'managed', operableSkills: [], name: 'Router' }
    expect(Kept.parse(kept?.data).agents).toEqual([
      router,
      { id: plainId, cardUrl: plain.cardUrl, source: 'managed', operableSkills: [] },
    ])
    const told = new Map(answers.slice(0, -1).map(({ data }) => [Answered.parse(data).id, Answered.parse(data).agent]))
    expect(told.get(plainId)).toBeNull()
    expect(told.get(routerId)?.skills?.map(({ id }) => id)).toEqual(['invoices'])
    expect(JSON.stringify(answers)).not.toContain('payroll')
    expect(JSON.stringify(await (await asked(clerk)).rest())).not.toContain(plainId)
    await plain.close()
  })

  test('are asked while they are told: nobody is for HEAD', async () => {
    const before = calls()
    const { status, headers } = await admin.api.fetch('/api/answering-agents', { method: 'HEAD' })
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(calls()).toBe(before)
  })
})

test('agents that hang, and lines on which nobody asked anything, keep no console from ending', async () => {
  const house = await startConsole({ database: 'postgresql', uiDirectory: null })
  const mute = await startRawPeer()
  mute.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
  await house.api.register(mute.cardUrl)
  const spare = connect(Number(new URL(house.url).port), '127.0.0.1')
  await once(spare, 'connect')
  const stream = await house.api.stream('/api/answering-agents')
  expect((await stream.next()).event).toBe('kept')
  await expect.poll(() => mute.callsOf('GetAgentCard')).toBe(1)
  house.drain()
  // It ends before anybody has stopped waiting for the agent, and does not say that it is whole.
  expect(await stream.rest()).toEqual([])
  await house.close()
  if (!spare.closed) await once(spare, 'close')
  await mute.close()
})
