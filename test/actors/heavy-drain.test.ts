/**
 * What waits for its turn to be parsed while others have something to lose: the answer to a delivery goes before what the streams of
 * another agent bring, and a drain does not wait for what it has given back. Somebody has the turn until the test lets go.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { aborted } from '../../actors/loop/bell.ts'
import { HeavyTurns, type HeavyText } from '../../actors/threads/heavy-turns.ts'
import type { ParsedEvent } from '../../actors/threads/messages.ts'
import { ParserPool, type StreamFormat, type StreamParser, type WholeFrames } from '../../actors/threads/pool.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { patience } from './reconciliation-turns.ts'

const MiB = 1024 * 1024
const text = 'x'.repeat(MiB)
const streams = 3

/** Notes whose turns begin. */
class NotedTurns extends HeavyTurns {
  readonly begun: string[] = []

  override take<T>(asked: HeavyText, work: (isHeavy: boolean) => Promise<T>): Promise<T> {
    return super.take(asked, (isHeavy) => {
      if (isHeavy) this.begun.push(asked.agentId)
      return work(isHeavy)
    })
  }
}

describe.each(eitherDatabase)('beside streams that wait for their turns, on %s', (database) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let talker: RawPeer
  let other: RawPeer
  let heavy: NotedTurns
  beforeEach(async () => {
    fresh = await freshDatabase(database)
    running = await systemOn(fresh.db)
    talker = await startRawPeer()
    other = await startRawPeer({ binding: 'HTTP+JSON' })
    heavy = new NotedTurns()
    Object.assign(running.system.pool, { heavy })
  })
  afterEach(async () => {
    await talker.close()
    await other.close()
    await fresh.close()
  })

  /** Of one agent all streams have told something large, and of another an answer has come. */
  async function waiting() {
    const register = async (peer: RawPeer) => (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    const [talkerId, otherId] = [await register(talker), await register(other)]
    const localIds: string[] = []
    for (let n = 0; n < streams; n++) {
      const { result } = await running.finished((await running.send(talkerId, { text: 'hold' })).id)
      localIds.push(result?.localId ?? '')
    }
    await expect.poll(() => talker.subscribed().length, patience).toBe(streams)
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
    onTestFinished(() => letGo())
    const first = heavy.take({ bytes: MiB, agentId: 'first' }, () => held)
    for (const taskId of talker.taskIds())
      talker.script.emit(taskId, { artifactUpdate: { taskId, artifact: { artifactId: 'large', parts: [{ text }] } } })
    await expect.poll(() => heavy.waiting, patience).toBe(1 + streams)
    const message = { messageId: 'answer', role: 'ROLE_AGENT', parts: [{ text }] }
    const headers = { 'content-type': 'application/json' }
    other.script.fault('SendMessage', { fault: 'body', body: JSON.stringify({ message }), headers })
    const { id: commandId } = await running.send(otherId, { text: 'direct' })
    await expect.poll(() => heavy.waiting, patience).toBe(2 + streams)
    const end = async (): Promise<void> => {
      letGo()
      await first
    }
    return { talkerId, otherId, localIds, commandId, end }
  }

  it('a drain waits for the answer to a delivery alone', async () => {
    const { otherId, localIds, commandId, end } = await waiting()
    const closed = running.close()
    await expect.poll(() => heavy.waiting, patience).toBe(2)
    await end()
    await closed
    expect(heavy.begun).toEqual(['first', otherId])
    expect(await running.finished(commandId)).toMatchObject({ status: 'succeeded' })
    const Row = z.object({ id: z.string(), isFree: z.boolean() })
    const rows = await fresh.db.pool.any(sql.type(Row)`
      select id, lease_token is null and work_started_at is null and wake_at <= now() and work = 'follow' as "isFree"
      from actor where kind = 'subscription'`)
    expect(new Map(rows.map(({ id, isFree }) => [id, isFree]))).toEqual(new Map(localIds.map((id) => [id, true])))
    expect(running.lines.filter(({ level }) => level !== 'info')).toEqual([])
  })

  it('nor does it wait for a thread that reads what is given back', async () => {
    const { pool } = running.system
    const reads = Promise.withResolvers<void>()
    /** Of what is large a thread makes nothing, for as long as somebody wants it. */
    const openStream = (format: StreamFormat): StreamParser => {
      const parser = ParserPool.prototype.openStream.call(pool, format)
      const push = (chunk: Uint8Array): WholeFrames => {
        const whole = parser.push(chunk)
        const parse = (signal?: AbortSignal): Promise<ParsedEvent[]> => {
          if (whole.bytes < MiB) return whole.parse(signal)
          reads.resolve()
          return signal ? aborted(signal) : new Promise(() => {})
        }
        return { ...whole, parse }
      }
      return { push, end: () => parser.end() }
    }
    Object.assign(pool, { openStream })
    const { end } = await waiting()
    void end()
    await reads.promise
    await running.close()
    expect(heavy.waiting).toBe(0)
    expect(running.lines.filter(({ level }) => level !== 'info')).toEqual([])
  })

  it('the answer to a delivery is read first, and then what the streams have told', async () => {
    const { talkerId, otherId, localIds, commandId, end } = await waiting()
    await end()
    expect(await running.finished(commandId)).toMatchObject({ status: 'succeeded' })
    for (const id of localIds) await running.task(id, ({ artifacts }) => artifacts.length > 0)
    expect(heavy.begun.slice(0, 2 + streams)).toEqual(['first', otherId, ...localIds.map(() => talkerId)])
    await running.close()
  })
})
