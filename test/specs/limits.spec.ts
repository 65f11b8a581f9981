/** The clock's promises: how long a route waits for a person, and what it says meanwhile. One minute, all of them at once. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
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

test(
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
