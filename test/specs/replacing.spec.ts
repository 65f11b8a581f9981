/**
 * Sending again in the place of a send that failed or is uncertain: one commit accepts the new one and settles the other, so that
 * however many people send it again at once, one does. What settling means is settlement.spec.ts.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { skillRoutingUri } from '../../a2a/extensions/skill-routing.ts'
import { concerns } from '../../actors/loop/changes.ts'
import { AuditRecord } from '../../domain/audit.ts'
import type { Command } from '../../domain/command.ts'
import { settlementRefusals } from '../../domain/settlement.ts'
import { SentWordsAnswer, UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { commandIn, type Reply } from '../support/api.ts'
import { crowd } from '../support/crowd.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startOrganization, type Organization, type Person } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const Trail = z.object({ entries: z.array(AuditRecord) })
const sentenceOf = ({ status, body }: Reply): [number, string] => [
  status,
  z.object({ error: z.object({ message: z.string() }) }).parse(body).error.message,
]
const key = () => crypto.randomUUID()

/** At the door; its statements are tried on both (test/persistence/settlements.test.ts). */
describe.each(eitherDatabase)('sending in the place of another on %s', (database) => {
  let house: Organization
  let admin: Person
  let grace: Person
  let peer: RawPeer
  let agentId: string

  beforeAll(async () => {
    ;[house, peer] = await Promise.all([
      startOrganization({ database, uiDirectory: null, system: { limits: crowd } }),
      startRawPeer(),
    ])
    admin = await house.person('admin', 'Ada')
    grace = await house.person('operator', 'Grace')
    agentId = await admin.api.register(peer.cardUrl)
    await grant(grace, 'operate')
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  const grant = async (
    { viewer }: Person,
    permission: 'read' | 'operate',
    of: { readonly agentId: string; readonly skillId: string | null } = { agentId, skillId: null },
  ) => {
    const to = { ...of, subjectType: 'membership', subjectId: viewer.membershipId, permission }
    expect((await admin.api.post('/api/admin/security', { action: 'grant', ...to })).status).toBe(200)
  }
  const post = ({ api }: Person, body: object, idempotencyKey = key(), to = agentId): Promise<Reply> =>
    api.post(`/api/agents/${to}/commands`, body, { 'idempotency-key': idempotencyKey })
  const lost = async (body: object = { text: 'pay the invoice' }): Promise<Command> => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const command = await house.finished(commandIn(await post(admin, body)).id)
    expect(command.status).toBe('uncertain')
    return command
  }
  const sendOf = async ({ api }: Person, id: string) =>
    SentWordsAnswer.parse((await api.get(`/api/sends/${id}`)).body).send
  const isOpen = async (id: string) =>
    UnsettledAnswer.parse((await grace.api.get('/api/sends/unsettled')).body).sends.some((each) => each.id === id)
  const trailOf = async (id: string) =>
    Trail.parse((await admin.api.get('/api/audit?group=commands')).body).entries.filter(
      ({ subjectId }) => subjectId === id,
    )
  const accepted = () =>
    house.db.pool.oneFirst(sql.type(z.object({ n: z.number() }))`select count(*) as n from command`)

  test('accepts one and settles the other: each names the other, both are in the trail, and who looks is woken', async () => {
    const command = await lost()
    const woken = Promise.withResolvers<void>()
    const silence = house.system.changes.subscribe(({ subjects }) => concerns(subjects, command.id) && woken.resolve())
    const reply = await post(grace, { text: 'pay the invoice', replaces: command.id.toUpperCase() })
    expect(reply.status).toBe(202)
    await woken.promise
    silence()
    const successor = commandIn(reply)
    expect(await isOpen(command.id)).toBe(false)
    expect((await sendOf(admin, command.id)).settlement).toEqual({
      decision: 'sent-again',
      note: null,
      by: { id: grace.viewer.userId, name: 'Grace' },
      at: successor.createdAt,
      successorId: successor.id,
    })
    expect(await sendOf(grace, successor.id)).toMatchObject({ settlement: null, replaces: command.id })
    const [entry] = await trailOf(command.id)
    expect(entry).toMatchObject({ kind: 'command.settled', actorUserId: grace.viewer.userId })
    expect(entry?.data).toEqual({ agentId, decision: 'sent-again', successorId: successor.id, noteDigest: null })
    expect((await trailOf(successor.id)).map(({ kind }) => kind)).toEqual(['task.send.accepted'])
    expect((await house.finished(successor.id)).status).toBe('succeeded')
    expect(peer.receiptsOf(successor.messageId)).toBe(1)
  })

  test('of many people at once one sends it; the others are told, and nothing of theirs is accepted', async () => {
    const command = await lost()
    const asked = Array.from({ length: 12 }, (_, n) =>
      post(n % 2 === 0 ? admin : grace, { text: 'pay the invoice', replaces: command.id }),
    )
    const replies = await Promise.all(asked)
    const statuses = replies.map(({ status }) => String(status)).toSorted((a, b) => (a < b ? -1 : 1))
    expect(statuses).toEqual(['202', ...Array.from({ length: 11 }, () => '409')])
    for (const reply of replies.filter(({ status }) => status === 409))
      expect(sentenceOf(reply)).toEqual([409, 'This send is already settled.'])
    const won = replies.find(({ status }) => status === 202)
    if (!won) throw new Error('Nobody was accepted.')
    const successor = commandIn(won)
    expect((await sendOf(admin, command.id)).settlement?.successorId).toBe(successor.id)
    expect(await trailOf(command.id)).toHaveLength(2)
  })

  test('asked again with its key it is the same command; with another place it is another content', async () => {
    const [command, other] = [await lost(), await lost()]
    const idempotencyKey = key()
    const body = { text: 'pay the invoice', replaces: command.id }
    const replies = await Promise.all(Array.from({ length: 4 }, () => post(grace, body, idempotencyKey)))
    expect(new Set(replies.map((reply) => commandIn(reply).id)).size).toBe(1)
    expect(sentenceOf(await post(grace, { ...body, replaces: other.id }, idempotencyKey))).toEqual([
      409,
      'This idempotency key already belongs to different command content.',
    ])
    expect(await isOpen(other.id)).toBe(true)
  })

  test('refuses what has no place to give, and then accepts nothing', async () => {
    const command = await lost()
    const done = await house.finished(commandIn(await post(admin, { text: 'hello' })).id)
    const elsewhere = await startRawPeer()
    const otherId = await admin.api.register(elsewhere.cardUrl)
    const send = { text: 'pay the invoice' }
    const reader = await house.person('operator')
    await grant(reader, 'read')
    const before = await accepted()
    const replaces = command.id
    expect(sentenceOf(await post(admin, { ...send, replaces: done.id }))).toEqual([409, settlementRefusals.early])
    expect(sentenceOf(await post(admin, { ...send, replaces: key() }))).toEqual([404, 'Command not found.'])
    expect((await post(admin, { ...send, replaces: 'it' })).status).toBe(400)
    const wrong = [400, settlementRefusals.replaces]
    expect(sentenceOf(await post(admin, { ...send, replaces }, key(), otherId))).toEqual(wrong)
    expect(sentenceOf(await post(admin, { ...send, tenant: 'south', replaces }))).toEqual(wrong)
    expect((await post(reader, { ...send, replaces })).status).toBe(403)
    expect((await post(await house.person('operator'), { ...send, replaces })).status).toBe(404)
    expect(await accepted()).toBe(before)
    expect(elsewhere.receipts).toEqual([])
    expect(await isOpen(command.id)).toBe(true)
    await elsewhere.close()
  })

  test('for an agent that was removed nothing is accepted, and the earlier send still needs a person', async () => {
    const elsewhere = await startRawPeer()
    const otherId = await admin.api.register(elsewhere.cardUrl)
    elsewhere.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await house.finished(commandIn(await post(admin, { text: 'hello' }, key(), otherId)).id)
    expect((await admin.api.delete(`/api/agents/${otherId}`)).status).toBe(200)
    const reply = await post(admin, { text: 'hello', replaces: id }, key(), otherId)
    expect(sentenceOf(reply)).toEqual([404, 'Unknown agent.'])
    expect((await sendOf(admin, id)).settlement).toBe(null)
    await elsewhere.close()
  })

  test('a cancel takes the place of a cancel of the same task, and of no other; a send that has not ended has none', async () => {
    const asked = async () => {
      const { result } = await house.finished(commandIn(await post(admin, { text: 'ask' })).id)
      await house.task(String(result?.localId), ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
      return String(result?.taskId)
    }
    const [taskId, otherId] = [await asked(), await asked()]
    peer.script.fault('CancelTask', { fault: 'reset', performed: false })
    const cancel = await house.finished(commandIn(await post(admin, { action: 'cancelTask', taskId })).id)
    expect(cancel.status).toBe('uncertain')
    const again = (of: string) => post(admin, { action: 'cancelTask', taskId: of, replaces: cancel.id })
    expect(sentenceOf(await again(otherId))).toEqual([400, settlementRefusals.replaces])
    const send = { text: 'hello', replaces: cancel.id }
    expect(sentenceOf(await post(admin, send))).toEqual([400, settlementRefusals.replaces])
    expect((await again(taskId)).status).toBe(202)
    peer.script.fault('SendMessage', { fault: 'hang-before-head' })
    const { id } = commandIn(await post(admin, { text: 'slow' }))
    expect(sentenceOf(await post(admin, { text: 'slow', replaces: id }))).toEqual([409, settlementRefusals.early])
    peer.script.heal()
  })

  test('who holds one skill of an agent takes the place of what was sent to it, and of nothing else', async () => {
    const routing = {
      streaming: true,
      pushNotifications: false,
      extensions: [{ uri: skillRoutingUri('signalbox.example') }],
    }
    const skills = ['invoices', 'payroll'].map((id) => ({ id, name: id, description: `Does ${id}.`, tags: ['test'] }))
    const router = await startRawPeer({ card: { skills, capabilities: routing } })
    const routerId = await admin.api.register(router.cardUrl)
    const [clerk, reader] = [await house.person('operator', 'Kim'), await house.person('operator')]
    const skillId = 'invoices'
    await grant(clerk, 'operate', { agentId: routerId, skillId })
    await grant(reader, 'read', { agentId: routerId, skillId })
    const lostAt = async (body: object) => {
      router.script.fault('SendMessage', { fault: 'reset', performed: false })
      return house.finished(commandIn(await post(admin, { text: 'pay', ...body }, key(), routerId)).id)
    }
    const [generic, payroll, own] = [
      await lostAt({}),
      await lostAt({ skillId: 'payroll' }),
      await lostAt({ skillId, text: 'ask' }),
    ]
    const before = await accepted()
    const again = (who: Person, replaces: string, body: object = { skillId }) =>
      post(who, { text: 'pay', ...body, replaces }, key(), routerId)
    // What was sent to all of the agent, or to another skill, is not theirs to see: it is as if it were not there.
    for (const { id } of [generic, payroll])
      expect(sentenceOf(await again(clerk, id))).toEqual([404, 'Command not found.'])
    expect((await again(clerk, own.id, {})).status).toBe(403)
    expect((await again(clerk, own.id, { skillId: 'payroll' })).status).toBe(404)
    expect((await again(reader, own.id)).status).toBe(403)
    // Who may see all of them is told what is wrong with it.
    expect(sentenceOf(await again(admin, own.id, {}))).toEqual([400, settlementRefusals.replaces])
    expect(sentenceOf(await again(admin, generic.id))).toEqual([400, settlementRefusals.replaces])
    expect(await accepted()).toBe(before)
    const reply = await again(clerk, own.id, { skillId, text: 'ask' })
    expect(reply.status).toBe(202)
    const successor = commandIn(reply)
    expect((await sendOf(clerk, own.id)).settlement).toMatchObject({ by: { name: 'Kim' }, successorId: successor.id })
    expect(await sendOf(reader, successor.id)).toMatchObject({ replaces: own.id })
    const { result } = await house.finished(successor.id)

    // What continues a task has its skill, though its sender names none.
    const { taskId } = await house.task(String(result?.localId), ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const answer = await lostAt({ text: 'yes', taskId })
    expect((await again(clerk, answer.id, { text: 'yes', taskId })).status).toBe(202)
    expect((await sendOf(reader, answer.id)).settlement).toMatchObject({ decision: 'sent-again', by: { name: 'Kim' } })
    await router.close()
  })

  test('a place that was taken back can be taken again; waiting for the answer and streaming take it, too', async () => {
    const command = await lost()
    const body = { text: 'hello', replaces: command.id }
    const waited = await admin.api.post(`/api/agents/${agentId}/messages`, body)
    expect(waited.status).toBe(200)
    expect((await admin.api.post(`/api/sends/${command.id}/reopen`, {})).status).toBe(200)
    expect(await isOpen(command.id)).toBe(true)
    const streamed = await admin.api.post(`/api/agents/${agentId}/stream`, body, { 'idempotency-key': key() })
    expect([streamed.status, streamed.text]).toEqual([200, expect.stringContaining('accepted')])
    expect(await isOpen(command.id)).toBe(false)
  })
})
