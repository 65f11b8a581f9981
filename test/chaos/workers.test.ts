/**
 * F4, F5, F13, F15: several workers on one PostgreSQL, one of them killed; a worker that stands still past its lease and then goes
 * on; workers whose clocks jump; and processes that are asked to end while they are busy.
 */
import { describe, expect, it } from 'vitest'
import { bothDatabases } from '../support/databases.ts'
import type { CrashPoint } from './doomed/doom.ts'
import { expectMostSucceeded, expectNoDoubt, storm, usualWords } from './storm.ts'
import { isLong, sized } from '../support/pass.ts'

const senders = 12

describe('F4: three workers and one queue', () => {
  /** In the short pass: three workers, of which one is killed while another stands still (external.test.ts). */
  it.runIf(isLong)('never deliver one command twice, also when one of them is killed', async () => {
    const rounds = 20
    const history = await storm('three workers', { database: 'postgresql' }, async (stage, chance) => {
      const console_ = await stage.console({ external: true })
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const workers = await Promise.all([stage.worker(), stage.worker(), stage.worker()])
      for (let round = 0; round < rounds; round++) {
        const running = load.run(40, senders)
        await load.reached(load.accepted + chance.whole(5, 30))
        const victim = workers[round % workers.length]
        await stage.broken('worker killed', async () => victim?.end('SIGKILL'))
        await running
        if (round + 1 < rounds) workers[round % workers.length] = await stage.worker()
      }
      return { load, figures: { kills: rounds } }
    })
    expectMostSucceeded(history)
  })
})

describe('F8: a claim whose answer is lost', () => {
  /** The short pass loses a console's (outages.test.ts), whatever it commits. */
  it.runIf(isLong)(
    'has begun nothing: the same worker takes it again at once, and nobody waits for a lease or has doubts',
    async () => {
      const rounds = 50
      const history = await storm('lost claims', { database: 'postgresql' }, async (stage, chance) => {
        const console_ = await stage.console({ external: true })
        const load = await stage.load(() => [console_.url], chance, usualWords)
        const worker = await stage.worker({ storm: ['--seed', String(chance.seed)] })
        let slowestMs = 0
        for (let round = 0; round < rounds; round++) {
          const outages = () => worker.output().split('the database is away').length
          const before = outages()
          await worker.tell({ loseCommits: 1 })
          const id = (await load.insist(load.wish('message'))) ?? ''
          await stage.until(() => outages() > before)
          await worker.tell({ loseCommits: 0 })
          const from = performance.now()
          await load.ended(id)
          slowestMs = Math.max(slowestMs, performance.now() - from)
        }
        // A lease is a minute.
        expect(slowestMs).toBeLessThan(20_000)
        return { load, figures: { claimsLost: rounds, slowestMs } }
      })
      expectNoDoubt(history)
    },
  )
})

describe('F13: workers whose clocks jump', () => {
  const hourMs = 60 * 60_000

  /** In the short pass: a process beside a database of another clock (test/actors/clocks.test.ts). */
  it.runIf(isLong)(
    'by hours, one ahead and one back, take nothing before its time, nothing twice, and leave nothing in doubt',
    async () => {
      const rounds = 20
      const history = await storm('clocks of workers', { database: 'postgresql' }, async (stage, chance) => {
        const console_ = await stage.console({ external: true })
        const load = await stage.load(() => [console_.url], chance, usualWords)
        const workers = await Promise.all([stage.worker({ storm: [] }), stage.worker({ storm: [] })])
        for (let round = 0; round < rounds; round++) {
          // In the end both are right again. No fault is written down: a verdict of doubt would be groundless.
          for (const clockMs of [hourMs, -2 * hourMs, hourMs]) {
            const running = load.run(40, senders)
            await load.reached(load.accepted + chance.whole(1, 10))
            await Promise.all(workers.map((worker, n) => worker.tell({ clockMs: n === 0 ? clockMs : -clockMs })))
            await running
          }
        }
        return { load, figures: { jumps: 2 * 3 * rounds } }
      })
      expectNoDoubt(history)
      expectMostSucceeded(history)
    },
  )
})

describe('F5: a worker that stands still past its lease', () => {
  /** Trusted for 2 s of 3 by whoever holds it. */
  const lease = { storm: ['--lease-ms', '3000'] }

  it('may not say or send anything any more: the verdict that was given meanwhile stands', async () => {
    await storm('stood still', { database: 'postgresql' }, async (stage, chance) => {
      const console_ = await stage.console({ external: true })
      const load = await stage.load(() => [console_.url], chance, usualWords)
      let still = await stage.worker(lease)
      const pause = async (point: CrashPoint): Promise<{ readonly id: string; readonly messageId: string }> => {
        const wish = load.wish('message')
        return stage.broken(`stood still at ${point}`, async () => {
          await still.tell({ stopAt: point })
          const id = (await load.insist(wish)) ?? ''
          await stage.until(() => still.isStopped())
          // Somebody else finds the lease run out, and says what is known.
          const other = await stage.worker(lease)
          expect((await load.ended(id)).status).toBe('uncertain')
          still.signal('SIGCONT')
          // A drained worker has been through whatever it was stopped in.
          if (point === 'answer/received')
            await stage.until(() => still.output().includes('a late result was discarded'))
          await still.end('SIGTERM')
          still = other
          return { id, messageId: wish.messageId }
        })
      }
      for (let round = 0; round < sized(1, 10); round++) {
        const answered = await pause('answer/received')
        const unsent = await pause('begin/after-commit')
        await load.settle(1, 10_000)
        expect([answered, unsent].map(({ id }) => load.finals.get(id)?.status)).toEqual(['uncertain', 'uncertain'])
        const received = stage.agent.receipts().map(({ messageId }) => messageId)
        expect([answered, unsent].map(({ messageId }) => received.includes(messageId))).toEqual([true, false])
      }
      return { load, figures: { stood: sized(2, 20) } }
    })
  })
})

/** In the short pass also: webs and workers that are replaced under load, within the same time (test/bin/replicas.test.ts). */
describe.each(isLong ? bothDatabases : (['pglite'] as const))('F15: asked to end while busy, on %s', (database) => {
  it('a process finishes what it sent, gives back the rest, and ends with 0 within 15 s', async () => {
    const rounds = sized(1, 20)
    const history = await storm(`drain, ${database}`, { database }, async (stage, chance) => {
      let console_ = await stage.console()
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const stop = load.begin(senders)
      let slowest = 0
      for (let round = 0; round < rounds; round++) {
        await load.reached(load.accepted + chance.whole(10, 40))
        // One answer that takes longer than a drain usually does: it is waited for.
        await load.insist(load.wish('message 1500'))
        const from = performance.now()
        expect(await console_.end('SIGTERM')).toBe('0')
        slowest = Math.max(slowest, performance.now() - from)
        console_ = await stage.console()
      }
      await load.reached(load.accepted + 10)
      await stop()
      expect(slowest).toBeLessThan(15_000)
      return { load, figures: { drains: rounds, slowestDrainMs: slowest } }
    })
    expectNoDoubt(history)
  })
})

it('F15: a second signal ends a process at once; what it was sending is in doubt, and nothing is lost', async () => {
  await storm('second signal', { database: 'postgresql' }, async (stage, chance) => {
    const console_ = await stage.console()
    const load = await stage.load(() => [console_.url], chance, usualWords)
    await load.run(10, senders)
    const slow = load.wish('message 5000')
    await load.insist(slow)
    await stage.until(() => stage.agent.receipts().some(({ messageId }) => messageId === slow.messageId))
    await stage.broken('second signal', async () => {
      console_.expect('1')
      console_.signal('SIGTERM')
      await stage.until(async () => !(await stage.answers(console_.url)))
      const from = performance.now()
      console_.signal('SIGTERM')
      await console_.ended
      // A drain waits for what is under way: ten seconds.
      expect(performance.now() - from).toBeLessThan(8_000)
    })
    await stage.leasesOver()
    await stage.console()
    return { load }
  })
})
