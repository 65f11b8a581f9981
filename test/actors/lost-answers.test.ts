/**
 * How far an answer was that is lost: none, half of one, half of one that also waited for room here, or one that found no room at all.
 * A person who looks for what was done is told which. The peers are real listeners.
 */
import { expect, it } from 'vitest'
import { LargeAnswers, type Guest } from '../../actors/large-answers.ts'
import { bounds, canary, door, head, post } from './listeners.ts'

const MiB = 1024 * 1024
const large = { ...bounds, maxBytes: 25 * MiB, deadlineMs: 500 }

const enter = async (guest: Guest): Promise<void> => void (await guest.read(MiB + 1))

/** Both places of the agent are taken; how to give one of them back. */
async function fullHouse(): Promise<{ room: LargeAnswers; guest: Guest; makeRoom: () => void }> {
  const room = new LargeAnswers()
  const holders = [room.guest('agent'), room.guest('agent')]
  for (const holder of holders) await enter(holder)
  return { room, guest: room.guest('agent'), makeRoom: () => holders[0]?.leave() }
}

/** Three megabytes of four, and silence. */
const halfOfIt = () =>
  canary((socket) => {
    socket.write(head(`content-length: ${4 * MiB}\r\n`))
    socket.write(Buffer.alloc(3 * MiB))
  })

it.each([
  ['the peer says nothing', '', null],
  ['the peer only announces an answer', 'HTTP/1.1 100 Continue\r\n\r\n', null],
  ['the head of an answer came', head('content-length: 100\r\n'), 'unfinished'],
  ['part of an answer came', `${head('content-length: 100\r\n')}{`, 'unfinished'],
])('when its time is up and %s', async (_case, said, instead) => {
  const listener = await canary((socket) => socket.write(said))
  expect(await door().exchange(post(listener.url), large)).toMatchObject({ kind: 'lost', code: 'timeout', instead })
})

it('a large answer that found room at once had all of its time', async () => {
  const guest = new LargeAnswers().guest('agent')
  const room = { read: guest.read, withinMs: bounds.deadlineMs }
  const sent = await door().exchange(post((await halfOfIt()).url), { ...large, room })
  expect(sent).toMatchObject({ kind: 'lost', code: 'timeout', instead: 'unfinished' })
})

it('a large answer that waited for room, and did not come to its end afterwards, had its time beside the wait', async () => {
  const { room, guest, makeRoom } = await fullHouse()
  const outbound = door()
  const waiting = { read: guest.read, withinMs: bounds.deadlineMs }
  const sending = outbound.exchange(post((await halfOfIt()).url), { ...large, room: waiting })
  await expect.poll(() => room.counts.waiting).toBe(1)
  // For as long as another is silent.
  await outbound.exchange(post((await canary()).url), large)
  makeRoom()
  expect(await sending).toMatchObject({ kind: 'lost', code: 'timeout', instead: 'unfinishedBesideWait' })
})

it('a large answer that found no room was not late: there was none', async () => {
  const { guest } = await fullHouse()
  const room = { read: guest.read, withinMs: 300 }
  const sent = await door().exchange(post((await halfOfIt()).url), { ...large, room })
  expect(sent).toMatchObject({ kind: 'lost', code: 'aborted', instead: 'noRoom' })
})

it('who hangs up while an answer waits for room says no more than that', async () => {
  const { room, guest } = await fullHouse()
  const stop = new AbortController()
  const waiting = { read: guest.read, withinMs: bounds.deadlineMs }
  const sending = door().exchange(post((await halfOfIt()).url), { ...large, room: waiting }, stop.signal)
  await expect.poll(() => room.counts.waiting).toBe(1)
  stop.abort()
  expect(await sending).toMatchObject({ kind: 'lost', code: 'aborted', instead: null })
})
