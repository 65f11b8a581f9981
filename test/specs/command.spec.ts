/** Commands: durable before they are answered, the same key the same command, readable for ever after. */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { commandErrors } from '../../domain/command.ts'
import { commandIn, type Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn } from '../support/system.ts'

const keyed = (key: string = randomUUID()) => ({ 'idempotency-key': key })

describe.each(bothDatabases)('commands on %s', (database) => {
  let house: TestConsole
  let api: Client
  let peer: RawPeer
  let agentId: string
  let commands: string
  beforeAll(async () => {
    house = await startConsole({ database })
    api = house.api
    peer = await startRawPeer()
    agentId = await api.register(peer.cardUrl)
    commands = `/api/agents/${agentId}/commands`
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  test('202 when it is durable, and its address says how it ended', async () => {
    const messageId = randomUUID()
    const reply = await api.post(commands, { text: 'hello', messageId }, keyed())
    expect(reply.status).toBe(202)
    const accepted = commandIn(reply)
    expect(reply.headers.get('location')).toBe(`/api/commands/${accepted.id}`)
    expect(accepted).toMatchObject({ agentId, messageId, action: 'send', tenant: '', result: null, error: null })
    expect(accepted.status).toBe('pending')
    await house.finished(accepted.id)
    const finished = await api.command(accepted.id)
    expect(finished).toMatchObject({ id: accepted.id, status: 'succeeded', error: null })
    expect(finished.result).toMatchObject({ localId: expect.any(String), taskId: expect.any(String), tenant: '' })
    expect(finished.result?.event).toMatchObject({ task: { id: finished.result?.taskId } })
    expect(peer.receiptsOf(messageId)).toBe(1)
    const audited = await house.db.pool.oneFirst(
      sql.type(z.object({ n: z.number() }))`
        select count(*)::int as n from audit where kind = 'task.send.accepted' and subject_id = ${accepted.id}`,
    )
    expect(audited).toBe(1)
  })

  test.each([{}, keyed(''), keyed('k'.repeat(256))])('400 without a key of 1 to 255 characters', async (headers) => {
    const reply = await api.post(commands, { text: 'hello' }, headers)
    expect(reply.status).toBe(400)
    expect(reply.body).toEqual({ error: { message: 'An idempotency key of 1–255 characters is required.' } })
  })

  test('twins with one key are one command and one receipt, then and later', async () => {
    const messageId = randomUUID()
    const headers = keyed('k'.repeat(255))
    const body = { text: 'hello', messageId }
    const twins = await Promise.all(Array.from({ length: 12 }, () => api.post(commands, body, headers)))
    expect(twins.map((reply) => reply.status)).toEqual(twins.map(() => 202))
    const ids = new Set(twins.map((reply) => commandIn(reply).id))
    expect(ids.size).toBe(1)
    const [id = ''] = ids
    await house.finished(id)
    const late = await api.post(commands, body, headers)
    expect(late.status).toBe(202)
    expect(commandIn(late)).toEqual(await api.command(id))
    expect(commandIn(late).status).toBe('succeeded')
    expect(peer.receiptsOf(messageId)).toBe(1)
  })

  test('409 when a key comes again with other content; nothing is sent', async () => {
    const headers = keyed()
    const first = await api.post(commands, { text: 'hello' }, headers)
    const messageId = randomUUID()
    for (const body of [{ text: 'other' }, { text: 'hello', tenant: 'x' }, { text: 'hello', messageId }]) {
      const reply = await api.post(commands, body, headers)
      expect(reply.status).toBe(409)
      expect(reply.body).toEqual({
        error: { name: 'Error', message: 'This idempotency key already belongs to different command content.' },
      })
    }
    await house.finished(commandIn(first).id)
    expect(peer.receiptsOf(messageId)).toBe(0)
  })

  test.each([
    [{}, 'A send needs non-empty text or at least one part.'],
    [{ text: '', parts: [] }, 'A send needs non-empty text or at least one part.'],
    [{ action: 'cancelTask' }, 'taskId is required to cancel a task.'],
    [{ text: 'x', colour: 'red' }, 'Unrecognized key: "colour".'],
    [{ text: 'x', config: { speed: 1 } }, 'config: Unrecognized key: "speed".'],
    [{ text: 7 }, 'text: Invalid input: expected string, received number.'],
    [{ parts: [{}] }, 'A part holds exactly one of text, data, url and raw.'],
    [{ parts: [{ text: 'a', url: 'b' }] }, 'A part holds exactly one of text, data, url and raw.'],
    [{ parts: [{ raw: 'not base64' }] }, 'A raw part must be standard base64.'],
    [{ parts: [{ raw: 'YQ' }] }, 'A raw part must be standard base64.'],
    [{ text: 'x', messageId: '' }, 'messageId: Too small: expected string to have >=1 characters.'],
    [{ text: 'x', tenant: 't'.repeat(256) }, 'tenant: Too big: expected string to have <=255 characters.'],
    [{ text: 'x', tenant: 'a\0b' }, 'tenant holds characters that cannot be stored.'],
    [{ text: 'x', messageId: '\ud800' }, 'Request text holds half a character (a lone surrogate).'],
  ])('400 for %j, on every route that takes a command', async (body, message) => {
    for (const route of ['commands', 'messages', 'stream']) {
      const reply = await api.post(`/api/agents/${agentId}/${route}`, body, keyed())
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body).toEqual({ error: { message } })
    }
  })

  test('a body is wanted, must be JSON, at most 16 MiB and not absurdly deep', async () => {
    const refused = async (body: string | undefined, message: string): Promise<void> => {
      const reply = await api.post(commands, body, keyed())
      expect(reply.body).toEqual({ error: { message } })
      expect(reply.status).toBe(400)
    }
    await refused(undefined, 'Request body is required.')
    await refused('', 'Request body is required.')
    await refused('null', 'Request body is required.')
    await refused('{"text":', 'Invalid request JSON.')
    await refused('{"text":"x","__proto__":{}}', 'Invalid request JSON.')
    await refused('[]', 'Invalid input: expected object, received array.')
    await refused(`{"parts":[{"data":${'['.repeat(5000)}${']'.repeat(5000)}}]}`, 'Request JSON is nested too deeply.')
    await refused(JSON.stringify({ text: 'x'.repeat(16 * 1024 * 1024) }), 'Request body exceeds the 16 MiB limit.')
  })

  test('words and names may be anything that can be stored: controls, quotes, emoji', async () => {
    const messageId = `\u0001 "'\\;-- ☃ ${randomUUID()}`
    const text = 'a\0b \ud83d\ude00'
    const command = commandIn(await api.post(commands, { text, messageId, parts: [{ data: { a: '\0' } }] }, keyed()))
    const { status, result } = await house.finished(command.id)
    expect(status).toBe('succeeded')
    expect(peer.receiptsOf(messageId)).toBe(1)
    const task = await api.task(result?.localId ?? '')
    expect(task.messages[0]?.parts.map((part) => part.value)).toEqual([text, { a: '\0' }])
  })

  test('404 and 403 for what a send refers to', async () => {
    const { localId } = await api.send(agentId, { text: 'ask' })
    const waiting = await house.task(localId, (view) => view.state === 'TASK_STATE_INPUT_REQUIRED')
    const refused = async (body: object, status: number, message: string): Promise<void> => {
      const reply = await api.post(commands, { text: 'x', ...body }, keyed())
      expect(reply.status, reply.text).toBe(status)
      expect(reply.body).toMatchObject({ error: { message } })
    }
    await refused({ taskId: 'never-seen' }, 404, 'Task not found.')
    await refused({ taskId: waiting.taskId, tenant: 'elsewhere' }, 404, 'Task not found.')
    await refused({ taskId: waiting.taskId, contextId: 'other' }, 403, 'Task context mismatch.')
    await refused({ config: { referenceTaskIds: ['never-seen'] } }, 404, 'Referenced task not found.')
    await refused({ skillId: 'act', contextId: 'c' }, 400, 'A skill-scoped send must start a new context.')
    await refused({ skillId: 'act', taskId: waiting.taskId }, 400, 'Task skill cannot be changed.')
    await refused({ skillId: 'act' }, 400, 'This agent does not support bounded skill routing.')
  })

  test.each([randomUUID(), 'no-uuid'])('404 for a command that is not there', async (id) => {
    const reply = await api.get(`/api/commands/${id}`)
    expect(reply.status).toBe(404)
    expect(reply.body).toEqual({ error: { message: 'Command not found.' } })
  })

  test('a command whose agent is removed before anybody worked on it fails, and says so', async () => {
    const idle = await startConsole({ database, system: { works: false } })
    const id = await idle.api.register(peer.cardUrl)
    const messageId = randomUUID()
    const asked = await idle.api.post(`/api/agents/${id}/commands`, { text: 'hello', messageId }, keyed())
    await idle.api.delete(`/api/agents/${id}`)
    const worker = await systemOn(idle.db)
    const ended = await worker.finished(commandIn(asked).id)
    await worker.close()
    await idle.close()
    expect(ended).toMatchObject({ status: 'failed', error: commandErrors.unavailable, result: null })
    expect(peer.receiptsOf(messageId)).toBe(0)
  })
})
