/**
 * The console in a process of its own, composed as bin/console.ts composes it, with a side door for the bench: what is not
 * finished, commands accepted below HTTP, the event loop's delay, a CPU profile. A child process.
 */
import { executionAsyncId } from 'node:async_hooks'
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session, type Profiler } from 'node:inspector/promises'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { sql } from 'slonik'
import { z } from 'zod'
import { openSystem, type Running } from '../../bin/composition.ts'
import { openLog } from '../../bin/log.ts'
import { readConfig } from '../../bin/config.ts'
import { FrameSplitter } from '../../a2a/sse.ts'
import type { StreamFormat, StreamParser, WholeFrames } from '../../actors/threads/pool.ts'
import { provision } from '../../actors/provisioning.ts'
import { instruments } from '../../actors/system.ts'
import { parseTask } from '../../actors/threads/stream-parser.ts'
import type { Viewer } from '../../domain/access.ts'
import { buildServer } from '../../http/server.ts'
import { crowd } from '../support/crowd.ts'
import { answerParent } from './child.ts'
import { asOperator } from './history.ts'
import { flow } from './rounds.ts'

export interface ConsoleOptions {
  /** PostgreSQL's URL; null: the embedded database in `folder`. */
  readonly url: string | null
  readonly folder: string
  readonly cardUrl: string
  /** `in place` is not the product's: it shows what the threads are for. */
  readonly parsing?: 'in threads' | 'in place'
}

let running: Running
let viewer: Viewer
let agentId = ''
/** Somebody with a few grants, once `staff` has made them. */
let operator: Viewer | null = null
let server: ReturnType<typeof buildServer>
const drain = new AbortController()
const delay = monitorEventLoopDelay({ resolution: 1 })
const inspector = new Session()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const methods = {
  open: async ({ url, folder, cardUrl, parsing }: ConsoleOptions) => {
    mkdirSync(folder, { recursive: true })
    const config = readConfig({
      A2A_DATA_DIR: folder,
      ...(url === null ? {} : { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }),
      A2A_AUTH_MODE: 'development',
    })
    const log = openLog('warn')
    running = await openSystem(config, log, true, true, { limits: crowd })
    if (parsing === 'in place') Object.assign(running.system.pool, { openStream: openInPlace })
    viewer = await running.system.localAdministrator()
    agentId = (await running.system.agents.register(viewer, cardUrl)).id
    server = buildServer({
      system: running.system,
      db: running.db,
      auth: { mode: 'development' },
      identify: ({ headers }) => Promise.resolve(headers[asOperator] === undefined ? viewer : operator),
      loopbackOnly: true,
      sidebandUris: [],
      drain: drain.signal,
      uiDirectory: null,
      version: 'bench',
      log,
    })
    const origin = await server.listen({ host: '127.0.0.1', port: 0 })
    return { origin, agentId, viewer }
  },
  /** Registers agents until there are so many, and makes an operator who holds two of them and one skill of a third. */
  staff: async ({ agents: count }: { agents: number }) => {
    const agents = [agentId]
    while (agents.length < count)
      agents.push((await running.system.agents.register(viewer, `http://127.0.0.1:9/${agents.length}.json`)).id)
    const { organizationId } = viewer
    const identity = { issuer: 'https://provider.example', subject: 'operator' }
    const person = { identity, name: 'Operator', role: 'operator' as const }
    const { personId: userId, membershipId } = await provision(
      { db: running.db, instruments, changes: running.system.changes },
      'local',
      person,
    )
    operator = { organizationId, userId, membershipId, role: 'operator', displayName: person.name }
    const to = { action: 'grant', subjectType: 'membership', subjectId: membershipId, permission: 'operate' } as const
    for (const [n, id] of agents.slice(0, 3).entries())
      await running.system.access.change(viewer, { ...to, agentId: id, skillId: n < 2 ? null : 'invoices' })
    return { agentIds: agents, membershipId }
  },
  /** Whether anything in this process has made Node.js follow every promise: each step then has an id of its own. */
  followsPromises: async (_: null) => {
    await Promise.resolve()
    const before = executionAsyncId()
    await Promise.resolve()
    return executionAsyncId() !== before
  },
  /** Live command actors: a finished one is in the archive. */
  unfinished: (_: null) => unfinished(),
  /** Live subscription actors that are at work. */
  following: (_: null) =>
    running.db.pool.oneFirst(
      sql.type(Count)`select count(*) from actor where kind = 'subscription' and work is not null`,
    ),
  /** Live subscription actors, at work or between two attempts. */
  subscriptions: (_: null) =>
    running.db.pool.oneFirst(sql.type(Count)`select count(*) from actor where kind = 'subscription'`),
  /** Statements in one transaction, then statistics as autovacuum would have made them: for a past (history.ts). */
  write: ({ statements }: { statements: readonly string[] }) =>
    running.db.raw(async (client) => {
      await client.query('set statement_timeout = 0')
      await client.query('begin')
      for (const statement of statements) await client.query(statement)
      await client.query('commit')
      await client.query('vacuum analyze')
    }),
  outcomes: (_: null) =>
    running.db.pool.any(sql.type(z.object({ status: z.string(), count: z.number() }))`
      select status, count(*) from command group by status`),
  /** Accept → finished under the last load, milliseconds, by the rows' own times (batch start to batch start). */
  durations: ({ since }: { since: string }) =>
    running.db.pool.anyFirst(sql.type(z.object({ ms: z.number() }))`
      select extract(epoch from updated_at - created_at)::float8 * 1000 as ms from command
      where created_at >= ${since} and status = 'succeeded' limit 20000`),
  /** The flow without HTTP: what the floors below cost. */
  flowInside: ({ forMs, concurrency, round }: { forMs: number; concurrency: number; round: string }) =>
    flow({
      forMs,
      concurrency,
      accept: (n) => {
        const body = { action: 'send' as const, tenant: '', text: 'Do it.' }
        return running.system.commands.accept(viewer, { agentId, body, idempotencyKey: `${round}-${n}` })
      },
      unfinished,
    }),
  /** Resident bytes after a collection: what the process keeps. */
  memory: (_: null) => {
    collectGarbage()
    return process.memoryUsage.rss()
  },
  /** The most that was ever resident, bytes. */
  peakMemory: (_: null) => process.resourceUsage().maxRSS * 1024,
  watchLoop: (_: null) => {
    delay.reset()
    delay.enable()
  },
  /** The worst and the 99th percentile delay since `watchLoop`, milliseconds. */
  loopDelay: (_: null) => {
    delay.disable()
    return { max: delay.max / 1e6, p99: delay.percentile(99) / 1e6 }
  },
  profile: async (_: null) => {
    inspector.connect()
    await inspector.post('Profiler.enable')
    await inspector.post('Profiler.start')
  },
  endProfile: async ({ folder, name }: { folder: string; name: string }) => {
    const { profile }: Profiler.StopReturnType = await inspector.post('Profiler.stop')
    inspector.disconnect()
    const file = join(folder, `${name}.cpuprofile`)
    writeFileSync(file, JSON.stringify(profile))
    return file
  },
}
export type ConsoleMethods = typeof methods

const Count = z.object({ count: z.number() })
const unfinished = (): Promise<number> =>
  running.db.pool.oneFirst(sql.type(Count)`select count(*) from actor where kind = 'command'`)

const frameLimitBytes = 25 * 1024 * 1024

function openInPlace({ endpoint, requestId }: StreamFormat): StreamParser {
  const splitter = new FrameSplitter(frameLimitBytes)
  const whole = (frames: Uint8Array[]): WholeFrames => ({
    bytes: frames.reduce((sum, frame) => sum + frame.length, 0),
    parse: () => Promise.resolve(parseTask({ kind: 'frames', endpoint, requestId, frames })),
  })
  return { push: (chunk) => whole(splitter.push(chunk)), end: () => whole(splitter.end()) }
}

answerParent(methods, async () => {
  drain.abort()
  await server.close()
  await running.close()
})
