/** How long the database takes to answer, as each process measures it while it tells of itself: by a PostgreSQL behind a slow network, and an embedded one. */
import { expect, onTestFinished, test } from 'vitest'
import { SupervisorAnswer } from '../../domain/queue.ts'
import { slowAnswerMs } from '../../domain/patience.ts'
import { AnswerTime } from '../../actors/loop/answer-time.ts'
import { openDatabase } from '../../persistence/database.ts'
import { startProxy } from '../chaos/proxy.ts'
import { startConsole } from '../support/console.ts'
import { freshDatabase } from '../support/databases.ts'

/** It is measured every five seconds, and believed when it was so twice. */
const patience = { timeout: 40_000, interval: 200 }

test('a PostgreSQL that answers slowly is told to be slow by every process, and well again afterwards', async () => {
  const fresh = await freshDatabase('postgresql')
  onTestFinished(() => fresh.close())
  if (fresh.profile.kind !== 'postgresql') throw new Error('There is no network before an embedded database.')
  const url = new URL(fresh.profile.url)
  const proxy = await startProxy({ host: url.hostname, port: Number(url.port) })
  onTestFinished(() => proxy.close())
  url.port = String(proxy.port)
  url.hostname = '127.0.0.1'
  const db = await openDatabase({ kind: 'postgresql', url: url.href })
  const house = await startConsole({ database: db, uiDirectory: null })
  onTestFinished(async () => {
    await house.close()
    await db.close()
  })
  const answerMs = async (): Promise<number> => {
    const { process } = SupervisorAnswer.parse((await house.api.get('/api/supervisor')).body)
    return process.database.answerMs ?? -1
  }
  const isWell = (ms: number): boolean => ms >= 0 && ms < slowAnswerMs
  await expect.poll(async () => isWell(await answerMs()), patience).toBe(true)
  proxy.turn({ latencyMs: 600 })
  await expect.poll(answerMs, patience).toBeGreaterThanOrEqual(slowAnswerMs)
  proxy.turn({ latencyMs: 0 })
  await expect.poll(async () => isWell(await answerMs()), patience).toBe(true)
})

test('one slow answer is no slow database, and neither is the first; one that is waited for counts once it takes longer', async () => {
  let now = 0
  const time = new AnswerTime({ monotonic: () => now })
  const answered = async (ms: number): Promise<number | null> => {
    await time.measure(() => Promise.resolve(void (now += ms)))
    return time.ms
  }
  expect(await answered(1_500)).toBeNull()
  expect(await answered(4)).toBe(4)
  expect(await answered(1_800)).toBe(4)
  expect(await answered(1_900)).toBe(1_800)
  expect(await answered(2_000)).toBe(1_900)
  const { promise, resolve } = Promise.withResolvers<void>()
  const late = time.measure(() => promise)
  now += 1_000
  expect(time.ms).toBe(1_900)
  now += 4_000
  expect(time.ms).toBe(2_000)
  resolve()
  await late
  expect(time.ms).toBe(2_000)
  // Of one that failed nothing is known but that.
  await expect(time.measure(() => Promise.reject(new Error('away')))).rejects.toThrow('away')
  expect(time.ms).toBe(2_000)
})

test('an embedded database is measured, too', async () => {
  const house = await startConsole({ database: 'pglite', uiDirectory: null })
  onTestFinished(() => house.close())
  const told = async () => SupervisorAnswer.parse((await house.api.get('/api/supervisor')).body).process.database
  await expect.poll(told, patience).toMatchObject({ profile: 'pglite', answerMs: expect.any(Number) })
})
