/**
 * Large answers wait for room: with the network and not in memory, not in their agents' time, and agents do not take each other's.
 * The peers are real listeners that answer with megabytes.
 */
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { LargeAnswers, type Guest } from '../../actors/large-answers.ts'
import { bounds, door, post, web } from './listeners.ts'

const MiB = 1024 * 1024
const large = { ...bounds, maxBytes: 25 * MiB }
const roomOf = ({ enter }: Guest, withinMs = bounds.deadlineMs) => ({ enter, withinMs })

it('one agent takes two places, and who has none goes before it; eight are all there are', async () => {
  const room = new LargeAnswers()
  const inside: string[] = []
  const guest = (agentId: string, name: string) => {
    const each = room.guest(agentId)
    void each.enter().then(() => inside.push(name))
    return each
  }
  const greedy = ['a1', 'a2', 'a3', 'a4'].map((name) => guest('a', name))
  const others = ['b1', 'c1', 'd1', 'd2', 'e1', 'f1', 'g1'].map((name) => guest(name.slice(0, 1), name))
  await expect.poll(() => inside).toEqual(['a1', 'a2', 'b1', 'c1', 'd1', 'd2', 'e1', 'f1'])
  // Who asks again has the same place; who gives up a wait leaves no hole.
  await greedy[0]?.enter()
  greedy[2]?.leave()
  expect(room.counts).toEqual({ inside: 8, waiting: 2 })
  greedy[0]?.leave()
  others[0]?.leave()
  await expect.poll(() => inside.slice(8)).toEqual(['g1', 'a4'])
  for (const each of [...greedy, ...others]) each.leave()
  expect(room.counts).toEqual({ inside: 0, waiting: 0 })
})

it.each([4, 8, 20])(
  'behind %i agents with thirty answers each, the first of another waits for one of each at most',
  async (busy) => {
    const room = new LargeAnswers()
    const inside: { agentId: string; guest: Guest }[] = []
    const enters = (agentId: string): void => {
      const guest = room.guest(agentId)
      void guest.enter().then(() => inside.push({ agentId, guest }))
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
    for (const holder of holders) await holder.enter()
    const guest = room.guest('agent')
    const outbound = door()
    const sent = outbound.exchange(post(url), { ...large, room: roomOf(guest) })
    await expect.poll(() => room.counts).toEqual({ inside: 2, waiting: 1 })
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
  for (const holder of holders) await holder.enter()
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
    for (const holder of ['agent', 'agent'].map((agentId) => room.guest(agentId))) await holder.enter()
    const guest = room.guest('agent')
    const stop = new AbortController()
    const patience = by === 'our patience' ? 300 : bounds.deadlineMs
    const sending = door().exchange(post(url), { ...large, room: roomOf(guest, patience) }, stop.signal)
    await expect.poll(() => room.counts.waiting).toBe(1)
    if (by === 'its signal') stop.abort()
    expect(await sending).toMatchObject({ kind: 'lost', code: 'aborted' })
    guest.leave()
    expect(room.counts).toEqual({ inside: 2, waiting: 0 })
  },
)
