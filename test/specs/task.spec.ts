/** Tasks for reading: rows, views, pages, the signal that something changed, and the bytes that agents made. */
import { createHash, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Command } from '../../domain/command.ts'
import { StoredBytes, TaskRow, TaskView } from '../../domain/task.ts'
import type { Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

describe.each(bothDatabases)('tasks on %s', (database) => {
  let house: TestConsole
  let api: Client
  let peer: RawPeer
  let agentId: string
  let done: TaskView
  let waiting: TaskView
  let working: TaskView
  let direct: TaskView
  beforeAll(async () => {
    house = await startConsole({ database })
    api = house.api
    peer = await startRawPeer()
    agentId = await api.register(peer.cardUrl)
    const sent = async (text: string, state: string): Promise<TaskView> =>
      house.task((await api.send(agentId, { text })).localId, (view) => view.state === state)
    done = await sent('files', 'TASK_STATE_COMPLETED')
    waiting = await sent('ask', 'TASK_STATE_INPUT_REQUIRED')
    working = await sent('hold', 'TASK_STATE_WORKING')
    direct = await sent('direct', 'MESSAGE_ONLY')
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  const listed = async (query: string): Promise<string[]> => {
    const { status, body } = await api.get(`/api/tasks${query}`)
    expect(status).toBe(200)
    return z
      .object({ tasks: z.array(TaskRow) })
      .parse(body)
      .tasks.map(({ localId }) => localId)
  }

  test('rows are newest first, by filter and page, and carry no messages', async () => {
    const newest = [direct, working, waiting, done].map(({ localId }) => localId)
    expect(await listed('')).toEqual(newest)
    expect(await listed('?filter=all&limit=2&offset=1')).toEqual(newest.slice(1, 3))
    expect(await listed('?offset=4')).toEqual([])
    expect(await listed('?filter=active')).toEqual([working.localId, waiting.localId])
    expect(await listed('?filter=needs-input')).toEqual([waiting.localId])
    expect(await listed('?filter=done')).toEqual([direct.localId, done.localId])
    expect(await listed('?filter=unassigned')).toEqual([working.localId, waiting.localId])
    expect(await listed('?filter=mine')).toEqual([])
    expect(await listed('?filter=overdue')).toEqual([])
    const { body } = await api.get('/api/tasks?filter=needs-input')
    const { localId, taskId, contextId, createdAt, updatedAt } = waiting
    const empty = { referenceLinks: [], workflow: null, messages: [], artifacts: [] }
    const row = { localId, taskId, contextId, tenant: '', agentId, agentName: 'Raw test agent', createdAt, updatedAt }
    expect(body).toEqual({
      tasks: [{ ...row, state: 'TASK_STATE_INPUT_REQUIRED', kind: 'task', title: 'ask', ...empty }],
    })
  })

  const limit = 'limit must be 1–100.'
  const offset = 'offset must be 0 or more.'
  test.each([
    ['?filter=everything', 'Invalid task filter.'],
    ['?filter=', 'Invalid task filter.'],
    ['?filter=all&filter=done', 'Invalid task filter.'],
    ['?limit=0', limit],
    ['?limit=101', limit],
    ['?limit=1.5', limit],
    ['?limit=ten', limit],
    ['?offset=-1', offset],
    ['?offset=', offset],
    ['?offset=99999999999999999999', offset],
  ])('400 for /api/tasks%s', async (query, message) => {
    const reply = await api.get(`/api/tasks${query}`)
    expect(reply.status).toBe(400)
    expect(reply.body).toEqual({ error: { message } })
  })

  test('one task is the whole view, and what was said about it that has not arrived', async () => {
    const reply = await api.get(`/api/tasks/${waiting.localId}`)
    expect(reply.status).toBe(200)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.body).toEqual({
      task: waiting,
      commands: [],
      following: { state: 'resting', reason: null, nextAttemptAt: null },
      operable: true,
    })
    expect(waiting).toMatchObject({ skillId: null, version: expect.any(Number) })
    expect(waiting.transitions.at(-1)?.state).toBe('TASK_STATE_INPUT_REQUIRED')

    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const messageId = randomUUID()
    await api.post(`/api/agents/${agentId}/messages`, { text: 'red', taskId: waiting.taskId, messageId })
    const { commands } = z
      .object({ commands: z.array(Command) })
      .parse((await api.get(`/api/tasks/${waiting.localId}`)).body)
    expect(commands).toMatchObject([{ messageId, status: 'uncertain' }])
  })

  test.each([randomUUID(), 'no-uuid', '%00', encodeURIComponent("'; drop table task; --")])(
    '404 for a task that is not there: %s',
    async (id) => {
      const reply = await api.get(`/api/tasks/${id}`)
      expect(reply.status).toBe(404)
      expect(reply.body).toEqual({ error: { message: 'Task not found.' } })
    },
  )

  test('views are walked page by page: each once, null at the end', async () => {
    const walked: string[] = []
    let next: string | null = null
    do {
      const { body } = await api.get(`/api/task-views?limit=1${next === null ? '' : `&after=${next}`}`)
      const answer = z.object({ tasks: z.array(TaskView), next: z.guid().nullable() }).parse(body)
      walked.push(...answer.tasks.map(({ localId }) => localId))
      next = answer.next
    } while (next !== null && walked.length < 10)
    expect(walked.toSorted()).toEqual([done, waiting, working, direct].map(({ localId }) => localId).toSorted())
    const whole = await api.get('/api/task-views')
    expect(whole.body).toMatchObject({ next: null })
  })

  test.each(['?limit=0', '?limit=101', '?limit=x', '?after=x', '?after='])(
    '400 for /api/task-views%s',
    async (query) => {
      const reply = await api.get(`/api/task-views${query}`)
      expect(reply.status).toBe(400)
      expect(reply.body).toEqual({ error: { message: 'limit must be 1–100 and after must be a local UUID' } })
    },
  )

  test('artifacts of every kind; bytes are fetched by their digest, as a download that no browser opens', async () => {
    const parts = Object.fromEntries(done.artifacts.map(({ name, parts: [part] }) => [name, part]))
    expect(parts).toMatchObject({
      notes: { kind: 'text', value: 'Some notes.', mediaType: 'text/plain' },
      table: { kind: 'data', value: { rows: [1, 2, 3] }, mediaType: 'application/json' },
      sheet: { kind: 'raw', mediaType: 'text/csv', filename: 'sheet.csv' },
      report: { kind: 'url', value: 'https://files.example/report.pdf', filename: 'report.pdf' },
    })
    const { href, size, digest } = StoredBytes.parse(parts['sheet']?.value)
    expect(href).toBe(`/api/artifacts/${digest}`)
    const response = await api.fetch(href)
    const bytes = new Uint8Array(await response.arrayBuffer())
    expect(response.status).toBe(200)
    expect(Buffer.from(bytes).toString()).toBe('a,b\n1,2\n')
    expect(size).toBe(bytes.length)
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(digest)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': expect.stringMatching(/^attachment/),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
    })
  })

  test.each(['0'.repeat(64), 'A'.repeat(64), 'short', '..%2f..%2fetc%2fpasswd'])(
    '404 in plain text for bytes that are not there: %s',
    async (digest) => {
      const reply = await api.get(`/api/artifacts/${digest}`)
      expect(reply.status).toBe(404)
      expect(reply.headers.get('content-type')).toMatch(/^text\/plain/)
      expect(reply.text).toBe('Not found')
    },
  )

  test('the signal: ready at once, freshness after a commit, and nothing about what', async () => {
    const response = await api.fetch('/api/tasks/events')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = (await reader?.read())?.value ?? ''
    expect(text).toBe('retry: 1000\nevent: ready\ndata: {}\n\n')
    await api.send(agentId, { text: 'hello' })
    for (let i = 0; i < 10 && !text.includes('freshness'); i++) text += (await reader?.read())?.value ?? ''
    expect(text).toContain('event: freshness\ndata: {}\n\n')
    expect(text.replaceAll(/event: \w+\n/g, '').replaceAll('data: {}\n\n', '')).toBe('retry: 1000\n')
    await reader?.cancel()
  })
})
