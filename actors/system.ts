/**
 * The system: everything that lives in one process, wired once. Owns the table of kinds, the supervised loops, and the
 * order of starting and ending. Does not read the environment (bin/config.ts) and does not speak HTTP (http/).
 */
import type { Viewer } from '../domain/access.ts'
import type { SupervisorAnswer } from '../domain/queue.ts'
import { workersLoops } from '../machines/supervisor.ts'
import { ArtifactStore } from '../persistence/artifacts.ts'
import type { Database } from '../persistence/database.ts'
import { ensureLocalAdministrator } from '../persistence/people.ts'
import { removedAmong } from '../persistence/agents.ts'
import { hasPushActors } from '../persistence/push.ts'
import { Commands } from './acceptance.ts'
import { Access } from './access.ts'
import { Agents } from './agents.ts'
import { CardTrust, type CardPolicy } from './card-trust.ts'
import { keepAuditChain } from './audit-chain.ts'
import { anybody, Changes, type Subjects } from './loop/changes.ts'
import { AgentDoor } from './credentials.ts'
import { commandKind } from './command.ts'
import { Deliveries } from './delivery.ts'
import type { LargeSendsLimits } from './large-sends.ts'
import { Discovery } from './discovery.ts'
import { Freshness } from './freshness.ts'
import { Housekeeping, keepingByDefault, type Keeping } from './housekeeping.ts'
import type { Kinds } from './loop/kinds.ts'
import { Outbound, type OutboundPolicy } from './outbound.ts'
import { ownershipKind } from './ownership.ts'
import { Pushing, pushKind } from './push.ts'
import { Presence } from './loop/presence.ts'
import type { PushOptions } from './push-credential.ts'
import { Latecomers } from './push-latecomers.ts'
import { pushReactions } from './push-reactions.ts'
import { PushReceipts } from './push-receipts.ts'
import { RateCounter, rateLimits, type RateLimits } from './rate-counter.ts'
import { reactions } from './reactions.ts'
import { Reconciling, reconciliationKind } from './reconciliation.ts'
import { watchScopes } from './reconciliation-scopes.ts'
import { Runtime, type Instruments } from './loop/runtime.ts'
import { SecondLooks } from './second-looks.ts'
import { Following, subscriptionKind } from './subscription.ts'
import { Settlements } from './settlement.ts'
import { Supervisor } from './loop/supervisor.ts'
import { ParserPool } from './threads/pool.ts'
import { newToken } from './tokens.ts'
import { reportMissingKeys, Vault, type KeyRing } from './vault.ts'
import { supervisedOf } from './vitals.ts'
import { Worker } from './loop/worker.ts'
import type { Log } from './log.ts'

export interface SystemOptions {
  readonly db: Database
  readonly log: Log
  /** Whether this process does the background work, or leaves it to external workers. */
  readonly works: boolean
  /** Which release this is, as it tells people and the other processes; absent where nobody knows. */
  readonly release?: string
  readonly artifactDirectory: string
  readonly policy: OutboundPolicy
  /** Which cards are believed; absent: nothing is pinned, and any card may be used. */
  readonly cards?: CardPolicy
  readonly extensionHost: string
  readonly sidebandUris: readonly string[]
  readonly parserThreads: number
  /** Absent: push is off, and no agent is asked to call. */
  readonly push?: PushOptions
  /** Clocks and names; the machine's own when absent. */
  readonly instruments?: Instruments
  /** Seals and opens credentials; absent or null: there is no key, and no credential can be used. */
  readonly vault?: KeyRing | null
  /** The door to the network; one by `policy` when absent. */
  readonly outbound?: Outbound
  /** How long facts, logs and unreferenced bytes are kept. */
  readonly keeping?: Keeping
  /** Other limits than the specification's: for suites and benches that are a thousand people at once. */
  readonly limits?: RateLimits
  /** For tests, which do not send so much. */
  readonly largeSends?: Partial<LargeSendsLimits>
  /** Lays another rhythm (leases, polls) over the table of kinds. */
  readonly rhythm?: (kinds: Kinds) => Kinds
}

/** Wall clock, monotonic clock, names. */
export const instruments: Instruments = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  newToken,
}

/** After these a stream that is held may be one too many, or lead to the wrong address. */
const agentFacts = ['agent.removed', 'agent.registered'] as const
const localSlug = 'local'
const localName = 'Local administrator'

export class System {
  readonly changes: Changes
  readonly access: Access
  readonly agents: Agents
  readonly commands: Commands
  readonly settlements: Settlements
  readonly receipts: PushReceipts
  readonly rates: RateCounter
  readonly artifacts: ArtifactStore
  readonly runtime: Runtime
  readonly worker: Worker
  readonly kinds: Kinds
  readonly supervisor: Supervisor
  readonly pool: ParserPool
  /** Whether this process does the background work, or leaves it to external workers. */
  readonly works: boolean
  readonly release: string | null
  readonly #o: SystemOptions
  readonly #outbound: Outbound
  readonly #vault: Vault
  readonly #housekeeping: Housekeeping
  readonly presence: Presence
  readonly #time: Instruments
  readonly #freshness: Freshness

  constructor(options: SystemOptions) {
    const { db, log, policy, sidebandUris, extensionHost, rhythm = (kinds: Kinds) => kinds } = options
    const time = options.instruments ?? instruments
    const push = options.push ?? null
    this.#time = time
    this.#o = options
    this.works = options.works
    this.release = options.release ?? null
    this.changes = new Changes((err) => log.error({ err }, 'a listener failed'))
    this.#outbound = options.outbound ?? new Outbound(policy)
    const lost = (err: unknown): void => log.error({ err }, 'a parsing task was lost')
    this.pool = new ParserPool({ threads: options.parserThreads, lost })
    this.artifacts = new ArtifactStore(options.artifactDirectory, { newName: newToken, now: () => time.now() })
    this.#vault = new Vault(options.vault ?? null)
    const monotonic = (): number => time.monotonic()
    const door = new AgentDoor({ db, outbound: this.#outbound, vault: this.#vault, log, monotonic })
    const trust = new CardTrust(options.cards)
    const discovery = new Discovery({ db, outbound: this.#outbound, instruments: time, trust, extensionHost, door })
    const tools = { db, discovery, door, pool: this.pool, artifacts: this.artifacts, sidebandUris, monotonic }
    const looking = { ...tools, newToken, secondLooks: new SecondLooks(monotonic) }
    this.kinds = rhythm({
      command: commandKind(new Deliveries({ ...tools, extensionHost, log, largeSends: options.largeSends ?? {} })),
      subscription: subscriptionKind(new Following(looking)),
      ownership: ownershipKind,
      reconciliation: reconciliationKind(new Reconciling({ ...looking, now: () => time.now() })),
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
      log,
      launch: (launch) => this.worker.launch(launch),
    })
    const nudge = (kind: string): void => this.worker.nudge(kind)
    const { works } = options
    const kinds = Object.keys(this.kinds)
    this.#freshness = new Freshness({ db, changes: this.changes, log, works, kinds, nudge })
    this.access = new Access({ db, changes: this.changes, instruments: time })
    this.settlements = new Settlements({ db, changes: this.changes, instruments: time })
    this.agents = new Agents({ db, discovery, changes: this.changes, instruments: time, extensionHost })
    this.commands = new Commands({
      db,
      runtime: this.runtime,
      instruments: time,
      extensionHost,
      isDiscovered: (agentId) =>
        this.worker.hasRoom({ kind: 'command', lane: agentId, isDoubted: false }) && discovery.isAtHand(agentId),
    })
    const { runtime, pool, artifacts } = this
    const rates = new RateCounter(db, options.limits ?? rateLimits, monotonic)
    this.rates = rates
    this.receipts = new PushReceipts({ rates, db, runtime, pool, artifacts, instruments: time, push, door })
    const { artifactDirectory, keeping = keepingByDefault } = options
    this.#housekeeping = new Housekeeping({ db, log, instruments: time, kinds, artifactDirectory, works, keeping })
    const told = (): SupervisorAnswer => supervisedOf(this, db, time)
    this.presence = new Presence({ db, log, owner: this.worker.owner, told, instruments: time })
    this.supervisor = this.#supervisor()
  }

  #supervisor(): Supervisor {
    const { db, log, works, push } = this.#o
    const loop = (kind: string) => (signal: AbortSignal) => this.worker.loop(kind, signal)
    return new Supervisor(
      {
        left: works ? new Set() : workersLoops,
        loops: {
          leases: (signal) => this.worker.keepLeases(signal),
          command: loop('command'),
          subscription: loop('subscription'),
          ownership: loop('ownership'),
          reconciliation: loop('reconciliation'),
          scopes: (signal) => {
            const tools = { db, runtime: this.runtime, instruments: this.#time }
            return watchScopes(
              { ...tools, changes: this.changes, latecomers: push ? new Latecomers(tools) : null },
              signal,
            )
          },
          push: async (signal) => {
            // Turned off, it still ends what it began: an agent that was told to call is told to stop.
            if (push || (await hasPushActors(db.pool))) return this.worker.loop('push', signal)
            await idle(signal)
          },
          audit: (signal) => keepAuditChain({ db, log, instruments: this.#time }, signal),
          // An embedded database has no other process whose commits could be missed.
          freshness: (signal) => (db.profile === 'pglite' ? idle(signal) : this.#freshness.watch(signal)),
          housekeeping: (signal) => this.#housekeeping.loop(signal),
          presence: (signal) => this.presence.loop(signal),
        },
        prepare: async () => {
          this.changes.subscribe((change) => {
            // Of what others committed only the names are told.
            const mayHave = (fact: string): boolean => change.commit?.facts?.has(fact) ?? true
            if (agentFacts.some(mayHave) && !change.goesOn) void this.#reconsider(change.subjects)
            if (mayHave('task.settled')) this.worker.tell(change.subjects)
          })
          await this.#freshness.open()
          await reportMissingKeys(db, this.#vault, log)
          if (works) this.worker.open()
        },
        finish: async () => {
          const leaving = this.presence.tell()
          await this.worker.drain()
          await leaving
          await this.presence.leave()
          await this.#freshness.close()
          await this.#outbound.close()
          await this.pool.close()
        },
      },
      this.#time,
      log,
    )
  }

  /**
   * What is held of agents of which there is news is taken up again. Where nobody knows of whom it is, of those that were removed: were
   * every stream cut whenever somebody's transaction lasts, what agents say once would be lost.
   */
  async #reconsider(agents: Subjects): Promise<void> {
    try {
      const { lanes } = this.worker
      const meant = agents === anybody ? await removedAmong(this.#o.db.pool, lanes) : agents
      this.worker.reconsider(meant)
    } catch (err) {
      // Who was removed is found out with the stream's next turn, or its end.
      this.#o.log.warn({ err }, 'agents that may have been removed could not be asked for')
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

/** Resolves when the signal aborts: a loop that has nothing to do here. */
const idle = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
