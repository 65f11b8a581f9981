/** The audit trail: who reads what of it, its pages and filters, its exports, and the chain that they carry. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sha256 } from '../../actors/audit-chain.ts'
import { AuditAnswer, ChainAnswer } from '../../domain/audit.ts'
import { chainStart } from '../../domain/audit-chain.ts'
import { chainLines } from '../../http/audit-export.ts'
import { linkRows } from '../../persistence/audit-chain.ts'
import { verifyFiles } from '../../bin/audit-files.ts'
import type { Client } from '../support/api.ts'
import { bothDatabases } from '../support/databases.ts'
import { startOrganization, type Organization, type Person } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const forbidden = { error: { message: 'This action is not permitted.' } }
const message = (text: string) => ({ error: { message: text } })
const secretWords = 'the launch code is 7731'

describe.each(bothDatabases)('the audit trail on %s', (database) => {
  let house: Organization
  let peer: RawPeer
  let admin: Person
  let operator: Person
  let stranger: Person
  let agentId: string
  let taskId: string
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-audit-'))

  beforeAll(async () => {
    house = await startOrganization({ database })
    peer = await startRawPeer()
    admin = await house.person('admin', '=HYPERLINK("http://evil.example","Ada")')
    operator = await house.person('operator')
    stranger = await house.person('operator')
    agentId = await admin.api.register(peer.cardUrl)
    await grant(operator, 'operate')
    // The first send knows no task yet, the second one does.
    taskId = (await operator.api.send(agentId, { text: 'ask' })).localId
    const asking = await house.task(taskId, (view) => view.state === 'TASK_STATE_INPUT_REQUIRED')
    await operator.api.send(agentId, { text: secretWords, taskId: asking.taskId })
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const grant = (person: Person, permission: 'read' | 'operate') =>
    house.db.pool.query(sql.unsafe`
      insert into access_grant (id, organization_id, agent_id, subject_type, subject_id, permission)
      values (${randomUUID()}, ${person.viewer.organizationId}, ${agentId}, 'membership', ${person.viewer.membershipId}, ${permission})`)
  const read = async (api: Client, query = ''): Promise<AuditAnswer> => {
    const { status, body } = await api.get(`/api/audit${query}`)
    expect([query, status]).toEqual([query, 200])
    return AuditAnswer.parse(body)
  }
  const kinds = ({ entries }: AuditAnswer): string[] => entries.map(({ kind }) => kind)
  const refused = async (api: Client, path: string, status: number, body: unknown): Promise<void> => {
    const reply = await api.get(path)
    expect([path, reply.status, reply.body]).toEqual([path, status, body])
  }

  test('an administrator reads everything, newest first, with names and tasks', async () => {
    const answer = await read(admin.api)
    const times = answer.entries.map(({ at }) => at)
    expect(times).toEqual(times.toSorted().toReversed())
    expect(kinds(answer)).toEqual(
      expect.arrayContaining(['session.started', 'identity.provisioned', 'agent.registered']),
    )
    const { userId, membershipId, displayName } = operator.viewer
    const sent = answer.entries.find(({ kind }) => kind === 'task.send.accepted')
    expect(sent).toMatchObject({ actorType: 'user', actorUserId: userId, taskId, data: { agentId } })
    expect(answer.people).toMatchObject({ [userId]: displayName, [membershipId]: displayName })
    expect(answer.context).toEqual({
      [taskId]: {
        title: expect.stringContaining('ask'),
        agentName: expect.any(String),
        state: expect.stringMatching(/^TASK_STATE_/),
      },
    })
    const { viewer } = admin
    expect(answer.viewer).toEqual({ userId: viewer.userId, membershipId: viewer.membershipId, role: 'admin' })
  })

  test('the whole of it is for administrators', async () => {
    for (const path of ['/api/audit', '/api/audit?group=commands', '/api/audit/export', '/api/audit/chain'])
      await refused(operator.api, path, 403, forbidden)
    await refused(operator.api, `/api/audit/export?taskId=${taskId}`, 403, forbidden)
    expect((await house.api.get('/api/audit')).status).toBe(401)
  })

  test('of a task, whoever can read it reads all but what is about people and access', async () => {
    const { entries } = await read(operator.api, `?taskId=${taskId}`)
    expect(entries.map((entry) => [entry.kind, entry.taskId])).toEqual([
      ['task.send.accepted', taskId],
      ['task.send.accepted', taskId],
    ])
    expect((await read(operator.api, `?taskId=${taskId}&limit=1`)).entries).toEqual(entries.slice(0, 1))
    expect(kinds(await read(admin.api, `?taskId=${taskId}`))).toEqual(
      kinds(await read(operator.api, `?taskId=${taskId}`)),
    )
    expect(kinds(await read(operator.api, `?taskId=${taskId}&group=access`))).toEqual([])
    await house.db.pool.query(sql.unsafe`
      insert into audit (id, organization_id, at, kind, actor_type, task_id, data)
      values (${randomUUID()}, ${admin.viewer.organizationId}, now(), 'access.granted', 'system', ${taskId}, '{}')`)
    expect(kinds(await read(operator.api, `?taskId=${taskId}`))).not.toContain('access.granted')
  })

  test('a task that somebody cannot read is unknown to them', async () => {
    const unknown = message('Task not found.')
    await refused(stranger.api, `/api/audit?taskId=${taskId}`, 404, unknown)
    await refused(operator.api, `/api/audit?taskId=${randomUUID()}`, 404, unknown)
    await refused(admin.api, '/api/audit?taskId=nonsense', 404, unknown)
    await grant(stranger, 'read')
    expect(kinds(await read(stranger.api, `?taskId=${taskId}`))).toContain('task.send.accepted')
    await house.db.pool.query(sql.unsafe`
      update access_grant set enabled = false where subject_id = ${stranger.viewer.membershipId}`)
    await refused(stranger.api, `/api/audit?taskId=${taskId}`, 404, unknown)
  })

  test('filters by group, person and time', async () => {
    expect(new Set(kinds(await read(admin.api, '?group=commands')))).toEqual(new Set(['task.send.accepted']))
    const access = kinds(await read(admin.api, '?group=access'))
    expect(access).toContain('agent.registered')
    expect(access).not.toContain('task.send.accepted')
    expect(kinds(await read(admin.api, '?group=approvals'))).toEqual([])
    const own = await read(admin.api, `?actor=${operator.viewer.userId}`)
    expect(new Set(own.entries.map(({ actorUserId }) => actorUserId))).toEqual(new Set([operator.viewer.userId]))
    const [newest] = own.entries
    const until = newest?.at ?? ''
    expect((await read(admin.api, `?since=${until}&until=${until}`)).entries).toContainEqual(newest)
    expect((await read(admin.api, '?since=2999-01-01')).entries).toEqual([])
    expect((await read(admin.api, '?until=2001-01-01T00:00:00%2B02:00')).entries).toEqual([])
  })

  test('pages do not repeat or leave out, even where many records share an instant', async () => {
    const organizationId = admin.viewer.organizationId
    await house.db.pool.query(sql.unsafe`
      insert into audit (id, organization_id, at, kind, actor_type, data)
      select gen_random_uuid(), ${organizationId}, timestamptz '2020-05-05 12:00:00.000123' + (n / 4) * interval '1 microsecond',
        'task.escalated', 'system', '{}' from generate_series(1, 23) n`)
    const seen: string[] = []
    let next: string | null = ''
    for (let page = 0; page < 10 && next !== null; page++) {
      const cursor: string = next === '' ? '' : `&cursor=${next}`
      const answer = await read(admin.api, `?group=ownership&limit=5${cursor}`)
      seen.push(...answer.entries.map(({ key }) => key))
      next = answer.next
    }
    expect(next).toBeNull()
    expect(seen).toHaveLength(23)
    expect(new Set(seen).size).toBe(23)
  })

  test('what makes no sense is 400', async () => {
    const cases: Readonly<Record<string, string>> = {
      'since=2026-02-02&until=2026-02-01': 'The start of the range is after its end.',
      'since=yesterday': 'since must be a timestamp.',
      'until=0000-01-01': 'until must be a timestamp.',
      'since=2026-02-31': 'since must be a timestamp.',
      'until=2026-01-01T00:00:00': 'until must be a timestamp.',
      'group=everything': 'Unknown audit group.',
      'actor=me': 'actor must be a UUID.',
      'limit=0': 'limit must be 1–200.',
      'limit=201': 'limit must be 1–200.',
      'limit=ten': 'limit must be 1–200.',
    }
    for (const route of ['/api/audit', '/api/audit/export'])
      for (const [query, sentence] of Object.entries(cases))
        await refused(admin.api, `${route}?${query}`, 400, message(sentence))
    const cursor = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const id = randomUUID()
    const broken = [
      'x',
      'x'.repeat(600),
      'x&cursor=y',
      '%00',
      cursor('x'),
      cursor({}),
      cursor([]),
      cursor([id, '2026-01-01T00:00:00.000Z']),
      cursor(['2026-02-31T00:00:00.000000Z', id]),
      cursor(['0000-01-01T00:00:00.000000Z', id]),
      cursor(['2026-01-01T00:00:00.000Z', id, 'more']),
      cursor(['2026-01-01T00:00:00.000Z', `${id}'`]),
    ]
    for (const each of broken) {
      await refused(admin.api, `/api/audit?cursor=${each}`, 400, message('Invalid cursor.'))
      await refused(admin.api, `/api/audit/export?format=jsonl&cursor=${each}`, 400, message('Invalid cursor.'))
    }
    await refused(admin.api, '/api/audit/export?format=jsonl&cursor=999999', 400, message('Invalid cursor.'))
    await refused(admin.api, '/api/audit/export?format=xml', 400, message('Unknown export format.'))
    expect((await admin.api.get('/api/audit/export?format=jsonl&group=access')).status).toBe(400)
  })

  test('the CSV export quotes, disarms formulas, pages, and is recorded', async () => {
    const response = await admin.api.fetch(`/api/audit/export?actor=${admin.viewer.userId}&group=access&limit=1`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="audit-trail.csv"')
    const text = await response.text()
    const [head, row, ...rest] = text.split('\r\n')
    expect(head).toBe('time,kind,actor,task,subject,detail')
    expect(rest).toEqual([''])
    // The name would be run by a spreadsheet; so it is text, and its quotes and comma stay in its cell.
    expect(row).toContain(`,"'=HYPERLINK(""http://evil.example"",""Ada"")",`)
    expect(row).toMatch(/,"\{""[^\r\n]*\}"$/)
    const next = response.headers.get('x-next-cursor')
    expect(next).not.toBeNull()
    const following = await admin.api.fetch(
      `/api/audit/export?actor=${admin.viewer.userId}&group=access&limit=1&cursor=${next}`,
    )
    const [, second] = (await following.text()).split('\r\n')
    expect(second).not.toBe(row)
    const last = await admin.api.fetch(`/api/audit/export?taskId=${taskId}`)
    expect(last.headers.get('x-next-cursor')).toBeNull()
    await last.text()
    const exported = (await read(admin.api, '?group=access&limit=3')).entries.filter(
      ({ kind }) => kind === 'audit.exported',
    )
    expect(exported).toHaveLength(3)
    expect(exported[0]).toMatchObject({
      actorUserId: admin.viewer.userId,
      taskId: null,
      data: { format: 'csv', taskId, group: 'all', records: expect.any(Number) },
    })
  })

  test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx'])(
    'a person called %j is text in a spreadsheet',
    async (name) => {
      const person = await house.person('admin', name)
      const response = await admin.api.fetch(`/api/audit/export?actor=${person.viewer.userId}`)
      const [, row = ''] = (await response.text()).split('\r\n')
      const disarmed = `'${name}`
      expect(row).toContain(name.includes('\r') ? `,"${disarmed}",` : `,${disarmed},`)
    },
  )

  const linkAll = async (): Promise<void> => {
    for (let pass = 0; pass < 50; pass++) {
      const { links } = await linkRows(house.db.pool, sha256, new Date().toISOString())
      const { unlinked } = ChainAnswer.parse((await admin.api.get('/api/audit/chain')).body)
      if (links === 0 && unlinked === 0) return
    }
    throw new Error('Rows were never linked.')
  }
  const exported = async (cursor: string | null): Promise<{ text: string; next: string }> => {
    const response = await admin.api.fetch(
      `/api/audit/export?format=jsonl${cursor === null ? '' : `&cursor=${cursor}`}`,
    )
    expect(response.status).toBe(200)
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="audit-chain.jsonl"')
    return { text: await response.text(), next: response.headers.get('x-next-cursor') ?? '' }
  }
  const file = (name: string, text: string): string => {
    const path = join(folder, `${database}-${name}.jsonl`)
    writeFileSync(path, text)
    return path
  }

  test('the chain export is verified without the database, alone and together with the next one', async () => {
    await linkAll()
    const { number, hash, fault } = ChainAnswer.parse((await admin.api.get('/api/audit/chain')).body)
    expect(fault).toBeNull()
    expect(number).toBeGreaterThan(20)
    const first = await exported(null)
    const one = file('one', first.text)
    expect(await verifyFiles([one], [{ number, hash }])).toMatchObject({
      organizationId: admin.viewer.organizationId,
      findings: [],
      rows: Number(first.next),
    })
    await admin.api.register(peer.cardUrl.replace('agent-card.json', 'another-card.json'))
    await linkAll()
    const second = await exported(first.next)
    const two = file('two', second.text)
    const both = await verifyFiles([two, one], [{ number, hash }])
    expect(both.findings).toEqual([])
    expect(both).toMatchObject({ rows: Number(second.next), head: { number: Number(second.next) } })
    expect((await verifyFiles([two], [])).findings).toEqual([])
    // A console that stops cuts the line: a download that ends well is whole.
    const { organizationId } = admin.viewer
    const what = { organizationId, exportedAt: '', from: chainStart, head: { number, hash }, unlinked: 0 }
    const lines = Readable.from(chainLines(house.db.pool, what, AbortSignal.abort()))
    await expect(lines.toArray()).rejects.toThrow('is stopping')
  })

  test('a cancellation is recorded once, however often it is asked for, and one that is refused never', async () => {
    const { taskId: remoteId } = await operator.api.task(taskId)
    const cancel = (person: Person, key: string) =>
      person.api.post(
        `/api/agents/${agentId}/commands`,
        { action: 'cancelTask', taskId: remoteId },
        { 'idempotency-key': key },
      )
    expect([(await cancel(operator, 'twice')).status, (await cancel(operator, 'twice')).status]).toEqual([202, 202])
    expect((await cancel(stranger, 'other')).status).toBe(404)
    const { entries } = await read(admin.api, `?taskId=${taskId}&group=commands`)
    const cancelled = entries.filter(({ kind }) => kind === 'task.cancel.accepted')
    expect(cancelled).toMatchObject([{ taskId, actorUserId: operator.viewer.userId, data: { agentId } }])
  })

  test('a row that somebody spoilt is shown with the others', async () => {
    const key = randomUUID()
    await house.db.pool.query(sql.unsafe`
      insert into audit (id, organization_id, at, kind, actor_type, subject_id, data)
      values (${key}, ${admin.viewer.organizationId}, now(), 'task.send.accepted', 'user', 'no id', '{}')`)
    const { entries } = await read(admin.api)
    expect(entries.find((entry) => entry.key === key)).toMatchObject({ subjectId: 'no id', taskId: null })
  })

  test('no word of a message or a secret is in any row', async () => {
    const rows = await house.db.pool.anyFirst(sql.type(z.object({ text: z.string() }))`
      select (a.data::text || ' ' || coalesce(a.subject_id, '')) as text from audit a`)
    expect(rows.length).toBeGreaterThan(20)
    const all = rows.join('\n')
    for (const secret of [secretWords, admin.token, operator.token]) expect(all).not.toContain(secret)
  })
})
