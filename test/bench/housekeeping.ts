/**
 * The embedded database under days of load, with its housekeeping and without: `npm run test:housekeeping -- [--days 1]
 * [--commands 20000]`. Each day has so many commands, each an accept, a delivery, a reply, three events and an end, through
 * the real runtime on a clock that runs ahead; housekeeping comes every five simulated minutes, forgetting every ten.
 * Prints the size of the directory as the days go by. Owns the figures of docs/operations.md.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import type { StreamResponse } from '../../a2a/messages.ts'
import { acceptCommand, newCommand } from '../../actors/command.ts'
import { Housekeeping, keepingByDefault } from '../../actors/housekeeping.ts'
import type { Operation } from '../../actors/loop/operation.ts'
import { instruments, System } from '../../actors/system.ts'
import { observed } from '../../actors/threads/stream-parser.ts'
import type { Viewer } from '../../domain/access.ts'
import type { Report, ToldFact } from '../../domain/fact.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'

const dayMs = 24 * 60 * 60_000
/** Coarser than the half minute of the real loop, which is the harder case: more is left to each round. */
const roundMs = 5 * 60_000
const MB = 1024 * 1024

const tell: Operation<ToldFact, null> = {
  name: 'tell',
  run: (_batch, facts) =>
    Promise.resolve(facts.map((fact) => ({ kind: 'done' as const, result: null, effects: { told: [fact] } }))),
}
const done = (work: string, kind: string) => ({ type: `xstate.done.actor.${work}`, output: { kind } })

/** One command from its acceptance to the end of its task. */
async function live(system: System, viewer: Viewer, agentId: string): Promise<void> {
  const { runtime } = system
  const body = { action: 'send' as const, tenant: '', text: 'Summarise the attached report in three sentences.' }
  const asked = { agentId, body, idempotencyKey: uuidv7(), taskId: null, skillId: null, status: 'pending' as const }
  const { command } = await runtime.perform(acceptCommand, { command: newCommand(viewer, asked, uuidv7) })
  const step = { ref: { kind: 'command', id: command.id }, told: [], lease: null, cause: 'bench' }
  await runtime.step({ ...step, event: done('discover', 'found') })
  const taskId = uuidv7()
  const event = (said: StreamResponse) => observed(said).observation
  const status = (state: string) => ({ taskId, contextId: 'c', status: { state, timestamp: new Date().toISOString() } })
  const reply = event({ task: { id: taskId, contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } })
  const words = { messageId: command.messageId, role: 'ROLE_USER' as const, parts: [{ text: body.text }], taskId }
  const answered: Report = {
    agentId,
    tenant: '',
    source: 'reply',
    command: {
      id: command.id,
      title: body.text,
      skillId: null,
      referenceTaskIds: [],
      sent: event({ message: words }),
      reply: reply.event,
      continues: null,
    },
    remoteTaskId: null,
    observations: [reply],
  }
  await runtime.step({
    ...step,
    event: done('deliver', 'replied'),
    told: [{ type: 'agent.reported', report: answered }],
  })
  const chunk = (n: number): StreamResponse => ({
    artifactUpdate: {
      taskId,
      contextId: 'c',
      artifact: { artifactId: 'a', parts: [{ text: `part ${n} `.repeat(20) }] },
      append: n > 0,
    },
  })
  const later = [chunk(0), chunk(1), chunk(2), { statusUpdate: status('TASK_STATE_COMPLETED') }]
  for (const said of later) {
    const source = 'statusUpdate' in said ? ('push' as const) : ('stream' as const)
    const report: Report = {
      agentId,
      tenant: '',
      source,
      command: null,
      remoteTaskId: taskId,
      observations: [event(said)],
    }
    const fact = { type: 'agent.reported' as const, report }
    await runtime.perform(tell, { organizationId: viewer.organizationId, subjectId: command.id, fact })
  }
}

const bytesIn = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

async function figures(db: Database, folder: string) {
  const tables = ['actor', 'actor_archive', 'actor_log', 'fact', 'command', 'task_event']
  const sizes = await db.pool.any(sql.type(z.object({ name: z.string(), bytes: z.number() }))`
    select relname as name, pg_total_relation_size(oid) as bytes from pg_class
    where relname = any(${sql.array(tables, 'text')}) and relkind = 'r'`)
  const mb = (bytes: number): string => (bytes / MB).toFixed(1)
  return {
    directory: mb(bytesIn(folder)),
    log: mb(bytesIn(join(folder, 'pg_wal'))),
    ...Object.fromEntries(
      tables.map((name) => [name, mb(Number(sizes.find((size) => size.name === name)?.bytes ?? 0))]),
    ),
  }
}

async function load(days: number, commandsADay: number, kept: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-housekeeping-'))
  const directory = join(folder, 'pglite')
  const db = await openDatabase({ kind: 'pglite', dataDir: directory })
  await db.raw((client) => migrateUp(client, migrations))
  // The past: what is forgotten has to be older than the day that the guards ask for.
  let nowMs = Date.now() - (days + 1) * dayMs
  const time = { ...instruments, now: () => new Date((nowMs += 1)) }
  const log = { info: () => undefined, warn: console.error, error: console.error }
  const artifactDirectory = join(folder, 'artifacts')
  const network = { profile: 'development' as const, allowPrivateNetworks: false, allowedOrigins: [] }
  const names = { extensionHost: 'signalbox.example', sidebandUris: [], parserThreads: 1 }
  const system = new System({ db, log, works: false, artifactDirectory, policy: network, instruments: time, ...names })
  const keeping = { ...keepingByDefault, factDays: 1, logDays: 1 }
  const house = new Housekeeping({
    db,
    log,
    instruments: time,
    kinds: Object.keys(system.kinds),
    artifactDirectory,
    works: true,
    keeping,
  })
  const viewer = await system.localAdministrator()
  const { id: agentId } = await system.agents.register(viewer, 'http://agent.example/card.json')
  const never = new AbortController().signal
  const rounds = (days * dayMs) / roundMs
  let owed = 0
  for (let round = 1; round <= rounds; round++) {
    const until = nowMs + roundMs
    owed += commandsADay / (dayMs / roundMs)
    const now = Math.floor(owed)
    owed -= now
    await Promise.all(Array.from({ length: now }, () => live(system, viewer, agentId)))
    if (kept) await db.housekeep()
    if (kept && round % 2 === 0) await house.forget(never)
    nowMs = until
    if (round % (rounds / (days * 4)) === 0)
      console.log(JSON.stringify({ kept, day: (round * roundMs) / dayMs, ...(await figures(db, directory)) }))
  }
  await system.runtime.idle()
  await db.close()
  const reopening = performance.now()
  await (await openDatabase({ kind: 'pglite', dataDir: directory })).close()
  console.log(
    `${kept ? 'with' : 'without'}: ${(bytesIn(directory) / MB) | 0} MB after closing, opened and closed in ${Math.round(performance.now() - reopening)} ms`,
  )
  await system.pool.close()
  rmSync(folder, { recursive: true })
}

const { values } = parseArgs({
  options: { days: { type: 'string', default: '1' }, commands: { type: 'string', default: '20000' } },
})
for (const kept of [true, false]) await load(Number(values.days), Number(values.commands), kept)
