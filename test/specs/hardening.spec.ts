/**
 * What a hostile client, page or network meets before any operation: headers on every answer, no other origin let in, requests that
 * two readers could read differently, sizes, and a log that tells of none of it more than it must.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bodyLimitBytes } from '../../http/bodies.ts'
import { cookieNames } from '../../http/cookies.ts'
import { startConsole } from '../support/console.ts'
import { Document } from '../support/openapi-fuzz.ts'
import { pageOrigin, startOrganization, type Organization, type Person } from '../support/people.ts'
import { signingKey } from '../support/push.ts'
import { openTestLog } from '../support/test-log.ts'

const files = {
  'index.html': '<!doctype html>',
  'assets/a-1.js': 'export {}',
  'embed/signalbox-console.js': 'export {}',
}
const push = { callbackOrigin: 'http://127.0.0.1:9', signingKey }

let house: Organization
let admin: Person
let directory: string
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-hardening-'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(directory, name, '..'), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  house = await startOrganization({ database: 'postgresql', system: { works: false, push }, uiDirectory: directory })
  admin = await house.person('admin')
})
afterAll(async () => {
  await house.close()
  rmSync(directory, { recursive: true, force: true })
})

/** What comes back on one connection, until the other side closes it or says nothing more for a while. */
function exchange(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(house.url).port), '127.0.0.1', () => socket.write(text))
    let heard = ''
    socket.on('data', (chunk) => (heard += chunk.toString()))
    // An answered, kept connection is silent then: that it was kept is what `Connection: close` in a request avoids.
    socket.setTimeout(2_000, () => socket.destroy())
    socket.on('close', () => resolve(heard))
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? resolve(heard) : reject(error)))
  })
}
const statuses = (heard: string): string[] =>
  [...heard.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => status ?? '')
const host = 'Host: 127.0.0.1\r\n'

describe('every answer', () => {
  const answers: [string, string, number][] = [
    ['a page', '/tasks', 200],
    ['a script', '/assets/a-1.js', 200],
    ['the embedded console', '/embed/signalbox-console.js', 200],
    ['nothing', '/no/such/page', 404],
    ['a broken address', '/%zz', 404],
    ['an operation', '/api/agents', 200],
    ['a failed sign-in', '/api/auth/callback', 401],
    ['bytes', `/api/artifacts/${'0'.repeat(64)}`, 404],
    ['no route', '/api/none', 404],
  ]
  test.each(answers)('%s carries the security headers', async (_, path, status) => {
    const { headers, ...reply } = await admin.api.get(path)
    expect(reply.status).toBe(status)
    expect(Object.fromEntries(headers)).toMatchObject({
      'strict-transport-security': 'max-age=31536000; includeSubDomains',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('camera=()'),
      'content-security-policy': expect.stringMatching(/^default-src 'none'; /),
      'cache-control': expect.stringMatching(/^(?:no-store|no-cache$|public, max-age=31536000, immutable$)/),
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(headers.get('content-security-policy')).not.toContain('unsafe-')
    expect(headers.get('server')).toBeNull()
    expect(headers.get('x-powered-by')).toBeNull()
  })

  test('a page of any kind runs no markup as script: Trusted Types are required on each', async () => {
    // By hand: fetch says itself that it is no navigation.
    const navigation = `${host}Sec-Fetch-Mode: navigate\r\nConnection: close\r\n\r\n`
    for (const path of ['/', '/tasks/1', '/api/auth/callback', '/api/auth/login']) {
      const [head = ''] = (await exchange(`GET ${path} HTTP/1.1\r\n${navigation}`)).split('\r\n\r\n')
      expect(head, path).toMatch(/^content-type: text\/html; charset=utf-8$/im)
      expect(head, path).toMatch(/^content-security-policy: default-src 'none'; .*require-trusted-types-for 'script'/im)
    }
  })

  test('in development mode, which is plain HTTP, nobody is told to use TLS from now on', async () => {
    const bare = await startConsole({ database: house.db, system: { works: false }, uiDirectory: directory })
    for (const path of ['/', '/api/auth/session'])
      expect((await bare.api.get(path)).headers.get('strict-transport-security')).toBeNull()
    await bare.close()
  })
})

test('no other origin is ever let in, whatever it asks', async () => {
  const document = new Document((await admin.api.get('/api/openapi.json')).body)
  const foreign = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  const paths = new Set([...document.operations.map(({ path }) => path), '/', '/assets/a-1.js'])
  for (const path of paths)
    for (const method of ['OPTIONS', 'GET', 'HEAD']) {
      // Nobody's: a stream would be held open.
      const { status, headers } = await house.api.fetch(path.replaceAll(/[{}]/g, ''), { method, headers: foreign })
      expect(
        [...headers.keys()].filter((name) => name.startsWith('access-control-')),
        path,
      ).toEqual([])
      if (method === 'OPTIONS') expect([status, headers.get('allow')], path).toEqual([405, expect.any(String)])
    }
})

describe('methods', () => {
  const document = async () => new Document((await admin.api.get('/api/openapi.json')).body)
  const isSignIn = (path: string): boolean => ['/api/auth/login', '/api/auth/callback'].includes(path)

  test('HEAD is GET without its content, and makes no export', async () => {
    const exports = async () =>
      (await admin.api.get('/api/audit?group=access')).text.match(/audit\.exported/g)?.length ?? 0
    const before = await exports()
    const reading = (await document()).operations.filter(({ method, path }) => method === 'GET' && !isSignIn(path))
    expect(reading.length).toBeGreaterThan(15)
    const formats = ['/api/audit/export?format=jsonl', '/', '/assets/a-1.js', '/no/such/page']
    const paths = [...reading.map(({ path }) => path.replaceAll(/[{}]/g, '')), ...formats]
    const asked = async (method: string) => {
      const answers = []
      for (const path of paths) {
        const { status, headers, body } = await admin.api.fetch(path, { method })
        // Of a stream only the head, for its end is a minute away.
        const content = method === 'HEAD' ? await new Response(body).text() : await body?.cancel()
        answers.push([path, status, headers.get('content-type'), content ?? ''])
      }
      return answers
    }
    const heads = await asked('HEAD')
    expect(await exports()).toBe(before)
    expect(heads).toEqual(await asked('GET'))
    expect(await exports()).toBe(before + 2)
    expect((await house.api.fetch('/api/tasks', { method: 'HEAD' })).status).toBe(401)
  })

  test('another method of an address that is there is 405, and says which there are', async () => {
    const allowed = async (method: string, path: string) => {
      const { status, headers } = await admin.api.fetch(path, { method })
      return [status, headers.get('allow')?.split(', ') ?? null]
    }
    const { operations } = await document()
    for (const { path } of operations) {
      const methods = new Set(operations.filter((one) => one.path === path).map(({ method }) => method))
      if (methods.has('GET') && !isSignIn(path)) methods.add('HEAD')
      // More where another address, with a name in the word's place, takes it.
      const answer = await allowed('PATCH', path.replaceAll(/[{}]/g, ''))
      expect(answer, path).toEqual([405, expect.arrayContaining([...methods])])
    }
    expect(await allowed('HEAD', '/api/auth/login')).toEqual([405, ['GET']])
    expect(await allowed('POST', '/tasks/1')).toEqual([405, ['GET', 'HEAD']])
    expect(await allowed('PUT', '/api/agents')).toEqual([405, ['GET', 'HEAD', 'POST']])
    expect(await allowed('POST', '/api/none')).toEqual([404, null])
    // No method that the router knows, and a digest that nobody can read: each is answered for what it is.
    expect(statuses(await exchange(`PROPFIND /api/tasks HTTP/1.1\r\n${host}Connection: close\r\n\r\n`))).toEqual([
      '405',
    ])
    expect(await allowed('GET', `/api/commands/${'x'.repeat(4_000)}`)).toEqual([404, null])
  })
})

describe('a request that two could read differently is read by nobody', () => {
  const hidden = `POST /api/auth/logout HTTP/1.1\r\n${host}Origin: ${pageOrigin}\r\n\r\n`
  const malformed: [string, string][] = [
    ['two lengths', `POST / HTTP/1.1\r\n${host}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`],
    [
      'a length and chunks',
      `POST / HTTP/1.1\r\n${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    [
      'chunked, but not last',
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    ['a blank before the colon', `POST / HTTP/1.1\r\n${host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a folded line', `GET / HTTP/1.1\r\n${host}X-A: b\r\n c\r\n\r\n`],
    ['bare line feeds', `GET / HTTP/1.1\nHost: 127.0.0.1\n\n`],
    [
      'a bare line feed in a chunk',
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n2\nxx\r\n{}\r\n0\r\n\r\n`,
    ],
    ['NUL in a value', `GET / HTTP/1.1\r\n${host}X-A: b\0c\r\n\r\n`],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['two hosts', `GET / HTTP/1.1\r\n${host}Host: evil.example\r\nConnection: close\r\n\r\n`],
    [
      'two origins',
      `POST /api/auth/logout HTTP/1.1\r\n${host}Origin: ${pageOrigin}\r\nOrigin: ${pageOrigin}\r\nConnection: close\r\n\r\n`,
    ],
    ['two keys', `GET / HTTP/1.1\r\n${host}Idempotency-Key: a\r\nIdempotency-Key: b\r\nConnection: close\r\n\r\n`],
  ]
  test.each(malformed)('%s', async (_, text) => {
    const heard = await exchange(text)
    expect(statuses(heard)).toEqual(['400'])
    expect(heard).not.toMatch(/signedOut|llhttp|HPE_|at .+:\d+/)
  })

  test('a head of more than 16 KiB is refused, in the shape of every refusal', async () => {
    const heard = await exchange(`GET / HTTP/1.1\r\n${host}X-A: ${'a'.repeat(17_000)}\r\n\r\n`)
    expect(statuses(heard)).toEqual(['431'])
    expect(heard.split('\r\n\r\n')[1]).toBe('{"error":{"message":"Invalid request."}}')
    expect(heard).toMatch(/^content-security-policy: default-src 'none'; /m)
    expect(heard).toMatch(/^strict-transport-security: max-age=31536000/m)
  })

  test('no method shows a caller their own headers, opens a tunnel or changes the protocol', async () => {
    const cookie = `Cookie: ${cookieNames.session}=${admin.token}\r\n`
    const traced = await exchange(`TRACE /api/agents HTTP/1.1\r\n${host}${cookie}Connection: close\r\n\r\n`)
    expect(statuses(traced)).toEqual(['405'])
    expect(traced).not.toContain(admin.token)
    expect(await exchange(`CONNECT 127.0.0.1:1 HTTP/1.1\r\n${host}\r\n`)).toBe('')
    const upgraded = await exchange(
      `GET /api/agents HTTP/1.1\r\n${host}Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`,
    )
    expect(statuses(upgraded)).not.toContain('101')
  })
})

test('no route takes a body of more than 16 MiB: each says so after the first byte, or knows its caller before', async () => {
  const document = new Document((await admin.api.get('/api/openapi.json')).body)
  for (const { method, path, permission } of document.operations.filter((one) => one.method !== 'GET')) {
    const head = [
      `${method} ${path.replaceAll(/[{}]/g, '')} HTTP/1.1\r\n${host}Origin: ${pageOrigin}`,
      `Cookie: ${cookieNames.session}=${admin.token}`,
      'Content-Type: application/json',
      `Content-Length: ${bodyLimitBytes + 1}`,
      'Connection: close',
    ]
    const heard = await exchange(`${head.join('\r\n')}\r\n\r\n{`)
    expect(statuses(heard), path).toEqual([permission === 'agent' ? '401' : '400'])
  }
}, 60_000)

describe('the log', () => {
  const planted = (): string => `planted-${randomBytes(12).toString('hex')}`

  test('names a failure by its request, and tells neither headers nor bodies nor what a row held', async () => {
    const secrets = [planted(), planted(), planted(), planted(), planted()] as const
    const [value, row, key, body, cookie] = secrets
    const defect = Object.assign(
      new Error('A row cannot be read.', { cause: Object.assign(new Error('deeper'), { row }) }),
      {
        sql: 'select 1',
        values: [value],
        detail: `Key (name)=(${value}) already exists.`,
        code: '23505',
      },
    )
    const broken = await startConsole({
      database: house.db,
      system: { works: false },
      uiDirectory: null,
      identify: () => {
        throw defect
      },
    })
    const headers = { 'idempotency-key': key, cookie: `a=${cookie}`, authorization: `Bearer ${cookie}` }
    const reply = await broken.api.post(`/api/admin/security?q=${body}`, { text: body }, headers)
    expect(reply.status).toBe(500)
    for (const secret of secrets) expect(reply.text).not.toContain(secret)
    const [line = '', ...more] = broken.log.errors()
    expect(more).toEqual([])
    for (const secret of secrets) expect(line).not.toContain(secret)
    expect(JSON.parse(line)).toMatchObject({
      msg: 'a request failed',
      reqId: reply.headers.get('x-request-id'),
      err: { message: 'A row cannot be read.', sql: 'select 1', code: '23505', cause: { message: 'deeper' } },
    })
    await broken.close()
  })

  test('writes no field that is called like a secret, nor one inside another', () => {
    const log = openTestLog()
    const secret = planted()
    const names = ['authorization', 'cookie', 'set-cookie', 'token', 'access_token', 'clientSecret', 'client_secret']
    for (const name of names) {
      log.logger.info({ [name]: secret, inside: { [name]: secret } }, 'said')
      log.logger.info({ [name]: { value: secret } }, 'said')
    }
    expect(log.lines()).toHaveLength(2 * names.length)
    expect(log.lines().join('')).not.toContain(secret)
  })

  test('of sign-in, sessions and deliveries holds no secret that was sent', async () => {
    const secrets = [planted(), planted(), planted(), planted()] as const
    const [code, state, bearer, session] = secrets
    await house.api.get(`/api/auth/callback?code=${code}&state=${state}`, { cookie: `${cookieNames.login}=${session}` })
    await house.api.get('/api/agents', { cookie: `${cookieNames.session}=${session}` })
    await house.api.get(`/api/auth/login?returnTo=/${code}`)
    const registration = '/api/webhooks/a2a/01a00000-0000-7000-8000-000000000001'
    const reply = await house.api.post(registration, { token: state }, { authorization: `Bearer ${bearer}` })
    expect(reply.status).toBe(401)
    await exchange(`GET / HTTP/1.1\r\n${host}Cookie: ${session}\0\r\n\r\n`)
    const written = [...house.log.lines(), ...house.lines.map((line) => JSON.stringify(line))].join('\n')
    for (const secret of [...secrets, admin.token]) expect(written).not.toContain(secret)
  })
})
