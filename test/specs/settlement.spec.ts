/**
 * Settling a send: a person decides what a failed or uncertain one means. It leaves what needs a person, for everybody; what the
 * specification says of the command stays. Who may ask at all is visibility.spec.ts.
 */
import { createHash } from 'node:crypto'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { concerns } from '../../actors/loop/changes.ts'
import { ActorAnswer, ActorPage } from '../../domain/actor.ts'
import { AuditRecord } from '../../domain/audit.ts'
import type { Command } from '../../domain/command.ts'
import { QueuesAnswer } from '../../domain/queue.ts'
import { ReopenedAnswer, settlementRefusals, SettlementAnswer } from '../../domain/settlement.ts'
import { SentWordsAnswer, UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { openDatabase } from '../../persistence/database.ts'
import { commandIn, type Reply } from '../support/api.ts'
import { crowd } from '../support/crowd.ts'
import { startConsole } from '../support/console.ts'
import { eitherDatabase, freshDatabase } from '../support/databases.ts'
import { startOrganization, type Organization, type Person } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const Trail = z.object({ entries: z.array(AuditRecord) })
const OfTask = z.object({ commands: z.array(z.object({ id: z.string() })) })
const sentenceOf = ({ status, body }: Reply): [number, string] => [
  status,
  z.object({ error: z.object({ message: z.string() }) }).parse(body).error.message,
]

/** At the door; its statements are tried on both (test/persistence/settlements.test.ts). */
describe.each(eitherDatabase)('settling a send on %s', (database) => {
  let house: Organization
  let admin: Person
  let grace: Person
  let peer: RawPeer
  let other: RawPeer
  let agentId: string
  let otherId: string

  beforeAll(async () => {
    ;[house, peer, other] = await Promise.all([
      startOrganization({ database, uiDirectory: null, system: { limits: crowd } }),
      startRawPeer({ card: { name: 'Ledger Agent' } }),
      startRawPeer(),
    ])
    admin = await house.person('admin', 'Ada')
    grace = await house.person('operator', 'Grace')
    agentId = await admin.api.register(peer.cardUrl)
    otherId = await admin.api.register(other.cardUrl)
    await grant(grace, 'operate')
  })
  afterAll(async () => {
    await house.close()
    await Promise.all([peer.close(), other.close()])
  })

  const grant = async ({ viewer }: Person, permission: 'read' | 'operate') => {
    const to = { agentId, skillId: null, subjectType: 'membership', subjectId: viewer.membershipId, permission }
    expect((await admin.api.post('/api/admin/security', { action: 'grant', ...to })).status).toBe(200)
  }
  const send = async (to: string, body: object): Promise<Command> => {
    const key = { 'idempotency-key': crypto.randomUUID() }
    return house.finished(commandIn(await admin.api.post(`/api/agents/${to}/commands`, body, key)).id)
  }
  const lost = async (body: object = { text: 'pay the invoice' }): Promise<Command> => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const command = await send(agentId, body)
    expect(command.status).toBe('uncertain')
    return command
  }
  const settle = ({ api }: Person, { id }: { readonly id: string }, body: object): Promise<Reply> =>
    api.post(`/api/sends/${id}/settle`, body)
  const settled = async (person: Person, command: Command, body: object) => {
    const reply = await settle(person, command, body)
    expect([reply.status, reply.text]).toEqual([200, expect.any(String)])
    return SettlementAnswer.parse(reply.body).settlement
  }
  const sendOf = async ({ api }: Person, id: string) =>
    SentWordsAnswer.parse((await api.get(`/api/sends/${id}`)).body).send
  const actorOf = async ({ api }: Person, id: string) =>
    ActorAnswer.parse((await api.get(`/api/actors/command/${id}`)).body)
  /** What needs a person: by the strip, by the Actors page, by System's count. */
  const needing = async (id: string) => {
    const { sends } = UnsettledAnswer.parse((await grace.api.get('/api/sends/unsettled')).body)
    const { actors } = ActorPage.parse((await grace.api.get('/api/actors?attention=true&limit=100')).body)
    const { kinds } = QueuesAnswer.parse((await admin.api.get('/api/queues')).body)
    return {
      strip: sends.some((each) => each.id === id),
      page: actors.some((each) => each.id === id),
      count: kinds.find(({ kind }) => kind === 'command')?.attention ?? 0,
    }
  }

  test('takes it out of what needs a person, for everybody, and changes nothing of the command', async () => {
    const command = await lost()
    const before = await needing(command.id)
    expect(before).toMatchObject({ strip: true, page: true })
    const record = (await admin.api.get(`/api/commands/${command.id}`)).body
    const settlement = await settled(grace, command, { decision: 'arrived', note: '  Asked at the desk.  ' })
    expect(settlement).toEqual({
      decision: 'arrived',
      note: 'Asked at the desk.',
      by: { id: grace.viewer.userId, name: 'Grace' },
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      successorId: null,
    })
    expect(await needing(command.id)).toEqual({ strip: false, page: false, count: before.count - 1 })
    expect(commandIn(await admin.api.get(`/api/commands/${command.id}`))).toMatchObject({
      status: 'uncertain',
      error: command.error,
      updatedAt: command.updatedAt,
    })
    expect(Object.keys(z.object({ command: z.looseObject({}) }).parse(record).command)).not.toContain('settlement')
    expect(await sendOf(admin, command.id)).toMatchObject({ settlement, replaces: null, operable: true })
    const { actor, settlement: told } = await actorOf(admin, command.id)
    expect(actor).toMatchObject({ value: 'uncertain', attention: false })
    expect(told).toEqual(settlement)
  })

  test('is recorded with what was decided, and not in the words of the note', async () => {
    const command = await lost()
    await settled(grace, command, { decision: 'no-matter', note: 'The customer left.' })
    const { entries } = Trail.parse((await admin.api.get('/api/audit?group=commands')).body)
    const rows = entries.filter(({ kind, subjectId }) => kind === 'command.settled' && subjectId === command.id)
    expect(rows).toEqual([expect.objectContaining({ actorType: 'user', actorUserId: grace.viewer.userId })])
    expect(rows[0]?.data).toEqual({
      agentId,
      decision: 'no-matter',
      successorId: null,
      noteDigest: createHash('sha256').update('The customer left.').digest('hex'),
    })
  })

  test('the same again by anybody is what stands; anything else is refused, and leaves no trace', async () => {
    const command = await lost()
    const first = await settled(grace, command, { decision: 'not-arrived', note: 'Not in their log.' })
    expect(await settled(admin, command, { decision: 'not-arrived' })).toEqual(first)
    expect(await settled(admin, command, { decision: 'not-arrived', note: 'Not in their log.' })).toEqual(first)
    const taken = [409, 'This send is already settled.']
    expect(sentenceOf(await settle(admin, command, { decision: 'arrived' }))).toEqual(taken)
    // Another note would be lost without a word.
    expect(sentenceOf(await settle(admin, command, { decision: 'not-arrived', note: 'Mine.' }))).toEqual(taken)
    const { entries } = Trail.parse((await admin.api.get('/api/audit?group=commands')).body)
    expect(
      entries.filter(({ kind, subjectId }) => kind === 'command.settled' && subjectId === command.id),
    ).toHaveLength(1)
  })

  const reopen = ({ api }: Person, { id }: { readonly id: string }, body: object = {}): Promise<Reply> =>
    api.post(`/api/sends/${id}/reopen`, body)

  test('a decision is taken back by whoever may settle: it needs a person again, and the trail keeps both', async () => {
    const command = await lost()
    const before = await needing(command.id)
    const settlement = await settled(grace, command, { decision: 'not-arrived', note: 'Not in their log.' })
    const woken = Promise.withResolvers<void>()
    const silence = house.system.changes.subscribe(({ subjects }) => concerns(subjects, command.id) && woken.resolve())
    const reply = await reopen(admin, command, { note: ' It was in the other log. ' })
    const { reopened, reopening } = ReopenedAnswer.parse(reply.body)
    expect([reply.status, reopened]).toEqual([200, settlement])
    expect(reopening).toMatchObject({
      settlement,
      note: 'It was in the other log.',
      by: { id: admin.viewer.userId, name: 'Ada' },
    })
    await woken.promise
    silence()
    expect(await needing(command.id)).toEqual(before)
    expect(await sendOf(admin, command.id)).toMatchObject({ settlement: null, status: 'uncertain' })
    expect((await actorOf(admin, command.id)).actor).toMatchObject({ attention: true })
    expect(commandIn(await admin.api.get(`/api/commands/${command.id}`)).updatedAt).toBe(command.updatedAt)
    const { entries } = Trail.parse((await admin.api.get('/api/audit?group=commands')).body)
    const trail = entries.filter(({ subjectId }) => subjectId === command.id).map(({ kind, data }) => ({ kind, data }))
    const noteDigest = createHash('sha256').update('It was in the other log.').digest('hex')
    const decided = { agentId, decision: 'not-arrived', successorId: null }
    expect(trail.slice(0, 2)).toEqual([
      { kind: 'command.reopened', data: { ...decided, noteDigest } },
      { kind: 'command.settled', data: { ...decided, noteDigest: expect.any(String) } },
    ])
    // Whoever decides next can read why the first decision does not stand.
    const again = await settled(grace, command, { decision: 'arrived' })
    expect(await sendOf(grace, command.id)).toMatchObject({ settlement: again, reopenings: [reopening] })
    expect((await reopen(grace, command)).status).toBe(200)
    const { reopenings } = await sendOf(admin, command.id)
    expect(reopenings.map((each) => [each.settlement.decision, each.note])).toEqual([
      ['arrived', null],
      ['not-arrived', 'It was in the other log.'],
    ])
  })

  test('only what is settled can be reopened, and only by who may act on it', async () => {
    const open = [409, 'This send is not settled.']
    const command = await lost()
    expect(sentenceOf(await reopen(admin, command))).toEqual(open)
    await settled(grace, command, { decision: 'no-matter' })
    for (const body of [{ note: 'x'.repeat(501) }, { note: '\0' }, { decision: 'arrived' }])
      expect([body, (await reopen(admin, command, body)).status]).toEqual([body, 400])
    for (const id of [crypto.randomUUID(), 'nothing'])
      expect(sentenceOf(await reopen(admin, { id }))).toEqual([404, 'Command not found.'])
    const reader = await house.person('operator')
    expect((await reopen(reader, command)).status).toBe(404)
    await grant(reader, 'read')
    expect((await reopen(reader, command)).status).toBe(403)
    expect((await reopen(await house.person('viewer'), command)).status).toBe(403)
    const replies = await Promise.all([reopen(grace, command), reopen(admin, command)])
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 409]))
  })

  test('of two people at once one decides', async () => {
    const command = await lost()
    const replies = await Promise.all([
      settle(grace, command, { decision: 'arrived' }),
      settle(admin, command, { decision: 'not-arrived' }),
    ])
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 409]))
    const winner = replies.find(({ status }) => status === 200)
    expect((await sendOf(admin, command.id)).settlement).toEqual(SettlementAnswer.parse(winner?.body).settlement)
  })

  test('a later send takes its place, and each names the other', async () => {
    const before = await send(agentId, { text: 'hello' })
    const command = await lost()
    const successor = await send(agentId, { text: 'pay the invoice' })
    const elsewhere = await send(otherId, { text: 'pay the invoice' })
    const asked = await send(agentId, { text: 'ask' })
    const { localId = '', taskId = '' } = asked.result ?? {}
    await house.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const cancel = await send(agentId, { action: 'cancelTask', taskId })
    const tenant = await send(agentId, { text: 'pay the invoice', tenant: 'south' })
    const skill = await send(agentId, { text: 'pay the invoice' })
    await house.db.pool.query(sql.unsafe`update command set skill_id = 'ledger' where id = ${skill.id}`)
    // Long before, by any replica's clock.
    await house.db.pool.query(
      sql.unsafe`update command set created_at = created_at - interval '2 minutes' where id = ${before.id}`,
    )
    const wrong = [400, settlementRefusals.successor]
    const others = [before, command, elsewhere, cancel, tenant, skill, { id: crypto.randomUUID() }]
    for (const { id } of others)
      expect(sentenceOf(await settle(admin, command, { decision: 'sent-again', successorId: id }))).toEqual(wrong)
    const settlement = await settled(grace, command, {
      decision: 'sent-again',
      successorId: successor.id.toUpperCase(),
    })
    expect(settlement.successorId).toBe(successor.id)
    expect(await sendOf(grace, successor.id)).toMatchObject({ settlement: null, replaces: command.id })
    expect(await actorOf(grace, successor.id)).toMatchObject({ settlement: null, replaces: command.id })
    expect((await actorOf(grace, command.id)).settlement).toEqual(settlement)
  })

  test('a replica may have dated it a little earlier; two never take each other’s place', async () => {
    const successor = await lost()
    const command = await lost()
    expect((await settled(grace, command, { decision: 'sent-again', successorId: successor.id })).successorId).toBe(
      successor.id,
    )
    expect(sentenceOf(await settle(grace, successor, { decision: 'sent-again', successorId: command.id }))).toEqual([
      400,
      settlementRefusals.successor,
    ])
  })

  test('nor where two people say so of each other at once', async () => {
    for (let round = 0; round < 8; round += 1) {
      const [one, two] = [await lost(), await lost()]
      const replies = await Promise.all([
        settle(grace, one, { decision: 'sent-again', successorId: two.id }),
        settle(admin, two, { decision: 'sent-again', successorId: one.id }),
      ])
      expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400])
    }
  })

  test('only what failed or is uncertain, only by who may act on it, and only in a decision that there is', async () => {
    const done = await send(agentId, { text: 'hello' })
    const early = [409, 'Only a send that failed or is uncertain can be settled.']
    expect(sentenceOf(await settle(admin, done, { decision: 'arrived' }))).toEqual(early)
    const command = await lost()
    for (const body of [
      {},
      { decision: 'maybe' },
      { decision: 'sent-again' },
      { decision: 'arrived', successorId: done.id },
      { decision: 'sent-again', successorId: 'x' },
      { decision: 'arrived', note: 'x'.repeat(501) },
      { decision: 'arrived', note: '\0' },
      { decision: 'arrived', by: 'me' },
    ])
      expect([body, (await settle(admin, command, body)).status]).toEqual([body, 400])
    expect((await settle(admin, command, { decision: 'arrived', note: ` ${'x'.repeat(500)} ` })).status).toBe(200)
    for (const id of [crypto.randomUUID(), 'nothing'])
      expect(sentenceOf(await settle(admin, { id }, { decision: 'arrived' }))).toEqual([404, 'Command not found.'])
    const reader = await house.person('operator')
    const open = await lost()
    expect((await settle(reader, open, { decision: 'arrived' })).status).toBe(404)
    await grant(reader, 'read')
    expect((await settle(reader, open, { decision: 'arrived' })).status).toBe(403)
    expect((await sendOf(reader, open.id)).operable).toBe(false)
    const viewer = await house.person('viewer')
    expect((await settle(viewer, open, { decision: 'arrived' })).status).toBe(403)
  })

  test('leaves a task’s troubles, in the task’s own trail, and wakes who looks', async () => {
    const asked = await send(agentId, { text: 'ask' })
    const { localId = '', taskId = '' } = asked.result ?? {}
    await house.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const command = await lost({ text: 'blue', taskId })
    const troubles = async () =>
      OfTask.parse((await grace.api.get(`/api/tasks/${localId}/commands`)).body).commands.map(({ id }) => id)
    expect(await troubles()).toEqual([command.id])
    const woken = Promise.withResolvers<void>()
    const silence = house.system.changes.subscribe(({ subjects }) => concerns(subjects, command.id) && woken.resolve())
    await settled(grace, command, { decision: 'no-matter' })
    await woken.promise
    silence()
    expect(await troubles()).toEqual([])
    const { entries } = Trail.parse((await grace.api.get(`/api/audit?taskId=${localId}`)).body)
    expect(entries.map(({ kind }) => kind)).toContain('command.settled')
  })
})

test('what a person settled by one replica is heard by another, and shown by it', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
  const database = await openDatabase(fresh.profile)
  const one = await startConsole({ database: fresh.db, uiDirectory: null })
  const other = await startConsole({ database, uiDirectory: null, system: { works: false } })
  const peer = await startRawPeer()
  peer.script.fault('SendMessage', { fault: 'reset', performed: false })
  const agent = await one.system.agents.register(one.viewer, peer.cardUrl)
  const { id } = await one.finished((await one.send(agent.id, { text: 'pay the invoice' })).id)
  const list = async () => UnsettledAnswer.parse((await other.api.get('/api/sends/unsettled')).body).sends
  expect(await list()).toHaveLength(1)
  const heard = Promise.withResolvers<void>()
  const silence = other.system.changes.subscribe(({ subjects }) => concerns(subjects, id) && heard.resolve())
  expect((await one.api.post(`/api/sends/${id}/settle`, { decision: 'arrived' })).status).toBe(200)
  await heard.promise
  silence()
  expect(await list()).toEqual([])
  await other.close()
  await one.close()
  await database.close()
  await fresh.close()
  await peer.close()
})
