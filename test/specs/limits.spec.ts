/**
 * The clock's promises: how long a route waits for a person, what it says meanwhile, and how long an answer waits for room on a full disk.
 * One minute, all of them at once.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ActorAnswer } from '../../domain/actor.ts'
import { isFinished } from '../../domain/command.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import { unstoredAnswer } from '../../domain/lost-answer.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

let house: TestConsole
let slow: RawPeer
/** Takes connections and says nothing. */
let mute: Server
beforeAll(async () => {
  house = await startConsole({ database: 'postgresql' })
  slow = await startRawPeer()
  mute = createServer().listen(0, '127.0.0.1')
  await once(mute, 'listening')
})
afterAll(async () => {
  await house.close()
  await slow.close()
  mute.close()
})

const took = async <T>(work: Promise<T>): Promise<{ value: T; seconds: number }> => {
  const startedAt = performance.now()
  const value = await work
  return { value, seconds: (performance.now() - startedAt) / 1000 }
}

test.concurrent(
  '50 s for a message, 50 s for a stream, 55 s for the signal, with resync in its silences; 5 s for agents that hang',
  { timeout: 90_000 },
  async () => {
    const agentId = await house.api.register(slow.cardUrl)
    const { port } = mute.address() as AddressInfo
    const hanging = Array.from({ length: 40 }, (_, n) => `http://127.0.0.1:${port}/${n}`)
    for (const url of hanging) await house.api.register(url)
    const stream = await house.api.fetch(`/api/agents/${agentId}/stream`, {
      method: 'POST',
      body: JSON.stringify({ text: 'hold' }),
    })
    await slow.script.held(1)
    slow.script.holdReplies()
    const [message, streamed, signalled, listed] = await Promise.all([
      took(house.api.post(`/api/agents/${agentId}/messages`, { text: 'hello' })),
      took(stream.text()),
      took(house.api.fetch('/api/tasks/events').then((response) => response.text())),
      took(house.api.get('/api/agents')),
    ])
    slow.script.release()

    const { agents } = listed.value.body as { agents: readonly { cardUrl: string; name?: string; error?: string }[] }
    expect(agents.find(({ cardUrl }) => cardUrl === slow.cardUrl)?.name).toEqual(expect.any(String))
    const silent = (url: string) => `Agent Card discovery failed. Tried: ${url} (no answer yet)`
    expect(agents.flatMap(({ error }) => error ?? []).toSorted()).toEqual(hanging.map(silent).toSorted())
    expect(listed.seconds).toBeLessThan(8)

    expect(message.value.status).toBe(504)
    expect(message.seconds).toBeGreaterThan(49)
    expect(message.seconds).toBeLessThan(56)

    const text = streamed.value
    expect(text).toMatch(/^event: accepted\n/)
    expect(text.match(/^event: end$/gm)).toHaveLength(1)
    expect(text.match(/^: ping$/gm)?.length).toBeGreaterThanOrEqual(3)
    expect(streamed.seconds).toBeGreaterThan(45)
    expect(streamed.seconds).toBeLessThan(56)

    const signals = [...signalled.value.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name)
    expect(signals[0]).toBe('ready')
    // Every 15 s without news; the last at 45 s, on a machine that has not stood still.
    expect(signals.filter((name) => name === 'resync').length).toBeGreaterThanOrEqual(2)
    expect(signalled.seconds).toBeGreaterThan(54)
    expect(signalled.seconds).toBeLessThan(62)
  },
)

/** A full disk is waited for 43 s. */
const fullDisk = { timeout: 75_000, interval: 250 }

/** Whoever sent it is told that it was answered, and nothing is sent again. */
test.concurrent(
  'an answer whose files cannot be stored leaves the send uncertain, and says what happened',
  { timeout: 90_000 },
  async ({ onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-unstored-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const blocked = join(folder, 'artifacts')
    writeFileSync(blocked, 'a file stands where the directory should be')
    const house = await startConsole({
      database: 'postgresql',
      uiDirectory: null,
      system: { artifactDirectory: blocked },
    })
    onTestFinished(() => house.close())
    const peer = await startRawPeer()
    onTestFinished(() => peer.close())
    const { id: agentId } = await house.system.agents.register(house.viewer, peer.cardUrl)

    // The agent's answer is its task, with what was said in it.
    const parts = [{ raw: Buffer.from('a,b\n1,2\n').toString('base64'), filename: 'sheet.csv' }]
    const sent = await house.send(agentId, { text: 'ask', parts })
    const find = () => house.system.commands.find(house.viewer, sent.id)
    // Room that is made now would save the answer, so whoever reads the log is told now.
    const waits = 'an answer waits: its files cannot be stored'
    await expect.poll(() => house.lines.map(({ message }) => message)).toContain(waits)
    expect((await find()).status).toBe('dispatching')
    await expect.poll(async () => isFinished((await find()).status), fullDisk).toBe(true)
    const ended = await find()
    expect(ended.status).toBe('uncertain')
    const { delivery } = ActorAnswer.parse((await house.api.get(`/api/actors/command/${sent.id}`)).body)
    expect(delivery).toMatchObject({ ended: 'unknown', cause: unstoredAnswer('ENOTDIR') })
    const told = explainCommand(ended, Date.now(), delivery)
    expect(told?.sentences[0]).toBe(
      'The agent answered the message, and what it said is lost: the console could not store its files. Nothing is sent again automatically.',
    )
    expect(told?.known.map(({ words }) => words)).toEqual([
      'Accepted and saved',
      'From here on the request may have left',
      'The agent answered, and the console could not store the files of what was said (ENOTDIR)',
    ])
    expect(peer.receiptsOf(sent.messageId)).toBe(1)
  },
)
