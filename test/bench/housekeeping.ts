/**
 * The embedded database under days of load, with its housekeeping and without: `npm run test:housekeeping -- [--days 1]
 * [--commands 20000]`. Each day has so many commands, each an accept, a delivery, a reply, three events and an end, through
 * the real runtime on a clock that runs ahead; the product's own round comes every five simulated minutes, and forgets every ten
 * by itself. Prints the size of the directory as the days go by, and exits with 1 where what is kept passes the bounds of
 * docs/operations.md. Owns its figures.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
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
import { bytesIn, bytesOf } from '../support/disk-use.ts'

const dayMs = 24 * 60 * 60_000
/** Coarser than the half minute of the real loop, which is the harder case: more is left to each round. */
const roundMs = 5 * 60_000
const MB = 1024 * 1024
/**
 * What docs/operations.md says a command takes, for ever and for as long as facts and logs are kept (a day here), and a tenth
 * more. Of fewer commands than some thousands, what every database begins with would be most.
 */
const commandBytes = { ever: 7_000, kept: 4_400, margin: 1.1 }
/** A checkpoint every 20 MB, the one before it, and a round's worth. */
const logBound = 80 * MB
/** A thousand commands' worth of what it grew by without housekeeping; with it, it stays at a tenth. */
const liveTableBound = MB

const tell: Operation<ToldFact, null> = {
  name: 'tell',
  run: (_batch, facts) =>
    Promise.resolve(facts.map((fact) => ({ kind: 'done' as const, result: null, effects: { told: [fact] } }))),
}
const done = (work: string, kind: string) => ({ type: `xstate.done.actor.${work}`, output: { kind } })

/** One command from its acceptance to the end of its task, which its stream told: nothing of it stays in the live table. */
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
    const report: Report = {
      agentId,
      tenant: '',
      source: 'stream',
      command: null,
      remoteTaskId: taskId,
      observations: [event(said)],
    }
    const fact = { type: 'agent.reported' as const, report }
    await runtime.perform(tell, { organizationId: viewer.organizationId, subjectId: command.id, fact })
  }
}

interface Grown {
  readonly commands: number
  /** Of the directory without its log, since the first day began. */
  readonly bytes: number
  readonly largestLog: number
  readonly liveTable: number
}

/** What is over a bound, in words; nothing when all is as promised. `days`: of facts and logs only the last one's are kept. */
function overBounds({ commands, bytes, largestLog, liveTable }: Grown, days: number): string[] {
  const { ever, kept, margin } = commandBytes
  const allowed = (ever + kept / Math.max(1, days)) * margin
  const kB = (of: number): string => (of / 1000).toFixed(1)
  console.log(
    `with: ${kB(bytes / commands)} kB a command (${kB(allowed)} at most), a log of ${(largestLog / MB) | 0} MB at the most (${logBound / MB})`,
  )
  return [
    bytes / commands > allowed && `a command takes ${kB(bytes / commands)} kB, and may take ${kB(allowed)}`,
    largestLog > logBound && `the log grew to ${(largestLog / MB) | 0} MB, and may be ${logBound / MB}`,
    liveTable > liveTableBound &&
      `the live table is ${(liveTable / MB).toFixed(1)} MB, and may be ${liveTableBound / MB}`,
  ].filter((words) => words !== false)
}

async function figures(db: Database, folder: string) {
  const tables = ['actor', 'actor_archive', 'actor_log', 'fact', 'command', 'task_event']
  const mb = (bytes: number): string => (bytes / MB).toFixed(1)
  return {
    directory: mb(bytesIn(folder)),
    log: mb(bytesIn(join(folder, 'pg_wal'))),
    ...Object.fromEntries(await Promise.all(tables.map(async (name) => [name, mb(await bytesOf(db, name))]))),
  }
}

/** A system and its housekeeping over one embedded database, on a clock that runs ahead and begins in the past. */
async function stage(folder: string, days: number) {
  const directory = join(folder, 'pglite')
  const db = await openDatabase({ kind: 'pglite', dataDir: directory })
  await db.raw((client) => migrateUp(client, migrations))
  // The past: what is forgotten has to be older than the day that the guards ask for.
  const clock = { ms: Date.now() - (days + 1) * dayMs }
  const time = { ...instruments, now: () => new Date((clock.ms += 1)) }
  const log = { info: () => undefined, warn: console.error, error: console.error }
  const artifactDirectory = join(folder, 'artifacts')
  const policy = { profile: 'development' as const, allowPrivateNetworks: false, allowedOrigins: [] }
  const names = { extensionHost: 'signalbox.example', sidebandUris: [], parserThreads: 1 }
  const system = new System({ db, log, works: false, artifactDirectory, policy, instruments: time, ...names })
  const house = new Housekeeping({
    db,
    log,
    // Its own waits go by the same clock: ten minutes between two looks for what is old.
    instruments: { ...time, monotonic: () => clock.ms },
    kinds: Object.keys(system.kinds),
    artifactDirectory,
    works: true,
    keeping: { ...keepingByDefault, factDays: 1, logDays: 1 },
  })
  return { db, directory, clock, system, house }
}

async function load(days: number, commandsADay: number, isKept: boolean): Promise<Grown> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-housekeeping-'))
  const { db, directory, clock, system, house } = await stage(folder, days)
  const viewer = await system.localAdministrator()
  const { id: agentId } = await system.agents.register(viewer, 'http://agent.example/card.json')
  const never = new AbortController().signal
  const rounds = (days * dayMs) / roundMs
  const inLog = (): number => bytesIn(join(directory, 'pg_wal'))
  const inTables = (): number => bytesIn(directory) - inLog()
  const atFirst = inTables()
  let largestLog = 0
  let owed = 0
  let commands = 0
  for (let round = 1; round <= rounds; round++) {
    const until = clock.ms + roundMs
    owed += commandsADay / (dayMs / roundMs)
    const now = Math.floor(owed)
    owed -= now
    commands += now
    await Promise.all(Array.from({ length: now }, () => live(system, viewer, agentId)))
    if (isKept) await house.round(never)
    largestLog = Math.max(largestLog, inLog())
    clock.ms = until
    if (round % (rounds / (days * 4)) === 0)
      console.log(JSON.stringify({ isKept, day: (round * roundMs) / dayMs, ...(await figures(db, directory)) }))
  }
  await system.runtime.idle()
  const grown = { commands, bytes: inTables() - atFirst, largestLog, liveTable: await bytesOf(db, 'actor') }
  await db.close()
  const reopening = performance.now()
  await (await openDatabase({ kind: 'pglite', dataDir: directory })).close()
  console.log(
    `${isKept ? 'with' : 'without'}: ${(bytesIn(directory) / MB) | 0} MB after closing, opened and closed in ${Math.round(performance.now() - reopening)} ms`,
  )
  await system.pool.close()
  rmSync(folder, { recursive: true })
  return grown
}

const { values } = parseArgs({
  options: { days: { type: 'string', default: '1' }, commands: { type: 'string', default: '20000' } },
})
const days = Number(values.days)
const commandsADay = Number(values.commands)
const over = overBounds(await load(days, commandsADay, true), days)
for (const words of over) console.error(words)
// To compare with, and bounded by nothing.
await load(days, commandsADay, false)
if (over.length > 0) process.exitCode = 1
