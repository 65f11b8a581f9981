/**
 * The system: everything that lives in one process, wired once. Owns the table of kinds, the supervised loops, and the
 * order of starting and ending. Does not read the environment (bin/config.ts) and does not speak HTTP (http/).
 */
import type { Viewer } from '../domain/access.ts'
import { ArtifactStore } from '../persistence/artifacts.ts'
import type { Database } from '../persistence/database.ts'
import { ensureLocalAdministrator } from '../persistence/people.ts'
import { Commands } from './acceptance.ts'
import { Agents } from './agents.ts'
import { Changes } from './changes.ts'
import { commandKind } from './command.ts'
import { Deliveries } from './delivery.ts'
import { Discovery } from './discovery.ts'
import { Freshness } from './freshness.ts'
import { Housekeeping, keepingByDefault, type Keeping } from './housekeeping.ts'
import type { Kinds } from './kinds.ts'
import { Outbound, type OutboundPolicy } from './outbound.ts'
import { ownershipKind } from './ownership.ts'
import { Pushing, pushKind } from './push.ts'
import type { PushOptions } from './push-credential.ts'
import { endOutlived, pushReactions } from './push-reactions.ts'
import { PushReceipts } from './push-receipts.ts'
import { reactions } from './reactions.ts'
import { followerEnder, Reconciling, reconciliationKind } from './reconciliation.ts'
import { watchScopes } from './reconciliation-scopes.ts'
import { Runtime, type Instruments } from './runtime.ts'
import { Following, subscriptionKind } from './subscription.ts'
import { Supervisor } from './supervisor.ts'
import { ParserPool } from './threads/pool.ts'
import { newToken } from './tokens.ts'
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
  /** Absent: push is off, and no agent is asked to call. */
  readonly push?: PushOptions
  /** Clocks and names; the machine's own when absent. */
  readonly instruments?: Instruments
  /** The door to the network; one by `policy` when absent. */
  readonly outbound?: Outbound
  /** How long facts, logs and unreferenced bytes are kept. */
  readonly keeping?: Keeping
  /** Lays another rhythm (leases, polls) over the table of kinds. */
  readonly rhythm?: (kinds: Kinds) => Kinds
}

/** Wall clock, monotonic clock, names. */
export const instruments: Instruments = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  newToken,
}

const localSlug = 'local'
const localName = 'Local administrator'

export class System {
  readonly changes = new Changes()
  readonly agents: Agents
  readonly commands: Commands
  readonly receipts: PushReceipts
  readonly artifacts: ArtifactStore
  readonly runtime: Runtime
  readonly worker: Worker
  readonly kinds: Kinds
  readonly supervisor: Supervisor
  readonly pool: ParserPool
  /** Whether this process does the background work, or leaves it to external workers. */
  readonly works: boolean
  readonly #o: SystemOptions
  readonly #outbound: Outbound
  readonly #housekeeping: Housekeeping
  readonly #time: Instruments
  readonly #freshness: Freshness

  constructor(options: SystemOptions) {
    const { db, log, policy, sidebandUris, extensionHost } = options
    const { rhythm = (kinds: Kinds) => kinds } = options
    const time = options.instruments ?? instruments
    const push = options.push ?? null
    this.#time = time
    this.#o = options
    this.works = options.works
    this.#outbound = options.outbound ?? new Outbound(policy)
    this.pool = new ParserPool({ threads: options.parserThreads })
    this.artifacts = new ArtifactStore(options.artifactDirectory, { newName: newToken, now: () => time.now() })
    const discovery = new Discovery(db, this.#outbound, time)
    const tools = { db, discovery, outbound: this.#outbound, pool: this.pool, artifacts: this.artifacts, sidebandUris }
    this.kinds = rhythm({
      command: commandKind(new Deliveries({ ...tools, extensionHost })),
      subscription: subscriptionKind(new Following({ ...tools, newToken })),
      ownership: ownershipKind,
      reconciliation: reconciliationKind(
        new Reconciling({
          ...tools,
          newToken,
          now: () => time.now(),
          monotonic: () => time.monotonic(),
          endFollowing: followerEnder(() => this.runtime),
        }),
      ),
      push: pushKind(new Pushing({ ...tools, newToken, push, now: () => time.now() })),
    })
    this.worker = new Worker({ db, kinds: this.kinds, instruments: time, log }, () => this.runtime)
    this.runtime = new Runtime({
      db,
      kinds: this.kinds,
      reactions: push ? [...reactions, ...pushReactions] : reactions,
      changes: this.changes,
      instruments: time,
      intake: this.worker,
      launch: (launch) => this.worker.launch(launch),
    })
    const nudge = (kind: string): void => this.worker.nudge(kind)
    const { works } = options
    const kinds = Object.keys(this.kinds)
    this.#freshness = new Freshness({ db, changes: this.changes, log, works, kinds, nudge })
    this.agents = new Agents(db, discovery, this.changes, time)
    this.commands = new Commands({
      db,
      runtime: this.runtime,
      changes: this.changes,
      instruments: time,
      extensionHost,
      isDiscovered: (agentId) => this.worker.hasRoom('command', agentId) && discovery.isAtHand(agentId),
    })
    const { runtime, pool, artifacts } = this
    this.receipts = new PushReceipts({ db, runtime, pool, artifacts, instruments: time, push })
    const { artifactDirectory, keeping = keepingByDefault } = options
    this.#housekeeping = new Housekeeping({ db, log, instruments: time, kinds, artifactDirectory, works, keeping })
    this.supervisor = this.#supervisor()
  }

  #supervisor(): Supervisor {
    const { db, log, works, push } = this.#o
    const loop = (kind: string) => (signal: AbortSignal) => (works ? this.worker.loop(kind, signal) : idle(signal))
    return new Supervisor(
      {
        loops: {
          leases: (signal) => (works ? this.worker.keepLeases(signal) : idle(signal)),
          command: loop('command'),
          subscription: loop('subscription'),
          ownership: loop('ownership'),
          reconciliation: loop('reconciliation'),
          scopes: (signal) =>
            works ? watchScopes({ db, runtime: this.runtime, instruments: this.#time }, signal) : idle(signal),
          push: async (signal) => {
            if (!works || !push) return idle(signal)
            await endOutlived(db, this.runtime, signal)
            await this.worker.loop('push', signal)
          },
          // An embedded database has no other process whose commits could be missed.
          freshness: (signal) => (db.profile === 'pglite' ? idle(signal) : this.#freshness.watch(signal)),
          housekeeping: (signal) => this.#housekeeping.loop(signal),
        },
        prepare: async () => {
          await this.#freshness.open()
          if (works) this.worker.open()
        },
        finish: async () => {
          await this.worker.drain()
          await this.#freshness.close()
          await this.#outbound.close()
          await this.pool.close()
        },
      },
      this.#time,
      log,
    )
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
