/**
 * A scenario's stage: a database, the witness, the processes that come and go, and the list of what was broken when. At the
 * end it joins everything into the history that the checker judges. Owns what it started; a PostgreSQL server belongs to the
 * caller.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase, type Database, type Profile } from '../../persistence/database.ts'
import { freshDatabase, type bothDatabases } from '../support/databases.ts'
import { placeDatabase } from '../support/migrated-dump.ts'
import { startAgent, type Agent } from './agent.ts'
import { readBooks } from './books.ts'
import { memoryGrowthMax, type Fault, type History, type MemoryMark } from './checker.ts'
import { dialectNames } from './dialects.ts'
import { launch, type Member, type Order } from './fleet.ts'
import { Load, type LoadOptions } from './load.ts'
import { endLeases } from './leases.ts'
import { type Chance } from './seed.ts'
import { freePort } from '../support/free-port.ts'
import { isLong } from '../support/pass.ts'

export type DatabaseKind = (typeof bothDatabases)[number]

export interface StageOptions {
  readonly database: DatabaseKind
  /** A PostgreSQL of the scenario's own, which it may crash; otherwise a fresh database on the tests' server. */
  readonly serverUrl?: string
  /** Where the product keeps its files; a directory of the stage's when absent. */
  readonly dataDirectory?: string
  /** The witness calls about its tasks and does not stream; consoles on the stage's port are configured for it. */
  readonly agentCalls?: boolean
  /** What the processes are told: the way through a proxy. The books are read without it. */
  readonly throughPort?: number
}

interface StageDatabase {
  readonly profile: Profile
  /** What the processes open; null: the embedded database in the data directory. */
  readonly url: string | null
  close(): Promise<void>
}

const settleMs = 120_000
const settlers = 16
const lookMs = 20
const weighsLimit = 50

export class Stage {
  /** The witness's and the scenario's own files. */
  readonly directory: string
  readonly agent: Agent
  readonly database: DatabaseKind
  readonly faults: Fault[] = []
  readonly memory: MemoryMark[] = []
  readonly members: Member[] = []
  readonly #database: StageDatabase
  readonly #data: string
  readonly #agentCalls: boolean
  readonly #astray = Promise.withResolvers<never>()
  #port = 0

  private constructor(directory: string, data: string, agent: Agent, database: StageDatabase, options: StageOptions) {
    this.directory = directory
    this.#data = data
    this.agent = agent
    this.database = options.database
    this.#agentCalls = options.agentCalls === true
    this.#database = database
    this.#astray.promise.catch(() => undefined)
  }

  static async open(options: StageOptions): Promise<Stage> {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-chaos-'))
    const agent = await startAgent(directory, options.agentCalls)
    const data = options.dataDirectory ?? join(directory, 'data')
    return new Stage(directory, data, agent, await databaseFor(data, options), options)
  }

  /** The environment of the product's processes. */
  get env(): Record<string, string> {
    const { url } = this.#database
    return {
      NODE_ENV: 'development',
      A2A_AUTH_MODE: 'development',
      A2A_DATA_DIR: this.#data,
      ...(this.#agentCalls ? pushAt(`http://127.0.0.1:${this.#port}`) : {}),
      ...(url === null
        ? { A2A_DATABASE_PROFILE: 'pglite' }
        : { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }),
    }
  }

  /** A console; without a port of its own it takes the stage's, which the console before it had. */
  async console(order: Partial<Order> & { readonly external?: boolean } = {}): Promise<Member> {
    this.#port ||= await freePort()
    const mode = order.external ? { A2A_COMMAND_WORKER_MODE: 'external' } : {}
    return this.#launch({
      ...order,
      kind: 'console',
      port: order.port ?? this.#port,
      env: { ...this.env, ...mode, ...order.env },
    })
  }

  worker(order: Partial<Order> = {}): Promise<Member> {
    const env = { ...this.env, NODE_ENV: 'production', A2A_ALLOW_DEVELOPMENT_AUTH: 'true', ...order.env }
    return this.#launch({ ...order, kind: 'worker', env })
  }

  async #launch(order: Order): Promise<Member> {
    const member = await launch(order)
    this.members.push(member)
    member.astray.catch((error: unknown) => this.#astray.reject(error))
    return member
  }

  /** Rejects when a process ends by itself: nothing that waits for it would ever come. */
  get astray(): Promise<never> {
    return this.#astray.promise
  }

  /** Registers the witness in every version and binding, or finds it registered. Returns the agents' ids. */
  async agents(url: string): Promise<string[]> {
    const ids: string[] = []
    for (const name of dialectNames) {
      const response = await fetch(`${url}/api/agents`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cardUrl: this.agent.cardUrl(name) }),
      })
      if (!response.ok) throw new Error(`HTTP ${response.status}: ${await response.text()}`)
      ids.push(((await response.json()) as { agent: { id: string } }).agent.id)
    }
    return ids
  }

  async load(urls: () => readonly string[], chance: Chance, words: LoadOptions['words']): Promise<Load> {
    const agentIds = await this.agents(urls()[0] ?? '')
    return new Load({ urls, agentIds, chance, words })
  }

  /**
   * Breaks something, and writes down from when to when it was broken. A lease that runs out later needs no more: what was under
   * way was dispatched before, and the checker looks at all the time until its verdict. `lastingMs`: the thing is whole, and
   * processes may still fall over what it did to them; on a busy machine they hear of it a moment later.
   */
  async broken<T>(what: string, work: () => Promise<T>, lastingMs: 1_000 | 5_000 = 1_000): Promise<T> {
    const from = Date.now()
    try {
      return await work()
    } finally {
      this.faults.push({ what, from, to: Date.now() + lastingMs })
    }
  }

  /** On PostgreSQL the dead ones' leases run for up to a minute, which is said to be over; an embedded database has one process. */
  async leasesOver(): Promise<void> {
    if (this.database === 'pglite') return
    const dead = this.members.filter((member) => member.report().ended !== null)
    const pids = dead.flatMap((member) => member.process.pid ?? [])
    await this.withDatabase((db) => endLeases(db, pids))
  }

  /** Waits for something that can only be looked at; fails after a bound. */
  async until(holds: () => boolean | Promise<boolean>, withinMs = settleMs): Promise<void> {
    const deadline = performance.now() + withinMs
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`It never came to be: ${holds.toString()}`)
      await new Promise((again) => setTimeout(again, lookMs))
    }
  }

  /**
   * What a process holds after a storm, for the checker beside what it held before. It is given a moment: a buffer that was let go is gone
   * some collections later. In the short pass a young process still loads what it needs for the first time, and nothing is judged.
   */
  async weighAgain(member: Member, beforeBytes: number): Promise<number> {
    let afterBytes = await member.heldBytes()
    for (let n = 1; isLong && n < weighsLimit && afterBytes > beforeBytes * memoryGrowthMax; n++) {
      await new Promise((again) => setTimeout(again, 10 * lookMs))
      afterBytes = await member.heldBytes()
    }
    if (isLong) this.memory.push({ name: member.name, beforeBytes, afterBytes })
    return afterBytes
  }

  /** Whether a console takes connections. */
  answers(url: string): Promise<boolean> {
    return fetch(`${url}/api/auth/session`).then(
      () => true,
      () => false,
    )
  }

  /** On PostgreSQL, from beside the product: nothing of this goes through a proxy. */
  async withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const db = await openDatabase(this.#database.profile)
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  }

  /** Waits for every command's end, stops what runs, and joins the logs. */
  async history(load: Load): Promise<History> {
    await load.settle(settlers, settleMs)
    await this.#untilTasksEnd()
    // After the console's last task has ended: read before, the agent's book may show as working what ends meanwhile.
    const agentTasks = await this.agent.tasks()
    // The newest first: workers may still be asked for by a console, never the other way round.
    for (const member of this.members.toReversed()) if (member.report().ended === null) await member.end('SIGTERM')
    const books = await this.withDatabase(readBooks)
    return {
      asks: load.asks,
      receipts: this.agent.receipts(),
      agentTasks,
      agentOrigin: this.agent.origin,
      finals: load.finals,
      seen: load.seen,
      books,
      faults: this.faults,
      otherStatuses: load.otherStatuses,
      processes: this.members.map((member) => member.report()),
      memory: this.memory,
    }
  }

  /** Every task ends at the agent; the console is given the time that its longest back-off takes to notice. */
  async #untilTasksEnd(): Promise<void> {
    const url = this.members.findLast((member) => member.url !== '' && member.report().ended === null)?.url ?? ''
    const deadline = performance.now() + settleMs
    while (performance.now() < deadline) {
      const response = await fetch(`${url}/api/tasks?filter=active&limit=1`)
      const { tasks } = (await response.json()) as { tasks: readonly unknown[] }
      if (tasks.length === 0) return
      await new Promise((again) => setTimeout(again, 100))
    }
  }

  async close(): Promise<void> {
    for (const member of this.members) if (member.report().ended === null) await member.end('SIGKILL')
    await this.agent.stop()
    await this.#database.close()
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

const pushAt = (origin: string): Record<string, string> => ({
  A2A_PUSH_CALLBACK_ORIGIN: origin,
  A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'true',
  A2A_PUSH_SIGNING_KEY: '0f'.repeat(32),
})

async function databaseFor(directory: string, options: StageOptions): Promise<StageDatabase> {
  if (options.database === 'pglite') {
    const dataDir = join(directory, 'pglite')
    await placeDatabase(directory)
    const profile: Profile = { kind: 'pglite', dataDir }
    return { profile, url: null, close: () => Promise.resolve() }
  }
  const given = options.serverUrl
  const fresh = given === undefined ? await freshDatabase('postgresql') : null
  const profile: Profile = fresh?.profile ?? { kind: 'postgresql', url: given ?? '' }
  if (profile.kind !== 'postgresql') throw new Error('A PostgreSQL was asked for.')
  // Processes open it themselves; a pool here would only be in the way of a server that is to be crashed.
  const url = new URL(profile.url)
  if (options.throughPort !== undefined) url.port = String(options.throughPort)
  return { profile, url: url.href, close: () => fresh?.close() ?? Promise.resolve() }
}
