/**
 * F1, F4, F5 and F6 at once: two consoles that only accept, three workers, and a PostgreSQL of their own. Consoles and workers
 * are killed, a worker stands still past its lease while others are killed beside it, the server crashes as a whole and from
 * within, and all its clients are cut off. Then everything heals, and the joined logs are judged (checker.ts).
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import type { Member } from './fleet.ts'
import type { Load } from './load.ts'
import type { Chance } from './seed.ts'
import { cutOff, freshUrlOn, killBackend } from './server-faults.ts'
import type { Stage } from './stage.ts'
import { expectMostSucceeded, meanOf, storm, usualWords } from './storm.ts'
import { freePort } from '../support/free-port.ts'
import { isLong, sized } from '../support/pass.ts'

/** They send for as long as a lease runs: half of them leave the short pass enough that is under way whenever something breaks. */
const senders = sized(6, 12)
const workersCount = 3
const rounds = sized(1, 8)
/** The long pass waits for the product's own minute. Renewed by each third, so that a busy machine does not let one run out. */
const leaseMs = sized(8_000, 60_000)
const slowMs = 3_000
/** The database is away for eight seconds at most, and a start in vain may take half of one. */
const startsMs = 60_000
/** The latter are the server's and the driver's own words for a connection that is cut in the middle of a transaction. */
const databaseAway = /The database cannot be reached|\(57P0\d\)|Connection terminated|and is not queryable/

/** A third of the answers take their time, so that whoever is killed has something in hand. */
const words = (n: number, chance: Chance): string =>
  n % 3 === 0 ? `message ${chance.whole(200, 1_000)}` : usualWords(n, chance)

let postgres: TestPostgres
beforeAll(async () => {
  // The tests' own server acknowledges before it writes; a user's does not, and this is about what it acknowledged.
  postgres = await startPostgres({ settings: ['synchronous_commit=on'] })
})
afterAll(() => postgres.stop())

const Owner = z.object({ owner: z.string() })

/** The processes of the scenario, and what may happen to them. */
class Fleet {
  readonly recoveriesMs: number[] = []
  startsInVain = 0
  readonly #stage: Stage
  readonly #chance: Chance
  readonly #consoles: Member[] = []
  readonly #workers: Member[] = []
  readonly #returning: Promise<void>[] = []

  constructor(stage: Stage, chance: Chance) {
    this.#stage = stage
    this.#chance = chance
  }

  /** The first console migrates the database, which workers do not. */
  async start(): Promise<void> {
    this.#consoles.push(await this.#console(await freePort()))
    const second = this.#console(await freePort())
    this.#workers.push(...(await Promise.all(Array.from({ length: workersCount }, () => this.#worker()))))
    this.#consoles.push(await second)
  }

  readonly urls = (): string[] => this.#consoles.map(({ url }) => url)

  #console(port: number): Promise<Member> {
    return this.#stage.console({ external: true, port })
  }

  #worker(): Promise<Member> {
    return this.#stage.worker(isLong ? {} : { storm: ['--lease-ms', String(leaseMs)] })
  }

  /** It comes back on its port, as a service manager has it; callers ask the other one meanwhile, and this one in vain. */
  async killConsole(): Promise<void> {
    const victim = await this.#oneOf(this.#consoles)
    await this.#stage.broken('console killed', () => victim.end('SIGKILL'))
    this.#replace(this.#consoles, victim, () => this.#console(Number(new URL(victim.url).port)))
  }

  async killWorker(except?: Member): Promise<void> {
    const victim = await this.#oneOf(this.#workers, except)
    await this.#stage.broken('worker killed', () => victim.end('SIGKILL'))
    this.#replace(this.#workers, victim, () => this.#worker())
  }

  async #oneOf(members: readonly Member[], except?: Member): Promise<Member> {
    const living = () => members.filter((each) => each !== except && each.report().ended === null)
    if (living().length === 0) await this.healed()
    return this.#chance.pick(living() as [Member, ...Member[]])
  }

  /** Nobody waits for it: what comes next may break beside. */
  #replace(members: Member[], dead: Member, start: () => Promise<Member>): void {
    const returning = this.#started(start).then((member) => {
      members[members.indexOf(dead)] = member
    })
    returning.catch(() => undefined)
    this.#returning.push(returning)
  }

  /** A process that finds no database when it starts says so and ends; whoever manages it starts it again. */
  async #started(start: () => Promise<Member>): Promise<Member> {
    for (const from = performance.now(); ;) {
      try {
        return await start()
      } catch (error) {
        if (!(error instanceof Error) || !databaseAway.test(error.message) || performance.now() - from > startsMs)
          throw error
        this.startsInVain += 1
      }
    }
  }

  /** Everybody who was killed is back. */
  async healed(): Promise<void> {
    await Promise.all(this.#returning)
  }

  async crash(): Promise<void> {
    const awayMs = this.#chance.whole(200, sized(1_000, 8_000))
    const how = this.#chance.next() < 0.5 ? 'quit' : 'kill'
    await this.#stage.broken(`PostgreSQL crashed, ${how}`, async () => {
      await postgres.crash(how)
      const from = performance.now()
      await this.#stage.until(() => performance.now() - from > awayMs)
      await postgres.recover()
    })
  }

  async killBackend(): Promise<void> {
    await this.#stage.broken('a process of PostgreSQL killed', () => killBackend(this.#stage))
  }

  async cutOff(): Promise<void> {
    await this.#stage.broken('connections cut', () => cutOff(this.#stage))
  }

  /**
   * A worker that holds a command stands still until its lease has run out and somebody else has said what is known, and then goes
   * on; `meanwhile` others break. Returns the command's id, which is in doubt.
   */
  async standStill(load: Load, meanwhile: (still: Member) => Promise<void>): Promise<string> {
    const wish = load.wish(`message ${slowMs}`)
    const id = (await load.insist(wish)) ?? ''
    await this.#stage.until(() => this.#stage.agent.receipts().some(({ messageId }) => messageId === wish.messageId))
    const still = await this.#holderOf(id)
    await this.#stage.broken('a worker stood still', async () => {
      still.signal('SIGSTOP')
      await this.#stage.until(() => still.isStopped())
      await meanwhile(still)
      expect((await load.ended(id, 2 * leaseMs + 30_000)).status).toBe('uncertain')
      still.signal('SIGCONT')
      // It finds its connections cut or its lease taken, and says so; a live one has renewed what it got since.
      await this.#stage.until(() => !still.isStopped())
    })
    return id
  }

  async #holderOf(commandId: string): Promise<Member> {
    const { owner } = await this.#stage.withDatabase(({ pool }) =>
      pool.one(sql.type(Owner)`select lease_owner as owner from actor where kind = 'command' and id = ${commandId}`),
    )
    const holder = this.#workers.find(({ process }) => owner.split('/')[1] === String(process.pid))
    if (!holder) throw new Error(`${owner} is none of the workers.`)
    return holder
  }

  /** How long until somebody's wish is accepted again. */
  async recovered(load: Load): Promise<void> {
    const from = performance.now()
    await load.reached(load.accepted + 1)
    this.recoveriesMs.push(performance.now() - from)
  }
}

function shuffled<T>(of: readonly T[], chance: Chance): T[] {
  return of
    .map((each) => ({ each, at: chance.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ each }) => each)
}

describe('external workers, kills, and a PostgreSQL that crashes', () => {
  it('lose nothing, deliver nothing twice, and say of what is in doubt that it is', async () => {
    const doubted: string[] = []
    const options = { database: 'postgresql' as const, serverUrl: await freshUrlOn(postgres) }
    const history = await storm('external workers, kills and crashes', options, async (stage, chance) => {
      const fleet = new Fleet(stage, chance)
      await fleet.start()
      const load = await stage.load(fleet.urls, chance, words)
      const stop = load.begin(senders)
      let turns = 0
      const turn = async (work: () => Promise<void>): Promise<void> => {
        await load.reached(load.accepted + chance.whole(3, 20))
        await work()
        turns += 1
        await fleet.recovered(load)
      }
      for (let round = 0; round < rounds; round++) {
        // The short pass breaks each kind once; beside who stands still, a worker and a console are killed as well.
        if (isLong) await turn(() => fleet.killWorker())
        const stand = async (): Promise<void> => {
          const id = await fleet.standStill(load, async (still) => {
            const beside = [() => fleet.crash(), () => fleet.killWorker(still), () => fleet.killConsole()]
            for (const work of shuffled(beside, chance)) await turn(work)
          })
          doubted.push(id)
        }
        const alone = [stand, () => fleet.killBackend(), () => fleet.cutOff()]
        if (isLong) alone.push(() => fleet.killConsole())
        for (const work of shuffled(alone, chance)) await turn(work)
      }
      await fleet.healed()
      await load.reached(load.accepted + 20)
      await stop()
      return {
        load,
        figures: {
          turns,
          startsInVain: fleet.startsInVain,
          meanRecoveryMs: meanOf(fleet.recoveriesMs),
          maxRecoveryMs: Math.max(...fleet.recoveriesMs),
        },
      }
    })
    expect(doubted.map((id) => history.finals.get(id)?.status)).toEqual(doubted.map(() => 'uncertain'))
    expectMostSucceeded(history)
  })
})
