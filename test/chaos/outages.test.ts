/**
 * F6, F7, F8: a PostgreSQL that restarts, crashes and cuts its clients off; one that is slow, silent or has no connection
 * left; one that commits and cannot say so. The console is never restarted: it waits, says 503, and goes on by itself.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { fair, startProxy, type Proxy } from './proxy.ts'
import { cutOff, freshUrlOn } from './server-faults.ts'
import { expectMostSucceeded, expectNoDoubt, storm, usualWords } from './storm.ts'
import { isLong, sized } from '../support/pass.ts'

const senders = 12

let postgres: TestPostgres
let proxy: Proxy
beforeAll(async () => {
  // The tests' own server acknowledges before it writes; a user's does not, and this is about what it acknowledged.
  postgres = await startPostgres({ settings: ['synchronous_commit=on'] })
  const { hostname, port } = new URL(postgres.url)
  proxy = await startProxy({ host: hostname, port: Number(port) })
})
afterEach(() => proxy.turn(fair))
afterAll(async () => {
  await proxy.close()
  await postgres.stop()
})

const throughProxy = async () => ({
  database: 'postgresql' as const,
  serverUrl: await freshUrlOn(postgres),
  throughPort: proxy.port,
})

describe('F6: a PostgreSQL that goes away', () => {
  it('and comes back, crashed, restarted, or only for a moment: nothing is lost, nobody has to restart anything', async () => {
    const history = await storm(
      'outages',
      { database: 'postgresql', serverUrl: await freshUrlOn(postgres) },
      async (stage, chance) => {
        const console_ = await stage.console()
        const load = await stage.load(() => [console_.url], chance, usualWords)
        const stop = load.begin(senders)
        await load.reached(sized(30, 300))
        const beforeBytes = await console_.heldBytes()
        let recoveryMs = 0
        const away = async (what: string, work: () => Promise<unknown>): Promise<void> => {
          await stage.broken(what, work)
          const from = performance.now()
          await load.reached(load.accepted + 1)
          recoveryMs = Math.max(recoveryMs, performance.now() - from)
          await load.reached(load.accepted + 20)
        }
        const cuts = sized(5, 300)
        for (let i = 0; i < cuts; i++) {
          await stage.broken('connections cut', () => cutOff(stage))
          await load.reached(load.accepted + chance.whole(1, 5))
        }
        for (let i = 0; i < sized(1, 10); i++) {
          for (const how of ['quit', 'kill'] as const)
            await away(`crash, ${how}`, async () => {
              await postgres.crash(how)
              await postgres.recover()
            })
          await away('restart', () => postgres.restart())
        }
        await stop()
        const afterBytes = await stage.weighAgain(console_, beforeBytes)
        return {
          load,
          figures: {
            cuts,
            crashes: 2 * sized(1, 10),
            restarts: sized(1, 10),
            maxRecoveryMs: recoveryMs,
            beforeBytes,
            afterBytes,
          },
        }
      },
    )
    expectMostSucceeded(history)
    // In no phase: the process lives and keeps what it was answered, no outage is as long as its lease, and of a commit whose answer
    // was lost the database says later what became of it.
    expectNoDoubt(history)
  })
})

describe('F7: a PostgreSQL that is slow', () => {
  const silentMs = sized(6_000, 20_000)

  it('costs time: nothing is in doubt as long as leases can be renewed, and nothing piles up', async () => {
    const history = await storm('a slow database', await throughProxy(), async (stage, chance) => {
      const console_ = await stage.console()
      const load = await stage.load(() => [console_.url], chance, usualWords)
      await load.run(30, senders)
      proxy.turn({ latencyMs: sized(150, 1_000) })
      await load.run(sized(12, 200), senders)
      proxy.turn({ ...fair, sliceBytes: 11, bytesPerSecond: 200_000 })
      await load.run(sized(12, 200), senders)
      proxy.turn({ ...fair, stalled: true })
      // More readers than there are connections: those that find no place are told so, and do not wait for ever.
      const from = performance.now()
      const reading = Array.from({ length: 40 }, async () => (await fetch(`${console_.url}/api/tasks`)).status)
      const first = await Promise.race(reading)
      const refusedMs = performance.now() - from
      const sending = load.run(10, 10)
      await stage.until(() => performance.now() - from > silentMs)
      proxy.turn(fair)
      const statuses = await Promise.all(reading)
      await sending
      const back = performance.now()
      const again = await fetch(`${console_.url}/api/tasks`)
      const readMs = performance.now() - back
      expect({ first, again: again.status }).toEqual({ first: 503, again: 200 })
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
      // Who is asking is waited for five seconds, under way or not.
      expect(refusedMs).toBeLessThan(20_000)
      expect(readMs).toBeLessThan(4_000)
      return { load, figures: { refusedMs, readMs, refused: statuses.filter((status) => status === 503).length } }
    })
    // No fault was written down: a verdict of doubt would be groundless.
    expectNoDoubt(history)
  })
})

describe('F8: a commit whose acknowledgement is lost', () => {
  it('is neither assumed nor repeated: what it wrote is found and goes on, what it did not write is done', async () => {
    const losses = sized(6, 500)
    const history = await storm('lost acknowledgements', await throughProxy(), async (stage, chance) => {
      const console_ = await stage.console()
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const stop = load.begin(senders)
      let lost = 0
      for (let i = 0; i < losses; i++) {
        await load.reached(load.accepted + chance.whole(1, 4))
        const before = proxy.commitsLost
        proxy.loseCommits(1, chance.next() < 0.8)
        await stage.until(() => proxy.commitsLost > before)
        lost += 1
      }
      await stop()
      return { load, figures: { commitsLost: lost } }
    })
    expectNoDoubt(history)
  })

  it.runIf(isLong)('is not repeated either while nobody can tell, for the database stays away', async () => {
    // Longer than a commit's fate is asked for (13 s); a chunk of a task that was appended twice would read so.
    const awayMs = 17_000
    await storm('lost and away', await throughProxy(), async (stage, chance) => {
      const console_ = await stage.console()
      const load = await stage.load(
        () => [console_.url],
        chance,
        () => 'task 10',
      )
      for (let round = 0; round < 5; round++) {
        const running = load.run(12, senders)
        await load.reached(load.accepted + chance.whole(1, 10))
        const before = proxy.commitsLost
        await stage.broken('lost and away', async () => {
          proxy.loseCommits(2)
          await stage.until(() => proxy.commitsLost > before)
          proxy.turn({ refusing: true })
          proxy.reset()
          const from = performance.now()
          await stage.until(() => performance.now() - from > awayMs)
          proxy.turn(fair)
        })
        await running
      }
      return { load, figures: { commitsLost: proxy.commitsLost } }
    })
  })
})
