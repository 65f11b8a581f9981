/**
 * Large answers wait for room: with the network and not in memory, not in their agents' time, and agents do not take each other's.
 * The peers are real listeners that answer with megabytes.
 */
import { gzipSync } from 'node:zlib'
import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { LargeAnswers, type Guest } from '../../actors/large-answers.ts'
import { bounds, door, post, web } from './listeners.ts'

const MiB = 1024 * 1024
const large = { ...bounds, maxBytes: 25 * MiB }
const roomOf = ({ read }: Guest, withinMs = bounds.deadlineMs) => ({ read, withinMs })
/** It has come so far that it needs room, and may become as long as any. */
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
  expect(room.counts).toEqual({ bytes: 200 * MiB, waiting: 2 })
  greedy[0]?.leave()
  others[0]?.leave()
  await expect.poll(() => inside.slice(8)).toEqual(['g1', 'a4'])
  for (const each of [...greedy, ...others]) each.leave()
  expect(room.counts).toEqual({ bytes: 0, waiting: 0 })
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
    await expect.poll(() => room.counts).toEqual({ bytes: 50 * MiB, waiting: 1 })
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
    expect(room.counts).toEqual({ bytes: 50 * MiB, waiting: 0 })
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
  await expect.poll(() => room.counts).toEqual({ bytes: 200 * MiB, waiting: 0 })
  expect(await ask('well', 'well')).toMatchObject({ kind: 'answered' })
  expect(room.counts.bytes).toBeLessThan(200 * MiB)
  for (const response of dripping) response.end(Buffer.alloc(10 * MiB))
  for (const drip of await Promise.all(drips))
    expect(drip).toMatchObject({ kind: 'answered', body: { length: 12 * MiB } })
  expect(room.counts).toEqual({ bytes: 0, waiting: 0 })
})

it('an answer that says how long it is needs room for no more', () => {
  const room = new LargeAnswers()
  const guest = room.guest('agent')
  expect(guest.read(MiB + 1, 3 * MiB)).toBeNull()
  expect(room.counts.bytes).toBe(3 * MiB)
  guest.leave()
})

/** An answer in pieces of so many bytes, with so many seconds before each. */
interface Told {
  readonly agent: string
  readonly pieces: readonly { readonly afterS: number; readonly bytes: number }[]
}
const told = fc.array(
  fc.record({
    agent: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    pieces: fc.array(fc.record({ afterS: fc.nat(8), bytes: fc.integer({ min: 1, max: 6 * MiB }) }), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
  { minLength: 1, maxLength: 60 },
)

/** As it comes, a second at a time. */
class Coming {
  readonly #guest: Guest
  readonly #pieces: Told['pieces'][number][]
  #bytes = MiB
  #seconds = 0
  #waits = false
  isOver = false
  /** What is held beyond what anybody may: what comes before there is room for it is left with the network. */
  held = 0

  constructor(guest: Guest, { pieces }: Told) {
    this.#guest = guest
    this.#pieces = [...pieces]
  }

  second(): void {
    this.#seconds += 1
    const [piece] = this.#pieces
    if (this.isOver || this.#waits || (piece && this.#seconds < piece.afterS)) return
    if (!piece) return this.#end()
    this.#pieces.shift()
    this.#seconds = 0
    this.#bytes += piece.bytes
    const wait = this.#guest.read(this.#bytes)
    this.#waits = wait !== null
    if (wait) void wait.then(() => this.#had())
    else this.#had()
  }

  #had(): void {
    this.#waits = false
    this.held = this.#bytes
  }

  #end(): void {
    this.#guest.whole()
    this.#guest.leave()
    this.held = 0
    this.isOver = true
  }
}

it('however slowly answers come, no more is held than there is room for, and all come to their end', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    await fc.assert(
      fc.asyncProperty(told, async (all) => {
        const room = new LargeAnswers()
        const coming = all.map((answer) => new Coming(room.guest(answer.agent), answer))
        for (let second = 0; second < 2_000 && coming.some(({ isOver }) => !isOver); second++) {
          for (const each of coming) each.second()
          await vi.advanceTimersByTimeAsync(1000)
          expect(coming.reduce((sum, { held }) => sum + held, 0)).toBeLessThanOrEqual(room.counts.bytes)
          expect(room.counts.bytes).toBeLessThanOrEqual(225 * MiB)
        }
        expect(coming.filter(({ isOver }) => !isOver)).toEqual([])
        expect(room.counts).toEqual({ bytes: 0, waiting: 0 })
      }),
      { numRuns: 100 },
    )
  } finally {
    vi.useRealTimers()
  }
})

it('who was slow and has more goes before those that have not begun', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    const room = new LargeAnswers()
    const inside: string[] = []
    const guests = new Map(
      ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e', 'f'].map((agent, i) => [`${agent}${i}`, room.guest(agent)]),
    )
    const read = (name: string, bytes: number): void => {
      const wait = guests.get(name)?.read(bytes)
      void wait?.then(() => inside.push(name))
    }
    for (const name of guests.keys()) read(name, 2 * MiB)
    expect(room.counts).toEqual({ bytes: 200 * MiB, waiting: 2 })
    await vi.advanceTimersByTimeAsync(4_000)
    // Two have made room for those that waited.
    expect(inside).toEqual(['e8', 'f9'])
    const late = room.guest('g')
    void late.read(2 * MiB)?.then(() => inside.push('late'))
    read('a0', 5 * MiB)
    expect(room.counts.waiting).toBe(2)
    guests.get('d7')?.leave()
    await vi.advanceTimersByTimeAsync(0)
    expect(inside.slice(2)).toContain('a0')
  } finally {
    vi.useRealTimers()
  }
})
