/**
 * F4, F5, F15: several workers on one PostgreSQL, one of them killed; a worker that stands still past its lease and then goes
 * on; and processes that are asked to end while they are busy.
 */
import { describe, expect, it } from 'vitest'
import { bothDatabases } from '../support/databases.ts'
import { endLeases } from './leases.ts'
import type { Load } from './load.ts'
import type { CrashPoint } from './root/doom.ts'
import { isLong, sized, storm, usualWords } from './storm.ts'
import type { Stage } from './stage.ts'

const senders = 12
const statusIn = (load: Load, id: string) => load.finals.get(id)?.status

describe('F4: three workers and one queue', () => {
  it('never deliver one command twice, also when one of them is killed', async () => {
    const rounds = sized(2, 20)
    await storm('three workers', { database: 'postgresql' }, async (stage, chance) => {
      const console_ = await stage.console({ external: true })
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const workers = await Promise.all([stage.worker(), stage.worker(), stage.worker()])
      for (let round = 0; round < rounds; round++) {
        const running = load.run(40, senders)
        await load.reached(load.accepted + chance.whole(5, 30))
        const victim = workers[round % workers.length]
        await stage.broken('worker killed', async () => victim?.end('SIGKILL'), 75_000)
        await running
        if (round + 1 < rounds) workers[round % workers.length] = await stage.worker()
      }
      if (!isLong) await stage.withDatabase(endLeases)
      return { load, figures: { kills: rounds } }
    })
  })
})

describe('F5: a worker that stands still past its lease', () => {
  /** Trusted for 2 s of 3 by whoever holds it. */
  const lease = { storm: ['--lease-ms', '3000'] }

  const paused = (point: CrashPoint, words: string) => async (stage: Stage, load: Load) => {
    const still = await stage.worker(lease)
    const wish = load.wish(words)
    return stage.broken(`stood still at ${point}`, async () => {
      await still.tell({ stopAt: point })
      const id = (await load.insist(wish)) ?? ''
      await stage.until(() => still.isStopped())
      // Somebody else finds the lease run out, and says what is known.
      const other = await stage.worker(lease)
      const verdict = (await load.ended(id)).status
      still.signal('SIGCONT')
      return { id, still, other, verdict, messageId: wish.messageId }
    })
  }

  it('may not say anything any more: its late result is discarded, and the verdict stands', async () => {
    await storm('late result', { database: 'postgresql' }, async (stage, chance) => {
      const console_ = await stage.console({ external: true })
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const { id, still, verdict } = await paused('answer/received', 'message')(stage, load)
      await stage.until(() => still.output().includes('a late result was discarded'))
      expect(verdict).toBe('uncertain')
      await load.settle(1, 10_000)
      expect(statusIn(load, id)).toBe('uncertain')
      return { load }
    })
  })

  it('sends nothing when it was stopped before the first byte', async () => {
    await storm('late first byte', { database: 'postgresql' }, async (stage, chance) => {
      const console_ = await stage.console({ external: true })
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const { id, still, verdict, messageId } = await paused('begin/after-commit', 'message')(stage, load)
      // What it does next shows that it has been through what it was stopped in.
      await still.end('SIGTERM')
      expect(verdict).toBe('uncertain')
      expect(stage.agent.receipts().filter((receipt) => receipt.messageId === messageId)).toEqual([])
      await load.settle(1, 10_000)
      expect(statusIn(load, id)).toBe('uncertain')
      return { load }
    })
  })
})

describe.each(bothDatabases)('F15: asked to end while busy, on %s', (database) => {
  it('a process finishes what it sent, gives back the rest, and ends with 0 within 15 s', async () => {
    const rounds = sized(1, 20)
    const history = await storm(`drain, ${database}`, { database }, async (stage, chance) => {
      let console_ = await stage.console()
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const enough = new AbortController()
      const running = load.run(Infinity, senders, enough.signal)
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
      enough.abort()
      await running
      expect(slowest).toBeLessThan(15_000)
      return { load, figures: { drains: rounds, slowestDrainMs: slowest } }
    })
    expect([...history.finals.values()].filter(({ status }) => status === 'uncertain')).toEqual([])
  })

  it('a second signal ends it at once; what it was sending is in doubt, and nothing is lost', async () => {
    await storm(`second signal, ${database}`, { database }, async (stage, chance) => {
      const console_ = await stage.console()
      const load = await stage.load(() => [console_.url], chance, usualWords)
      await load.run(10, senders)
      const slow = load.wish('message 5000')
      await load.insist(slow)
      await stage.until(() => stage.agent.receipts().some(({ messageId }) => messageId === slow.messageId))
      await stage.broken(
        'second signal',
        async () => {
          console_.expect('1')
          console_.signal('SIGTERM')
          await stage.until(async () => !(await stage.answers(console_.url)))
          const from = performance.now()
          console_.signal('SIGTERM')
          await console_.ended
          expect(performance.now() - from).toBeLessThan(2_000)
        },
        75_000,
      )
      if (database === 'postgresql') await stage.withDatabase(endLeases)
      await stage.console()
      return { load }
    })
  })
})
