/**
 * Metrics and health: a listener of its own on loopback, off by default, that a scraper and an orchestrator can ask without
 * signing in. Asked of a real process, as they would.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { spawnConsole, type SpawnedConsole } from '../support/console.ts'
import { freePort } from '../support/free-port.ts'

let home: string
let port: number
let console: SpawnedConsole
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'signalbox-metrics-'))
  port = await freePort()
  console = await spawnConsole({ dataDirectory: home, database: 'pglite', env: { A2A_METRICS_PORT: String(port) } })
}, 60_000)
afterAll(async () => {
  await console.kill()
  rmSync(home, { recursive: true, force: true })
})

const scrape = async (): Promise<Map<string, number>> => {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

test('tells the loops, the queue, the database and the process', async () => {
  const metrics = await scrape()
  expect(metrics.get('signalbox_database_up')).toBe(1)
  expect(metrics.get('signalbox_audit_chain_faults')).toBe(0)
  expect(metrics.get('signalbox_audit_unlinked')).toBe(0)
  expect(metrics.get('signalbox_loop_up{loop="command"}')).toBe(1)
  expect(metrics.get('signalbox_commit_queue')).toBe(0)
  expect(metrics.get('signalbox_parser_tasks_lost_total')).toBe(0)
  expect(metrics.get('process_resident_memory_bytes')).toBeGreaterThan(0)
  expect(metrics.has('nodejs_eventloop_lag_seconds')).toBe(true)
})

test('counts answers by the route as it is declared, so that no id becomes a label', async () => {
  const id = '01a00000-0000-7000-8000-000000000001'
  expect((await fetch(`${console.url}/api/tasks/${id}`)).status).toBe(404)
  const metrics = await scrape()
  expect(metrics.get('signalbox_http_answers_total{method="GET",route="/api/tasks/:taskId",status="404"}')).toBe(1)
  expect([...metrics.keys()].join('\n')).not.toContain(id)
})

test('counts what happened, by the kind of the fact', async () => {
  const before = await scrape()
  expect(before.get('signalbox_facts_total{kind="command.uncertain"}')).toBe(0)
  const json = { 'content-type': 'application/json' }
  // Nobody listens there: the command is accepted, and fails after three looks for the card.
  const body = JSON.stringify({ cardUrl: `http://127.0.0.1:${await freePort()}/card.json` })
  const registered = await fetch(`${console.url}/api/agents`, { method: 'POST', headers: json, body })
  const { agent } = (await registered.json()) as { readonly agent: { readonly id: string } }
  const headers = { ...json, 'idempotency-key': 'counted' }
  const sent = { method: 'POST', headers, body: '{"text":"hello"}' }
  expect((await fetch(`${console.url}/api/agents/${agent.id}/commands`, sent)).status).toBe(202)
  await expect.poll(async () => (await scrape()).get('signalbox_facts_total{kind="command.failed"}')).toBe(1)
  const after = await scrape()
  expect(after.get('signalbox_facts_total{kind="command.accepted"}')).toBe(1)
  expect(after.get('signalbox_facts_total{kind="agent.registered"}')).toBe(1)
  expect(after.get('signalbox_facts_total{kind="command.uncertain"}')).toBe(0)
  // Three looks for the card, each a piece of work whose outcome was stored, and a request that found nobody.
  expect(after.get('signalbox_work_seconds_count{kind="command",work="discover",end="done"}')).toBe(3)
  expect(after.get('signalbox_request_failures_total{code="unreachable"}')).toBeGreaterThanOrEqual(3)
})

test('is alive and ready', async () => {
  const alive = await fetch(`http://127.0.0.1:${port}/healthz`)
  expect(await alive.json()).toEqual({ status: 'alive' })
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`)
  expect(ready.status).toBe(200)
  expect(await ready.json()).toEqual({ status: 'ready', checks: { database: true, loops: [], draining: false } })
})

test('answers nobody who came by a foreign name, as a page that rebinds DNS would', async () => {
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const asked = request(
      { port, host: '127.0.0.1', path: '/metrics', headers: { host: 'metrics.example' } },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      },
    )
    asked.once('error', reject).end()
  })
  expect(status).toBe(403)
})

test('the console itself serves none of it, and says which version it is', async () => {
  const described = await fetch(`${console.url}/api/openapi.json`)
  const { version }: { version: string } = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(await described.json()).toMatchObject({ info: { title: 'Signalbox', version } })
  for (const path of ['/metrics', '/healthz', '/readyz']) expect((await fetch(console.url + path)).status).toBe(404)
})
