/**
 * Large answers wait for room: with the network and not in memory, not in their agents' time, and agents do not take each other's.
 * The peers are real listeners that answer with megabytes.
 */
import { gzipSync } from 'node:zlib'
import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LargeAnswers, type Guest } from '../../actors/large-answers.ts'
import { bounds, door, post, web } from './listeners.ts'

const MiB = 1024 * 1024
const large = { ...bounds, maxBytes: 25 * MiB }
const roomOf = ({ read }: Guest, withinMs = bounds.deadlineMs) => ({ read, withinMs })
/** It has come so far that it needs a place. */
const enter = async (guest: Guest): Promise<void> => void (await guest.read(MiB + 1))

it('one agent takes two places, and who has none goes before it; eight are all there are', async () => {
  const room = new LargeAnswers()
  const inside: string[] = []
  const guest = (agentId: string, name: string) => {
    const each = room.guest(agentId)
    void enter(each).then(() => inside.push(name))
    return each
  }
  const greedy = ['a1', 'a2', 'a3', 'a4'].map((name) => guest('a', name))
  const others = ['b1', 'c1', 'd1', 'd2', 'e1', 'f1', 'g1'].map((name) => guest(name.slice(0, 1), name))
  await expect.poll(() => inside).toEqual(['a1', 'a2', 'b1', 'c1', 'd1', 'd2', 'e1', 'f1'])
  // Who asks again has the same place; who gives up a wait leaves no hole.
  if (greedy[0]) await enter(greedy[0])
  greedy[2]?.leave()
  expect(room.counts).toEqual({ inside: 8, waiting: 2, drippingBytes: 0 })
  greedy[0]?.leave()
  others[0]?.leave()
  await expect.poll(() => inside.slice(8)).toEqual(['g1', 'a4'])
  for (const each of [...greedy, ...others]) each.leave()
  expect(room.counts).toEqual({ inside: 0, waiting: 0, drippingBytes: 0 })
})

it.each([4, 8, 20])(
  'behind %i agents with thirty answers each, the first of another waits for one of each at most',
  async (busy) => {
    const room = new LargeAnswers()
    const inside: { agentId: string; guest: Guest }[] = []
    const enters = (agentId: string): void => {
      const guest = room.guest(agentId)
      void enter(guest).then(() => inside.push({ agentId, guest }))
    }
    for (let answer = 0; answer < 30; answer += 1) for (let agent = 0; agent < busy; agent += 1) enters(`busy ${agent}`)
    enters('other')
    let letIn = 0
    for (;;) {
      await expect.poll(() => inside.length).toBeGreaterThan(0)
      const first = inside.shift()
      if (first?.agentId === 'other') break
      first?.guest.leave()
      letIn += 1
    }
    // Those that were inside when it came, and one more of each.
    expect(letIn).toBeLessThanOrEqual(8 + busy)
  },
)

it.each(['as it is', 'packed'])(
  'an answer of three megabytes, %s, is read on when there is room, a small one at once',
  async (how) => {
    const text = JSON.stringify({ text: 'x'.repeat(3 * MiB) })
    const url = await web((request, response) => {
      if (request.url === '/small') return void response.end('{}')
      if (how === 'packed') return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(text))
      response.end(text)
    })
    const room = new LargeAnswers()
    const holders = ['agent', 'agent'].map((agentId) => room.guest(agentId))
    for (const holder of holders) await enter(holder)
    const guest = room.guest('agent')
    const outbound = door()
    const sent = outbound.exchange(post(url), { ...large, room: roomOf(guest) })
    await expect.poll(() => room.counts).toEqual({ inside: 2, waiting: 1, drippingBytes: 0 })
    expect(await outbound.exchange(post(`${url}small`), { ...large, room: roomOf(guest) })).toMatchObject({
      kind: 'answered',
    })
    holders[0]?.leave()
    const answer = await sent
    expect(answer.kind === 'answered' && Buffer.from(answer.body).toString()).toBe(text)
  },
)

it('an answer that has come is not late for others that are read before it', async () => {
  const url = await web((request, response) => {
    if (request.url === '/') response.end(Buffer.alloc(3 * MiB))
  })
  const room = new LargeAnswers()
  const holders = ['agent', 'agent'].map((agentId) => room.guest(agentId))
  for (const holder of holders) await enter(holder)
  const guest = room.guest('agent')
  const outbound = door()
  const hurried = { ...large, deadlineMs: 500 }
  const sent = outbound.exchange(post(url), { ...hurried, room: roomOf(guest) })
  await expect.poll(() => room.counts.waiting).toBe(1)
  // Who is asked only now, for as long, is late by the time that there is room.
  expect(await outbound.exchange(post(`${url}silent`), hurried)).toMatchObject({ code: 'timeout' })
  holders[0]?.leave()
  expect(await sent).toMatchObject({ kind: 'answered' })
})

it.each([
  ['our patience', 'on its way', 0],
  ['our patience', 'here, and packed', 9],
  ['its signal', 'on its way', 0],
])(
  'who waits for room is ended by %s while the answer is %s, and what it had sent is in doubt: we hung up',
  async (by, _where, level) => {
    const packed = gzipSync(Buffer.alloc(3 * MiB), { level })
    const url = await web((_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed))
    const room = new LargeAnswers()
    for (const holder of ['agent', 'agent'].map((agentId) => room.guest(agentId))) await enter(holder)
    const guest = room.guest('agent')
    const stop = new AbortController()
    const patience = by === 'our patience' ? 300 : bounds.deadlineMs
    const sending = door().exchange(post(url), { ...large, room: roomOf(guest, patience) }, stop.signal)
    await expect.poll(() => room.counts.waiting).toBe(1)
    if (by === 'its signal') stop.abort()
    expect(await sending).toMatchObject({ kind: 'lost', code: 'aborted' })
    guest.leave()
    expect(room.counts).toEqual({ inside: 2, waiting: 0, drippingBytes: 0 })
  },
)

it('eight answers that drip, of four agents, keep nobody waiting, and are whole in the end', async () => {
  const dripping: ServerResponse[] = []
  const url = await web((request, response) => {
    if (request.url === '/well') return void response.end(Buffer.alloc(5 * MiB))
    response.write(Buffer.alloc(2 * MiB))
    dripping.push(response)
  })
  const room = new LargeAnswers({ judgedMs: 300 })
  const outbound = door()
  const patient = { ...large, deadlineMs: 60_000 }
  const ask = (agentId: string, path: string) => {
    const guest = room.guest(agentId)
    const sent = outbound.exchange(post(`${url}${path}`), { ...patient, room: roomOf(guest, 60_000) })
    return sent.finally(guest.leave)
  }
  const drips = ['a', 'b', 'c', 'd'].flatMap((agentId) => [ask(agentId, 'drip'), ask(agentId, 'drip')])
  await expect.poll(() => room.counts).toEqual({ inside: 8, waiting: 0, drippingBytes: 0 })
  expect(await ask('well', 'well')).toMatchObject({ kind: 'answered' })
  expect(room.counts).toMatchObject({ inside: 7, drippingBytes: expect.any(Number) })
  for (const response of dripping) response.end(Buffer.alloc(10 * MiB))
  for (const drip of await Promise.all(drips))
    expect(drip).toMatchObject({ kind: 'answered', body: { length: 12 * MiB } })
  expect(room.counts).toEqual({ inside: 0, waiting: 0, drippingBytes: 0 })
})

/** What one second brings of answers, all of one size, over one line of ours that they share. */
interface Line {
  readonly agents: number
  readonly each: number
  readonly bytes: number
  readonly perSecond: number
}

/** One of them, with the minute that it has while it does not wait, and the two for which it may (delivery.ts). */
class Coming {
  readonly #guest: Guest
  readonly #wholeBytes: number
  #bytes = MiB
  #waits = false
  #readS = 0
  #waitedS = 0
  end: 'whole' | 'late' | 'no room' | null = null

  constructor(guest: Guest, wholeBytes: number) {
    this.#guest = guest
    this.#wholeBytes = wholeBytes
  }

  get isRead(): boolean {
    return this.end === null && !this.#waits
  }

  get held(): number {
    return this.end === null ? this.#bytes : 0
  }

  second(bytes: number): void {
    if (this.end !== null) return
    if (this.#waits) this.#waitedS += 1
    else this.#readS += 1
    if (!this.#waits) this.#come(bytes)
    if (this.#bytes >= this.#wholeBytes) this.#over('whole')
    else if (this.#readS > 60) this.#over('late')
    else if (this.#waitedS > 120) this.#over('no room')
  }

  #come(bytes: number): void {
    this.#bytes += bytes
    const wait = this.#guest.read(this.#bytes)
    this.#waits = wait !== null
    void wait?.then(() => (this.#waits = false))
  }

  #over(end: 'whole' | 'late' | 'no room'): void {
    this.end = end
    this.#guest.whole()
    this.#guest.leave()
  }
}

/** A second at a time, until all have come to an end. */
async function play(room: LargeAnswers, coming: readonly Coming[], bytesOf: (each: Coming) => number): Promise<number> {
  let mostHeld = 0
  for (let second = 0; second < 2_000 && coming.some(({ end }) => end === null); second++) {
    const pieces = coming.map((each) => [each, bytesOf(each)] as const)
    for (const [each, bytes] of pieces) each.second(bytes)
    await vi.advanceTimersByTimeAsync(1000)
    mostHeld = Math.max(
      mostHeld,
      coming.reduce((sum, { held }) => sum + Math.max(0, held - 2 * MiB), 0),
    )
  }
  expect(room.counts).toEqual({ inside: 0, waiting: 0, drippingBytes: 0 })
  return mostHeld
}

describe('in seconds of their own', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  it.each<[Line, number]>([
    [{ agents: 16, each: 1, bytes: 24 * MiB, perSecond: 4_000_000 }, 16],
    [{ agents: 1, each: 6, bytes: 24 * MiB, perSecond: 1_000_000 }, 6],
    [{ agents: 30, each: 1, bytes: 24 * MiB, perSecond: 4_000_000 }, 24],
    [{ agents: 1, each: 60, bytes: 10 * MiB, perSecond: 2_000_000 }, 24],
  ])('a line of ours that is slow is no drip of any agent: %o', async ({ agents, each, bytes, perSecond }, whole) => {
    const room = new LargeAnswers()
    const coming = Array.from({ length: agents * each }, (_, i) => new Coming(room.guest(`${i % agents}`), bytes))
    const share = () => perSecond / Math.max(1, coming.filter(({ isRead }) => isRead).length)
    await play(room, coming, share)
    expect(coming.filter(({ end }) => end === 'whole').length).toBeGreaterThanOrEqual(whole)
    // Nobody is let begin what cannot be ended.
    expect(coming.filter(({ end }) => end === 'late')).toEqual([])
  })

  it('however slowly answers come, no more is held than there is room for, and nobody stays', async () => {
    const told = fc.array(
      fc.record({
        agent: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
        bytes: fc.integer({ min: 2 * MiB, max: 24 * MiB }),
        perSecond: fc.constantFrom(1_000, 30_000, 300_000, 3_000_000, 30_000_000),
      }),
      { minLength: 1, maxLength: 60 },
    )
    await fc.assert(
      fc.asyncProperty(told, async (all) => {
        const room = new LargeAnswers()
        const pace = new Map(
          all.map(({ agent, bytes, perSecond }) => [new Coming(room.guest(agent), bytes), perSecond]),
        )
        const mostHeld = await play(room, [...pace.keys()], (each) => pace.get(each) ?? 0)
        expect(mostHeld).toBeLessThanOrEqual((200 + 64) * MiB)
        expect([...pace.keys()].filter(({ end }) => end === null)).toEqual([])
      }),
      { numRuns: 50 },
    )
  })

  it('what drips and has more goes before those that have not begun', async () => {
    const room = new LargeAnswers()
    const inside: string[] = []
    const guests = new Map(
      ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e', 'f'].map((agent, i) => [`${agent}${i}`, room.guest(agent)]),
    )
    const read = (name: string, bytes: number): void => {
      void guests
        .get(name)
        ?.read(bytes)
        ?.then(() => inside.push(name))
    }
    for (const name of guests.keys()) read(name, 2 * MiB)
    expect(room.counts).toMatchObject({ inside: 8, waiting: 2 })
    await vi.advanceTimersByTimeAsync(4_000)
    // Two have made room for those that waited, and keep what they have.
    expect(inside).toEqual(['e8', 'f9'])
    expect(room.counts).toEqual({ inside: 8, waiting: 0, drippingBytes: 6 * MiB })
    const late = room.guest('g')
    void late.read(2 * MiB)?.then(() => inside.push('late'))
    read('a0', 3 * MiB)
    expect(room.counts.waiting).toBe(1)
    read('a0', 3 * MiB + 1)
    expect(room.counts.waiting).toBe(2)
    guests.get('d7')?.leave()
    await vi.advanceTimersByTimeAsync(0)
    expect(inside.slice(2)).toEqual(['a0'])
  })

  it('what drips keeps its place where nobody would have it, or where it holds more than there is room for aside', async () => {
    const room = new LargeAnswers()
    const [first, second, third] = ['a', 'a', 'a'].map(() => room.guest('a'))
    void first?.read(20 * MiB)
    void second?.read(20 * MiB)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(room.counts).toEqual({ inside: 2, waiting: 0, drippingBytes: 0 })
    void third?.read(2 * MiB)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(room.counts).toEqual({ inside: 2, waiting: 1, drippingBytes: 0 })
    for (const each of [first, second, third]) each?.leave()
  })
})
