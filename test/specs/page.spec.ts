/** The console's page: served for every address that its router knows, under a policy that trusts nobody else. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startConsole, type TestConsole } from '../support/console.ts'

const files = {
  'index.html': '<!doctype html><title>Signalbox</title>',
  'favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-CYCEvEgM.js': 'export {}',
  'charts/command@1.json': '{}',
  'charts/index.json': '{}',
  'embed/signalbox-console.js': 'export {}',
}

/** Of Chromium, for what is typed into its address bar. */
const ofBrowser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

const headersOfPage = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'self'; " +
    "script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; worker-src 'self'; " +
    "require-trusted-types-for 'script'; trusted-types lit-html",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': expect.stringContaining('camera=()') as string,
}

describe('the page', () => {
  let house: TestConsole
  let directory: string
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'signalbox-page-'))
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(directory, name, '..'), { recursive: true })
      writeFileSync(join(directory, name), text)
    }
    house = await startConsole({ database: 'postgresql', system: { works: false }, uiDirectory: directory })
  })
  afterAll(async () => {
    await house.close()
    rmSync(directory, { recursive: true, force: true })
  })

  test.each([
    '/',
    '/tasks',
    '/tasks/',
    '/tasks/anything',
    '/tasks?filter=done',
    '/agents',
    '/agents/1',
    '/actors',
    '/actors/command/1',
    '/access/teams',
    '/audit/',
  ])('%s is the page, never stored, under the strict policy', async (path) => {
    const reply = await house.api.get(path)
    expect(reply.status).toBe(200)
    expect(reply.text).toBe(files['index.html'])
    expect((await house.api.fetch(path, { method: 'HEAD' })).status).toBe(200)
    expect(Object.fromEntries(reply.headers)).toMatchObject(headersOfPage)
  })

  test.each(['/taks', '/agents/x/y/z', '/actors/command', '/t%C3%A4sks?filter=done', '//:taks', '/apis'])(
    '%s is nothing, and a person is told so by the page, under the same policy',
    async (path) => {
      const reply = await house.api.get(path, { accept: ofBrowser })
      expect([reply.status, reply.text]).toEqual([404, files['index.html']])
      expect(Object.fromEntries(reply.headers)).toMatchObject(headersOfPage)
      const head = await house.api.fetch(path, { method: 'HEAD', headers: { accept: ofBrowser } })
      expect([head.status, await head.text()]).toEqual([404, ''])
    },
  )

  test.each([
    ['GET', '/taks', '*/*'],
    ['GET', '/taks', 'application/json'],
    ['GET', '/favicon.ico', 'image/avif,image/webp,*/*;q=0.8'],
    ['GET', '/favicon.ico', ofBrowser],
    ['GET', '/.well-known/agent-card.json', ofBrowser],
    ['GET', '/assets/', ofBrowser],
    ['GET', '/assets/missing', ofBrowser],
    ['GET', '/api', ofBrowser],
    ['GET', '/api/none', ofBrowser],
    ['GET', '/api/tasks/1', ofBrowser],
    ['POST', '/taks', ofBrowser],
    ['PUT', '/agents/x/y/z', ofBrowser],
  ])('%s %s by whoever accepts %s is answered as a program is', async (method, path, accept) => {
    const reply = await house.api.fetch(path, { method, headers: { accept } })
    expect(reply.status).toBe(404)
    expect(await reply.json()).toEqual({ error: { message: expect.stringMatching(/not found\.$/i) as string } })
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  test('who is not signed in is answered alike: the page asks who they are', async () => {
    const options = { database: house.db, system: { works: false }, uiDirectory: directory, identify: () => null }
    const closed = await startConsole(options)
    const statuses = ['/tasks', '/taks', '/api/none', '/api/tasks'].map(async (path) => {
      const { status, text } = await closed.api.get(path, { accept: ofBrowser })
      return [status, text === files['index.html']]
    })
    expect(await Promise.all(statuses)).toEqual([
      [200, true],
      [404, true],
      [404, false],
      [401, false],
    ])
    await closed.close()
  })

  test('a name that a foreign page made point here is refused before anything is looked for', async () => {
    const { hostname, port } = new URL(house.url)
    const status = await new Promise((resolve) => {
      const headers = { host: 'elsewhere.example', accept: ofBrowser }
      request({ hostname, port, path: '/taks', headers }, (reply) => resolve(reply.resume().statusCode)).end()
    })
    expect(status).toBe(403)
  })

  const immutable = 'public, max-age=31536000, immutable'
  test.each([
    ['/assets/index-CYCEvEgM.js', 'application/javascript; charset=utf-8', immutable],
    ['/charts/command@1.json', 'application/json; charset=utf-8', immutable],
    ['/charts/index.json', 'application/json; charset=utf-8', 'no-cache'],
    ['/embed/signalbox-console.js', 'application/javascript; charset=utf-8', 'no-cache'],
    ['/favicon.svg', 'image/svg+xml', 'no-cache'],
  ])('%s is served as %s, kept as %s', async (path, type, kept) => {
    const reply = await house.api.get(path)
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toBe(type)
    expect(reply.headers.get('cache-control')).toBe(kept)
    const head = await house.api.fetch(path, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    // Without these two, fetch adds `no-cache` of its own to a conditional request.
    const asBrowsersDo = { 'cache-control': 'max-age=0', pragma: 'none' }
    const again = await house.api.get(path, { 'if-none-match': reply.headers.get('etag') ?? '', ...asBrowsersDo })
    expect(again.status).toBe(304)
  })

  test.each(['/assets/', '/assets/missing.js', '/..%2fpackage.json', '/assets/..%2f..%2f..%2fetc%2fpasswd', '/taskss'])(
    '%s is nothing',
    async (path) => {
      const reply = await house.api.get(path)
      expect(reply.status).toBe(404)
      expect(reply.text).not.toContain('<!doctype')
    },
  )

  test('a console without a page serves the API alone', async () => {
    const bare = await startConsole({ database: house.db, system: { works: false }, uiDirectory: null })
    expect((await bare.api.get('/')).status).toBe(404)
    expect((await bare.api.get('/api/auth/session')).status).toBe(200)
    await bare.close()
  })
})
