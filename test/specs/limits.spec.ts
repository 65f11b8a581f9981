/** The clock's promises: how long a route waits for a person, and what it says meanwhile. One minute, all of them at once. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

let house: TestConsole
let slow: RawPeer
beforeAll(async () => {
  house = await startConsole({ database: 'postgresql' })
  slow = await startRawPeer()
})
afterAll(async () => {
  await house.close()
  await slow.close()
})

const took = async <T>(work: Promise<T>): Promise<{ value: T; seconds: number }> => {
  const startedAt = performance.now()
  const value = await work
  return { value, seconds: (performance.now() - startedAt) / 1000 }
}

test(
  '50 s for a message, 50 s for a stream, 55 s for the signal, with resync in its silences',
  { timeout: 90_000 },
  async () => {
    const agentId = await house.api.register(slow.cardUrl)
    const stream = await house.api.fetch(`/api/agents/${agentId}/stream`, {
      method: 'POST',
      body: JSON.stringify({ text: 'hold' }),
    })
    await slow.script.held(1)
    slow.script.holdReplies()
    const [message, streamed, signalled] = await Promise.all([
      took(house.api.post(`/api/agents/${agentId}/messages`, { text: 'hello' })),
      took(stream.text()),
      took(house.api.fetch('/api/tasks/events').then((response) => response.text())),
    ])
    slow.script.release()

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
    expect(signals.filter((name) => name === 'resync').length).toBeGreaterThanOrEqual(1)
    expect(signalled.seconds).toBeGreaterThan(54)
    expect(signalled.seconds).toBeLessThan(62)
  },
)
