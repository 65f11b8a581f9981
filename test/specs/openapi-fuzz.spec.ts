/**
 * Every operation of the API, driven from its own description: what the document allows, and the same with one thing wrong. Whatever
 * is asked, an answer is one that is documented, of the shape that is documented, and tells nothing that it should not.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Document, idsIn, type Operation, type Request, type There } from '../support/openapi-fuzz.ts'
import type { Client, Reply } from '../support/api.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startOrganization, type Organization } from '../support/people.ts'
import { signingKey } from '../support/push.ts'

const seed = 20_261_122
/** Requests to each operation: of those that may succeed, and of those that all end the same way. */
const manyRounds = 9
const fewRounds = 2
/** What is never an answer's business: stacks, statements, paths of this machine, names of what we are made of. */
const telltale =
  /\n\s+at |node:|node_modules|\.ts:\d|\/home\/|\/tmp\/|\bselect .+ from\b|\binsert into\b|slonik|pglite|ECONN|ZodError/i
const streams = 'text/event-stream'
const push = { callbackOrigin: 'http://127.0.0.1:9', signingKey }

const mediaTypeOf = (headers: Headers): string | null => headers.get('content-type')?.split(';', 1)[0] ?? null
const named = ({ method, path }: Operation): string => `${method} ${path}`

/** Its checks take a second to compile, and both databases have one document. */
const documents = new Map<string, Document>()
function documentIn(text: string): Document {
  const document = documents.get(text) ?? new Document(JSON.parse(text))
  documents.set(text, document)
  return document
}

describe.each(eitherDatabase)('the document on %s', (database) => {
  let house: Organization
  let peer: RawPeer
  let document: Document
  let there: There

  beforeAll(async () => {
    ;[house, peer] = await Promise.all([
      startOrganization({ database, uiDirectory: null, system: { push } }),
      startRawPeer(),
    ])
    const { api } = await house.person('admin')
    document = documentIn((await api.get('/api/openapi.json')).text)
    const agentId = await api.register(peer.cardUrl)
    await api.send(agentId, { text: 'hello' })
    await api.post('/api/admin/security', { action: 'createTeam', name: 'Signallers' })
    const lists = ['/api/agents', '/api/tasks', '/api/task-views', '/api/actors', '/api/audit', '/api/admin/security']
    const answers = await Promise.all(lists.map((path) => api.get(path)))
    answers.push(await api.post(`/api/agents/${agentId}/commands`, { text: 'again' }, { 'idempotency-key': 'known' }))
    const send = { text: 'hello' }
    there = {
      known: answers.flatMap(({ body }) => idsIn(body)),
      bodies: {
        '/api/agents': { cardUrl: peer.cardUrl },
        '/api/agents/preview': { cardUrl: peer.cardUrl },
        '/api/agents/{agentId}/commands': send,
        '/api/agents/{agentId}/messages': send,
        '/api/agents/{agentId}/stream': send,
      },
    }
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  /** Asks as fetch does; of a stream only the head, for its end is a minute away. */
  const ask = async (api: Client, { method }: Operation, { path, query, headers, body }: Request): Promise<Reply> => {
    const cut = new AbortController()
    const asked = new URLSearchParams(query).toString()
    const response = await api.fetch(asked === '' ? path : `${path}?${asked}`, {
      method,
      headers,
      signal: cut.signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const type = mediaTypeOf(response.headers)
    if (type === streams) cut.abort()
    const text = type === streams ? '' : await response.text()
    const answer: unknown = type === 'application/json' ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, body: answer, text }
  }

  /** Null where the document foresees the answer, else what it does not. */
  const faultOf = ({ responses }: Operation, { status, headers, body, text }: Reply): string | null => {
    const documented = responses[String(status)]
    if (!documented) return `${status} is not documented: ${text.slice(0, 500)}`
    if (headers.get('cache-control')?.startsWith('no-store') !== true) return 'It could be stored.'
    if (!headers.has('x-request-id')) return 'It has no request id.'
    if ([...headers.keys()].some((name) => name.startsWith('access-control-'))) return 'It lets other origins in.'
    if (status >= 400 && telltale.test(text)) return `It tells too much: ${text.slice(0, 500)}`
    const type = mediaTypeOf(headers)
    const types = Object.keys(documented.content)
    if (type === null || types.length === 0)
      return text === '' ? null : `A body was not foreseen: ${text.slice(0, 200)}`
    const schema = documented.content[type]?.schema
    if (!schema) return `${type} is not documented.`
    return type === 'application/json' ? document.faultOf(schema, body) : null
  }

  const drive = (
    operation: Operation,
    requests: fc.Arbitrary<Request>,
    check: (reply: Reply, request: Request) => void,
    api: Client,
    numRuns = fewRounds,
  ): Promise<void> =>
    fc.assert(
      fc.asyncProperty(requests, async (request) => {
        const reply = await ask(api, operation, request)
        expect(faultOf(operation, reply), `${reply.status} to ${JSON.stringify(request)}`).toBeNull()
        check(reply, request)
      }),
      { seed, numRuns, endOnFailure: true },
    )

  test('names every route, each with a permission and at least one good answer', () => {
    expect(document.operations.length).toBeGreaterThan(30)
    for (const operation of document.operations)
      expect(
        Object.keys(operation.responses).some((status) => status < '400'),
        named(operation),
      ).toBe(true)
  })

  test('requests that it allows are answered as it says', async () => {
    const seen = new Map<string, Set<number>>()
    for (const operation of document.operations) {
      const { api } = await house.person('admin')
      const statuses = new Set<number>()
      const note = ({ status }: Reply): void => void statuses.add(status)
      await drive(operation, document.requests(operation, there), note, api, manyRounds)
      // What was removed is what the others ask for: the same address is the same agent again.
      if (operation.method === 'DELETE') await api.register(peer.cardUrl)
      seen.set(named(operation), statuses)
    }
    // Otherwise the rounds above would prove little. Some cannot: there is no provider here, no delivery and no bytes.
    const failed = [...seen].filter(([, statuses]) => [...statuses].every((status) => status >= 400))
    expect(failed.length, failed.map(([name]) => name).join(', ')).toBeLessThan(seen.size / 4)
  })

  test('requests with one thing wrong are refused with 400', async () => {
    for (const operation of document.operations.filter(({ permission }) => permission !== 'agent')) {
      const requests = document.wrongRequests(operation, there)
      if (!requests) continue
      const { api } = await house.person('admin')
      await drive(
        operation,
        requests,
        ({ status }, request) => expect(status, JSON.stringify(request)).toBe(400),
        api,
        manyRounds,
      )
    }
  })

  test('nobody is told to sign in, whatever they ask for', async () => {
    for (const operation of document.operations.filter(({ permission }) => permission !== 'public')) {
      const check = ({ status }: Reply): void => expect(status, named(operation)).toBe(401)
      await drive(operation, document.requests(operation, there), check, house.api)
    }
  })

  test('what was not granted is not there, and is not forbidden either', async () => {
    const personal = document.operations.filter(({ permission }) => permission === 'read' || permission === 'operate')
    for (const operation of personal.filter(({ parameters }) => parameters.some((one) => one.in === 'path'))) {
      const { api } = await house.person('operator')
      // 400 where the request is wrong whoever asks.
      const check = ({ status }: Reply): void => expect([400, 404], named(operation)).toContain(status)
      await drive(operation, document.requests(operation, there), check, api, manyRounds)
    }
  })

  test('what a role may not ever do is forbidden', async () => {
    const { api } = await house.person('viewer')
    for (const operation of document.operations.filter(({ permission }) => /operate|administer/.test(permission))) {
      const check = ({ status }: Reply): void => expect(status, named(operation)).toBe(403)
      await drive(operation, document.requests(operation, there), check, api)
    }
  })

  test('a change that another site asks for is forbidden', async () => {
    const { api } = await house.person('admin')
    for (const operation of document.operations.filter(({ method }) => method !== 'GET')) {
      if (operation.permission === 'agent') continue
      for (const headers of [
        { origin: 'https://evil.example' },
        { 'sec-fetch-site': 'cross-site' },
        { origin: 'null' },
      ]) {
        const [request] = fc.sample(document.requests(operation, there), { seed, numRuns: 1 })
        if (!request) throw new Error('No request was made.')
        const sent = { ...request, headers: { ...request.headers, ...headers } }
        const reply = await ask(api, operation, sent)
        expect([reply.status, reply.body], named(operation)).toEqual([
          403,
          { error: { message: 'This action is not permitted.' } },
        ])
      }
    }
  })

  test('the same key is the same command, and other content under it is a conflict', async () => {
    const { api } = await house.person('admin')
    const operation = document.operations.find(({ path }) => path === '/api/agents/{agentId}/commands')
    if (!operation) throw new Error('The document has no commands.')
    const requests = document.requests(operation, there)
    const accepted: string[] = []
    await fc.assert(
      fc.asyncProperty(requests, async (request) => {
        const first = await ask(api, operation, request)
        if (first.status !== 202) return
        const again = await ask(api, operation, request)
        const [one, two] = [first, again].map(
          ({ body }) => idsIn(body).find(({ commandId }) => commandId)?.['commandId'],
        )
        expect([again.status, two]).toEqual([202, one])
        const other = { ...request, body: { text: 'something else' } }
        expect((await ask(api, operation, other)).status).toBe(409)
        accepted.push(one ?? '')
      }),
      { seed, numRuns: manyRounds, endOnFailure: true },
    )
    expect(new Set(accepted).size).toBeGreaterThan(0)
  })
})
