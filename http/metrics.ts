/**
 * Metrics and health, on a listener of their own that only this machine can reach: the console's own port asks everybody to
 * sign in, and a scraper cannot. Off unless A2A_METRICS_PORT is set. No id of an agent, a person or a task is a label.
 * Does not own what is measured of the loops and threads (actors/vitals.ts) or of the database (persistence/gauges.ts).
 */
import fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { lookEnded, requestFailed, workEnded } from '../actors/diagnostics.ts'
import { instruments, type System } from '../actors/system.ts'
import { vitalsOf } from '../actors/vitals.ts'
import { isLoopbackHost } from '../domain/loopback.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Database } from '../persistence/database.ts'
import { ping, readChainGauge, readGauges } from '../persistence/gauges.ts'
import { answerFailure } from './refusals.ts'

interface MetricsOptions {
  readonly system: System
  readonly db: Database
  /** Aborts when the process is about to stop: from then on it is not ready. */
  readonly drain: AbortSignal
  readonly log: FastifyBaseLogger
}

/** A database that does not answer within this is not ready, milliseconds. */
const readyPatienceMs = 1_000
/** From a light read to a wait of 50 s. */
const secondsBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]

/** What this process knows of itself; returns how to read it anew. */
function ownGauges(registry: Registry, { system, db }: MetricsOptions): () => void {
  const registers = [registry]
  const loops = new Gauge({
    name: 'signalbox_loop_up',
    help: '1 while a loop runs here',
    labelNames: ['loop'],
    registers,
  })
  const restarts = new Gauge({
    name: 'signalbox_loop_restarts',
    help: 'Failures after which a loop was started again, of those remembered',
    labelNames: ['loop'],
    registers,
  })
  const places = new Gauge({
    name: 'signalbox_work_places_taken',
    help: 'Leases that this process holds, by kind of actor',
    labelNames: ['kind'],
    registers,
  })
  const pool = new Gauge({
    name: 'signalbox_database_connections',
    help: 'Connections of the reading pool; waiting: callers without one',
    labelNames: ['state'],
    registers,
  })
  const parser = new Gauge({
    name: 'signalbox_parser_tasks',
    help: 'Batches of frames in the parsing threads',
    labelNames: ['state'],
    registers,
  })
  const lost = new Counter({
    name: 'signalbox_parser_tasks_lost_total',
    help: 'Batches of frames that nobody has read: their thread died or took too long, or none was free',
    registers,
  })
  let known = 0
  const queued = new Gauge({
    name: 'signalbox_commit_queue',
    help: 'Steps and operations that wait for a commit',
    registers,
  })
  const readers = new Gauge({
    name: 'signalbox_waiting_readers',
    help: 'Open event streams and requests that wait for a commit',
    registers,
  })
  return () => {
    const vitals = vitalsOf(system, db, instruments)
    for (const { name, state, restarts: failed, places: held } of vitals.loops) {
      loops.set({ loop: name }, state === 'up' ? 1 : 0)
      restarts.set({ loop: name }, failed)
      if (held) places.set({ kind: name }, held.taken)
    }
    const { inUse, idle, waiting } = vitals.database
    for (const [state, count] of Object.entries({ inUse, idle, waiting })) pool.set({ state }, count)
    const { underWay, queued: waits, tasksLost } = vitals.parser
    parser.set({ state: 'underWay' }, underWay)
    parser.set({ state: 'queued' }, waits)
    lost.inc(tasksLost - known)
    known = tasksLost
    queued.set(system.runtime.queued)
    readers.set(system.changes.listeners)
  }
}

/** What happened: facts of the commits that this process made, so that the sum over all processes counts each once. */
function countFacts(registry: Registry, { system }: MetricsOptions): void {
  const facts = new Counter({
    name: 'signalbox_facts_total',
    help: 'Facts that this process committed, by kind',
    labelNames: ['kind'],
    registers: [registry],
  })
  // Known before they happen: an alert on a series that is not there yet does not fire at its first step.
  for (const kind of ['command.accepted', 'command.succeeded', 'command.failed', 'command.uncertain'] as const)
    facts.inc({ kind }, 0)
  system.changes.subscribe(({ commit }) => {
    for (const [kind, count] of commit?.facts ?? []) facts.inc({ kind }, count)
  })
}

/** An agent has two seconds for a look, and what it saw is committed. */
const lookBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4]
/** From a quick answer to a stream of ten minutes. */
const workBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600]

/**
 * What the work under leases took and came to, how long looks held streams back, and why requests to agents failed; returns how to stop
 * listening.
 */
function countWork(registry: Registry): () => void {
  const registers = [registry]
  const work = new Histogram({
    name: 'signalbox_work_seconds',
    help: 'From the beginning of a piece of work under a lease to its end, by how it ended',
    labelNames: ['kind', 'work', 'end'],
    buckets: workBuckets,
    registers,
  })
  const failed = new Counter({
    name: 'signalbox_request_failures_total',
    help: 'Requests to agents without a whole answer, by reason: refused by the policy, or failed',
    labelNames: ['code'],
    registers,
  })
  const looks = new Histogram({
    name: 'signalbox_stream_look_seconds',
    help: 'For how long a stream was held back by a look at its task beside it, by how that ended',
    labelNames: ['end'],
    buckets: lookBuckets,
    registers,
  })
  const stops = [
    lookEnded.subscribe(({ end, seconds }) => looks.observe({ end }, seconds)),
    workEnded.subscribe(({ kind, work: name, end, seconds }) => work.observe({ kind, work: name, end }, seconds)),
    requestFailed.subscribe(({ code }) => failed.inc({ code })),
  ]
  return () => stops.forEach((stop) => stop())
}

/** What the database knows, for every process alike; a database that is away leaves these out and says so. */
function storedGauges(registry: Registry, { db, log, system }: MetricsOptions): () => Promise<void> {
  const registers = [registry]
  const labelNames = ['kind'] as const
  const live = new Gauge({ name: 'signalbox_actors_live', help: 'Actors that have not ended', labelNames, registers })
  const due = new Gauge({ name: 'signalbox_actors_due', help: 'Due and held by nobody', labelNames, registers })
  const leased = new Gauge({ name: 'signalbox_actors_leased', help: 'Held by some process', labelNames, registers })
  const oldest = new Gauge({
    name: 'signalbox_oldest_due_seconds',
    help: 'How long the oldest due actor waits; 0 when none does',
    labelNames,
    registers,
  })
  const unlinked = new Gauge({ name: 'signalbox_audit_unlinked', help: 'Audit rows without a link', registers })
  const faults = new Gauge({
    name: 'signalbox_audit_chain_faults',
    help: 'Organizations whose audit chain did not hold when it was last followed',
    registers,
  })
  const up = new Gauge({ name: 'signalbox_database_up', help: '1 when the database answered this scrape', registers })
  const kinds = Object.keys(system.kinds)
  return async () => {
    for (const gauge of [live, due, leased, oldest]) gauge.reset()
    const both = Promise.all([readGauges(db.pool, kinds), readChainGauge(db.pool)])
    const [rows, chain] = (await inTime(both, log)) ?? [null, null]
    up.set(rows === null ? 0 : 1)
    // Not a number, where it is not known: 0 would say that all is well.
    unlinked.set(chain?.unlinked ?? Number.NaN)
    faults.set(chain?.faults ?? Number.NaN)
    for (const { kind, live: all, due: waiting, leased: held, oldestDueSeconds } of rows ?? []) {
      live.set({ kind }, all)
      due.set({ kind }, waiting)
      leased.set({ kind }, held)
      oldest.set({ kind }, oldestDueSeconds ?? 0)
    }
  }
}

/** Null when it failed, which is logged, or took too long: whoever asks is told that the database does not answer. */
async function inTime<T>(answer: Promise<T>, log: FastifyBaseLogger): Promise<T | null> {
  const failed = (err: unknown): null => {
    log.warn({ err }, 'a scrape could not read the database')
    return null
  }
  const late = Promise.withResolvers<null>()
  const timer = setTimeout(() => late.resolve(null), readyPatienceMs)
  try {
    return await Promise.race([answer.catch(failed), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function readiness({ system, db, drain, log }: MetricsOptions) {
  const pinged = ping(db.pool).then(() => true)
  const database = (await inTime(pinged, log)) === true
  const down = vitalsOf(system, db, instruments).loops.filter(({ state }) => state !== 'up' && state !== 'left')
  const checks = { database, loops: down.map(({ name }) => name), draining: drain.aborted }
  return { ready: database && down.length === 0 && !drain.aborted, checks }
}

export interface Metrics {
  /** Counts the console's requests; to be called before it listens. */
  watch(app: FastifyInstance): void
  readonly server: FastifyInstance
}

export function openMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const readOwn = ownGauges(registry, options)
  const readStored = storedGauges(registry, options)
  countFacts(registry, options)
  const stopCounting = countWork(registry)
  const registers = [registry]
  const answered = new Counter({
    name: 'signalbox_http_answers_total',
    help: 'Answers of the console, by the route as it is declared',
    labelNames: ['method', 'route', 'status'],
    registers,
  })
  const seconds = new Histogram({
    name: 'signalbox_http_answer_seconds',
    help: 'From a request to the end of its answer; streams last as long as they do',
    labelNames: ['route'],
    buckets: secondsBuckets,
    registers,
  })
  const server = fastify({
    loggerInstance: options.log,
    logController: new LogController({ disableRequestLogging: true }),
  })
  server.addHook('onClose', () => stopCounting())
  server.addHook('onRequest', (request, _reply, next) => {
    // A name that a foreign page made point here reads nothing.
    next(isLoopbackHost(request.hostname) ? undefined : new Refusal('action.forbidden'))
  })
  server.setErrorHandler(answerFailure)
  server.setNotFoundHandler(() => {
    throw new Refusal('route.unknown')
  })
  server.get('/metrics', async (_request, reply) => {
    // Read now, not by each gauge's own `collect`: one read fills several, and the first of them would be a scrape late.
    readOwn()
    await readStored()
    const text = await registry.metrics()
    return reply.type(registry.contentType).send(text)
  })
  server.get('/healthz', () => ({ status: 'alive' }))
  server.get('/readyz', async (_request, reply) => {
    const { ready, checks } = await readiness(options)
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', checks })
  })
  return {
    server,
    watch(app) {
      app.addHook('onResponse', (request, reply, next) => {
        const route = request.routeOptions.url ?? 'unknown'
        answered.inc({ method: request.method, route, status: String(reply.statusCode) })
        seconds.observe({ route }, reply.elapsedTime / 1000)
        next()
      })
    },
  }
}
