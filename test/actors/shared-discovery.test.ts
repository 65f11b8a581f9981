/**
 * One search for an agent's card serves everybody who asks meanwhile, and each has the patience that is theirs: who waits only a
 * moment for it does not end it for the others. The agent is a real listener that shows its card when the test says so.
 */
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { freshSystem } from '../support/system.ts'
import { web } from './listeners.ts'

it('a list that has waited long enough for a card leaves it to the send that waits for it, too', async () => {
  const asked: ServerResponse[] = []
  const url = await web((_request, response) => void asked.push(response))
  const running = await freshSystem('pglite')
  try {
    const { system, viewer } = running
    const { id: agentId, cardUrl } = await system.agents.register(viewer, `${url}.well-known/agent-card.json`)
    const listing = system.agents.list(viewer)
    await expect.poll(() => asked.length).toBe(1)
    const { id } = await running.send(agentId, { text: 'hello' })
    expect(await listing).toMatchObject([
      { id: agentId, error: `Agent Card discovery failed. Tried: ${cardUrl} (no answer yet)` },
    ])
    // Asked once, and the answer is still waited for: it says that nobody can be spoken to, which is for ever.
    expect(asked.map(({ destroyed }) => destroyed)).toEqual([false])
    const supportedInterfaces = [{ url, protocolBinding: 'GRPC', protocolVersion: '1.0' }]
    asked[0]?.setHeader('content-type', 'application/json').end(JSON.stringify({ name: 'Slow', supportedInterfaces }))
    expect(await running.finished(id)).toMatchObject({
      status: 'failed',
      error: 'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.',
    })
    expect(asked).toHaveLength(1)
  } finally {
    await running.close()
  }
})

/** So many agents that hang: who asks for a card is `asked`, in order, and waits until `release`. */
async function agentsThatHang(count: number) {
  const asked: string[] = []
  const held: ServerResponse[] = []
  const url = await web((request, response) => {
    asked.push(request.url ?? '')
    held.push(response)
  })
  const release = (): void => {
    for (const response of held.splice(0)) response.writeHead(503).end()
  }
  const running = await freshSystem('pglite')
  const cardUrls = Array.from({ length: count }, (_, n) => `${url}${n}/card.json`)
  for (const cardUrl of cardUrls) await running.system.agents.register(running.viewer, cardUrl)
  const close = async (): Promise<void> => {
    release()
    await running.close()
  }
  return { ...running, asked, cardUrls, release, close }
}

it('whoever has waited longest for a list to have time for them is asked first, among however many that hang', async () => {
  const { system, viewer, asked, release, close } = await agentsThatHang(130)
  try {
    // Two lists that run out of time: the first half, and most of the second.
    for (const so of [64, 128]) {
      await system.agents.list(viewer)
      expect(asked).toHaveLength(so)
      release()
    }
    expect(new Set(asked).size).toBe(128)
    await system.agents.list(viewer)
    expect(asked.slice(128, 130).toSorted()).toEqual(['/128/card.json', '/129/card.json'])
  } finally {
    await close()
  }
})

it('a list that has no time left for some agents says that they were not asked, and the next asks them first', async () => {
  const { system, viewer, asked, cardUrls, release, close } = await agentsThatHang(66)
  try {
    const listed = await system.agents.list(viewer)
    expect(asked).toHaveLength(64)
    const silent = listed.filter(({ error }) => error?.endsWith('(no answer yet)'))
    expect(silent.map(({ cardUrl }) => cardUrl)).toEqual(cardUrls.slice(0, 64))
    const others = listed.slice(64).map(({ cardUrl, error }) => [cardUrl, error])
    const notAsked = 'Not asked for its Agent Card yet: the agents before it have not answered. Ask again in a moment.'
    expect(others).toEqual(cardUrls.slice(64).map((cardUrl) => [cardUrl, notAsked]))
    // The others still hang, and hold all but two of the places.
    const again = system.agents.list(viewer)
    await expect.poll(() => asked.length).toBe(66)
    expect(asked.slice(64).toSorted()).toEqual(['/64/card.json', '/65/card.json'])
    release()
    await again
  } finally {
    await close()
  }
})
