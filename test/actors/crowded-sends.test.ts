/**
 * Agents that hang and are sent large messages without end, beside agents that answer: what these are sent gets in, and what is inside and
 * who waits stay within their bounds. The rows are played here: what is put off comes again after its pause.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LargeSends, type LargeSendsLimits } from '../../actors/large-sends.ts'
import { Bell } from '../../actors/loop/bell.ts'
import { PutOff } from '../../actors/loop/lease.ts'

const ref = { kind: 'command', id: '00000000-0000-7000-8000-000000000001' }
const KiB = 1024
const MiB = 1024 * KiB
const answerMs = 60_000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** By the clock of these tests, which does not run by itself. */
const pause = (ms: number) => new Bell().wait(ms, new AbortController().signal)

class Crowd {
  readonly #sends: LargeSends
  readonly #drain = new AbortController()
  bytes = 0
  most = { bytes: 0, waiting: 0 }
  putOffs = 0
  readonly pausesMs = new Map<string, number[]>()
  #waiting = 0

  constructor(limits: Partial<LargeSendsLimits> = {}) {
    this.#sends = new LargeSends(limits)
  }

  /** Resolves with how long it waited, once it is let in. */
  send(agentId: string, bytes: number, takesMs: number): Promise<number> {
    const letIn = Promise.withResolvers<number>()
    const at = performance.now()
    void this.#deliver(agentId, bytes, async () => {
      letIn.resolve(performance.now() - at)
      await pause(takesMs)
    })
    return letIn.promise
  }

  async #deliver(agentId: string, bytes: number, deliver: () => Promise<void>): Promise<void> {
    for (;;) {
      const place = this.#sends.place(agentId, bytes)
      try {
        if (!place.isInside) await place.enter(ref, { beforehand: (waiting) => this.#wait(waiting) })
        this.bytes += bytes
        this.most.bytes = Math.max(this.most.bytes, this.bytes)
        await deliver()
        this.bytes -= bytes
        return
      } catch (error) {
        if (!(error instanceof PutOff)) throw error
        this.putOffs += 1
        this.pausesMs.set(agentId, [...(this.pausesMs.get(agentId) ?? []), error.pauseMs])
        place.leave()
        await pause(error.pauseMs)
      } finally {
        place.leave()
      }
    }
  }

  async #wait(waiting: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.#waiting += 1
    this.most.waiting = Math.max(this.most.waiting, this.#waiting)
    try {
      await waiting(this.#drain.signal)
    } finally {
      this.#waiting -= 1
    }
  }
}

const named = (name: string, n: number) => Array.from({ length: n }, (_, i) => `${name} ${i}`)

/** Each of these agents is sent so many, and says nothing to any of them for a minute. */
async function hanging(crowd: Crowd, agents: number, bytes: number): Promise<void> {
  for (const agent of named('hanging', agents)) for (let n = 0; n < 100; n++) void crowd.send(agent, bytes, answerMs)
  await vi.advanceTimersByTimeAsync(3_000)
}

/** How long the sends waited that were let in within so long. */
async function waits(sent: readonly Promise<number>[], withinMs: number): Promise<readonly number[]> {
  const waited: number[] = []
  for (const each of sent) void each.then((ms) => waited.push(ms))
  await vi.advanceTimersByTimeAsync(withinMs)
  return waited
}

it.each([5, 30])('what is moderately large finds room at once beside %i agents that hang', async (agents) => {
  const crowd = new Crowd()
  await hanging(crowd, agents, 14 * MiB)
  const sent = named('answering', 5).map((agent) => crowd.send(agent, 300 * KiB, 100))
  expect(await waits(sent, 1_000)).toEqual([0, 0, 0, 0, 0])
})

it('what is as large as theirs has its turn before all that they are sent, and nothing passes its bounds', async () => {
  const crowd = new Crowd()
  await hanging(crowd, 12, 14 * MiB)
  const sent = named('answering', 5).map((agent) => crowd.send(agent, 14 * MiB, 100))
  expect(await waits(sent, 2 * answerMs)).toHaveLength(5)
  await vi.advanceTimersByTimeAsync(2 * answerMs)
  expect(crowd.most.bytes).toBeLessThan(112 * MiB)
  expect(crowd.most.waiting).toBeLessThanOrEqual(32 + 64)
})

it('of more agents than may wait with nothing under way, the others wait as everybody does', async () => {
  const crowd = new Crowd({ firstWaiting: 2, waiting: 3 })
  await hanging(crowd, 30, 14 * MiB)
  expect(crowd.most.waiting).toBe(2 + 3)
})

it('what is put off comes again soon, whoever else is, and a crowd of agents comes little more often than one', async () => {
  const crowd = new Crowd({ waiting: 0, firstWaiting: 0 })
  await hanging(crowd, 5, 14 * MiB)
  void crowd.send('answering', 15 * MiB, 100)
  await vi.advanceTimersByTimeAsync(10)
  expect(crowd.pausesMs.get('answering')).toEqual([1_000])
  const before = crowd.putOffs
  await vi.advanceTimersByTimeAsync(10_000)
  expect(crowd.putOffs - before).toBeLessThan(400)
})
