/**
 * The system: everything that lives in one process, wired once. Owns the table of kinds, the supervised loops, and the
 * order of starting and ending. Does not read the environment (bin/config.ts) and does not speak HTTP (http/).
 */
import { v7 as uuidv7 } from 'uuid'
import type { Viewer } from '../domain/access.ts'
import { freshnessToken } from '../persistence/actors.ts'
import { ArtifactStore } from '../persistence/artifacts.ts'
import type { Database } from '../persistence/database.ts'
import { ensureLocalAdministrator } from '../persistence/people.ts'
import { Commands } from './acceptance.ts'
import { Agents } from './agents.ts'
import { Bell } from './bell.ts'
import { Changes } from './changes.ts'
import { commandKind } from './command.ts'
import { Deliveries } from './delivery.ts'
import { Discovery } from './discovery.ts'
import type { Kinds } from './kinds.ts'
import { Outbound, type OutboundPolicy } from './outbound.ts'
import { ownershipKind } from './ownership.ts'
import { reactions } from './reactions.ts'
import { Runtime, type Instruments } from './runtime.ts'
import { Following, subscriptionKind } from './subscription.ts'
import { Supervisor } from './supervisor.ts'
import { ParserPool } from './threads/pool.ts'
import { Worker, type Log } from './worker.ts'

export interface SystemOptions {
  readonly db: Database
  readonly log: Log
  /** Whether this process does the background work, or leaves it to external workers. */
  readonly works: boolean
  readonly artifactDirectory: string
  readonly policy: OutboundPolicy
  readonly extensionHost: string
  readonly sidebandUris: readonly string[]
  readonly parserThreads: number
}

/** Time-ordered names: a UUIDv7 keeps inserts at the right edge of every index. */
const newToken = (): string => uuidv7()

/** Wall clock, monotonic clock, names. */
export const instruments: Instruments = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  newToken,
}

const channel = 'signalbox'
const freshnessPollMs = 250
const housekeepingPollMs = 30_000
const localSlug = 'local'
const localName = 'Local administrator'

export class System {
  readonly changes = new Changes()
  readonly agents: Agents
  readonly commands: Commands
  readonly artifacts: ArtifactStore
  readonly runtime: Runtime
  readonly worker: Worker
  readonly kinds: Kinds
  readonly supervisor: Supervisor
  readonly pool: ParserPool
  readonly #o: SystemOptions
  readonly #outbound: Outbound
  readonly #fresh = new Bell()
  #token: string | null = null
  #deaf: (() => Promise<void>) | null = null

  constructor(options: SystemOptions) {
    const { db, log, policy, sidebandUris, extensionHost } = options
    this.#o = options
    this.#outbound = new Outbound(policy)
    this.pool = new ParserPool({ threads: options.parserThreads })
    this.artifacts = new ArtifactStore(options.artifactDirectory, newToken)
    const discovery = new Discovery(db, this.#outbound, instruments)
    const tools = { db, discovery, outbound: this.#outbound, pool: this.pool, artifacts: this.artifacts, sidebandUris }
    this.kinds = {
      command: commandKind(new Deliveries({ ...tools, extensionHost })),
      subscription: subscriptionKind(new Following({ ...tools, newToken })),
      ownership: ownershipKind,
    }
    this.worker = new Worker({ db, kinds: this.kinds, instruments, log }, () => this.runtime)
    this.runtime = new Runtime({
      db,
      kinds: this.kinds,
      reactions,
      changes: this.changes,
      instruments,
      intake: this.worker,
      launch: (launch) => this.worker.launch(launch),
    })
    this.agents = new Agents(db, discovery, this.changes, instruments)
    this.commands = new Commands({
      db,
      runtime: this.runtime,
      changes: this.changes,
      instruments,
      extensionHost,
      isDiscovered: (agentId) => this.worker.hasRoom('command', agentId) && discovery.isAtHand(agentId),
    })
    this.supervisor = this.#supervisor()
  }

  #supervisor(): Supervisor {
    const { db, log, works } = this.#o
    const loop = (kind: string) => (signal: AbortSignal) => (works ? this.worker.loop(kind, signal) : idle(signal))
    return new Supervisor(
      {
        loops: {
          leases: (signal) => (works ? this.worker.keepLeases(signal) : idle(signal)),
          command: loop('command'),
          subscription: loop('subscription'),
          ownership: loop('ownership'),
          // An embedded database has no other process whose commits could be missed.
          freshness: (signal) => (db.profile === 'pglite' ? idle(signal) : this.#watch(signal)),
          housekeeping: async (signal) => {
            for (const bell = new Bell(); !signal.aborted; await bell.wait(housekeepingPollMs, signal))
              await db.housekeep()
          },
        },
        prepare: async () => {
          // Other processes are woken after the commit, never inside it: NOTIFY in a transaction serialises commits.
          this.changes.subscribe((change) => {
            if (change.organizationId !== null)
              db.notify(channel).catch((err: unknown) => log.warn({ err }, 'notify failed'))
          })
          this.#deaf = await db.listen(channel, (from) => {
            // What this process committed it has launched and published itself; looking again cost four statements every 5 ms.
            if (from === 'here') return
            this.worker.nudgeAll()
            this.#fresh.ring()
          })
          if (works) this.worker.open()
        },
        finish: async () => {
          await this.worker.drain()
          await this.#deaf?.()
          await this.#outbound.close()
          await this.pool.close()
        },
      },
      instruments,
      log,
    )
  }

  /** Commits of other processes, seen by the outbox's last number. */
  async #watch(signal: AbortSignal): Promise<void> {
    // Kept across restarts of this loop: what was committed while the database was away is news, too.
    this.#token ??= await freshnessToken(this.#o.db.pool)
    while (!signal.aborted) {
      await this.#fresh.wait(freshnessPollMs, signal)
      const token = await freshnessToken(this.#o.db.pool)
      if (token === this.#token) continue
      this.#token = token
      this.changes.publish({ organizationId: null, subjects: new Set() })
    }
  }

  /** The person behind every request in development mode. */
  localAdministrator(): Promise<Viewer> {
    const fresh = {
      organizationId: instruments.newToken(),
      personId: instruments.newToken(),
      membershipId: instruments.newToken(),
    }
    return ensureLocalAdministrator(this.#o.db, localSlug, localName, fresh)
  }

  async start(): Promise<void> {
    await this.supervisor.start()
  }

  /** Drains: no new work, what may be repeated is given back, deliveries under way are waited for. */
  async stop(): Promise<void> {
    await this.supervisor.stop()
  }
}

/** Resolves when the signal aborts: the loop of a process that does no work. */
const idle = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
