/** Whether a stream told anything but new times of the state its task was in: what a subscription that broke is judged by. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toldSince } from '../../persistence/following.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const timestamp = '2026-11-24T00:00:00.000Z'
const working = 'TASK_STATE_WORKING'
const status = (state: string, ids: { taskId: string; contextId?: string } = { taskId: 't' }): string =>
  JSON.stringify({ statusUpdate: { ...ids, status: { state, timestamp } } })
const words = (text: string): string =>
  JSON.stringify({ artifactUpdate: { taskId: 't', artifact: { artifactId: 'a', parts: [{ text }] } } })
const [stamp, ended] = [status(working), status('TASK_STATE_COMPLETED')]
const longIds = status(working, { taskId: '\u{1f600}'.repeat(200), contextId: '\u{1f600}'.repeat(200) })

describe.each(bothDatabases)('what was told since, on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())

  let tasks = 0
  async function told(events: readonly string[], since: number): Promise<boolean> {
    const taskId = `70000000-0000-7000-8000-${String(++tasks).padStart(12, '0')}`
    for (const [position, event] of events.entries())
      await fresh.db.pool.query(sql.unsafe`
        insert into task_event (task_id, position, source, event, received_at)
        values (${taskId}, ${position}, 'stream', ${event}, ${timestamp})`)
    return toldSince(fresh.db.pool, taskId, since, working)
  }

  it.each([
    ['nothing', [], 0, false],
    ['a new time', [stamp], 0, false],
    ['a new time with ids of 800 bytes each', [longIds], 0, false],
    ['another state', [stamp, ended], 0, true],
    ['another state before that', [ended, stamp], 1, false],
    ['a word', [words('Hello.')], 0, true],
    ['a word of 100,000 characters', [stamp, words('é'.repeat(100_000)), stamp], 0, true],
    ['as many new times as are looked at', Array.from({ length: 50 }, () => stamp), 0, true],
    ['one fewer', Array.from({ length: 49 }, () => stamp), 0, false],
  ])('%s', async (_case, events, since, expected) => {
    expect(await told(events, since)).toBe(expected)
  })
})
