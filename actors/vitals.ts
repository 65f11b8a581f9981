/**
 * What this process can say of itself without asking the database: its loops, the places for work, its parsing threads, its
 * connections. Reads what others own (loop/supervisor.ts, loop/worker.ts, threads/pool.ts) and changes nothing.
 */
import type { LoopView, ProcessView, SupervisorAnswer } from '../domain/queue.ts'
import { loopNames, workersLoops, type LoopName } from '../machines/supervisor.ts'
import type { Database } from '../persistence/database.ts'
import type { Kinds } from './loop/kinds.ts'
import type { Presence } from './loop/presence.ts'
import type { Instruments } from './loop/runtime.ts'
import type { Supervisor } from './loop/supervisor.ts'
import type { ParserPool } from './threads/pool.ts'
import type { Worker } from './loop/worker.ts'

/** What lives in a process, as far as it says something of itself. */
export interface LivingSystem {
  readonly supervisor: Supervisor
  readonly worker: Worker
  readonly kinds: Kinds
  readonly works: boolean
  readonly release: string | null
  readonly pool: ParserPool
  readonly presence: Pick<Presence, 'answerMs'>
}

/** Only counts and names: leases are of every organization, so none is told by its actor. */
export function vitalsOf(system: LivingSystem, db: Database, instruments: Instruments): ProcessView {
  const { threads, underWay, queued, bytesUnderWay, tasksLost } = system.pool.stats
  const { acquiredConnections, idleConnections, waitingClients } = db.pool.state()
  const { answerMs } = system.presence
  return {
    owner: system.worker.owner,
    works: system.works,
    ...(system.release !== null && { release: system.release }),
    loops: loopNames.map((name) => loopView(system, name, instruments)),
    parser: { threads, underWay, queued, bytesUnderWay, tasksLost },
    database: {
      profile: db.profile,
      inUse: acquiredConnections,
      idle: idleConnections,
      waiting: waitingClients,
      ...(answerMs !== null && { answerMs }),
    },
  }
}

/** All of it, with its supervisor: for whoever asks this process, and told to the others (loop/presence.ts). */
export function supervisedOf(system: LivingSystem, db: Database, instruments: Instruments): SupervisorAnswer {
  const { value, machine, context } = system.supervisor.snapshot
  const { restarts, lastFailure } = context
  return {
    supervisor: { value, machineVersion: machine.version ?? '0', restarts, lastFailure },
    process: vitalsOf(system, db, instruments),
  }
}

function loopView(
  { supervisor, worker, kinds, works }: LivingSystem,
  name: LoopName,
  instruments: Instruments,
): LoopView {
  const { snapshot, outages } = supervisor
  const failures = snapshot.context.failures.filter((failure) => failure.name === name)
  const last = failures.at(-1)
  const outage = outages.get(name)
  const kind = kinds[name]
  return {
    name,
    state: works || !workersLoops.has(name) ? stateOf(snapshot.value, name) : 'left',
    restarts: failures.length,
    lastFailure: last ? { message: last.message, ...whenOf(last.at, instruments) } : null,
    lastOutage: outage ? { ...outage, ...whenOf(outage.at, instruments) } : null,
    places:
      kind && works
        ? { taken: worker.leases.places(name).all, limit: kind.concurrency, perAgent: kind.laneLimit }
        : null,
  }
}

/** A region of the running supervisor; before it runs and after it drained no loop does. */
function stateOf(value: Supervisor['snapshot']['value'], name: LoopName): LoopView['state'] {
  if (typeof value === 'string' || !('running' in value)) return 'off'
  const state = value.running[name]
  return state === 'leftToWorkers' ? 'left' : state
}

/** Troubles are noted by the monotonic clock, which no wall clock's jump moves; the instant is this host's, the age is anybody's. */
function whenOf(monotonicMs: number, instruments: Instruments): { at: string; agoMs: number } {
  const agoMs = Math.round(instruments.monotonic() - monotonicMs)
  return { at: new Date(instruments.now().getTime() - agoMs).toISOString(), agoMs }
}
