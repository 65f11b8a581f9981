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

it('whoever has waited longest for a list to have time for them is asked first, among however many that hang', async () => {
  const asked: string[] = []
  const held: ServerResponse[] = []
  let holds = true
  const url = await web((request, response) => {
    asked.push(request.url ?? '')
    if (holds) held.push(response)
    else response.writeHead(503).end()
  })
  const release = (): void => {
    for (const response of held.splice(0)) response.writeHead(503).end()
  }
  const running = await freshSystem('pglite')
  try {
    const { system, viewer } = running
    const cardUrls = Array.from({ length: 130 }, (_, n) => `${url}${n}/card.json`)
    for (const cardUrl of cardUrls) await system.agents.register(viewer, cardUrl)
    // Two lists that run out of time: the first half, and most of the second.
    for (const so of [64, 128]) {
      await system.agents.list(viewer)
      expect(asked).toHaveLength(so)
      release()
    }
    expect(new Set(asked).size).toBe(128)
    holds = false
    await system.agents.list(viewer)
    expect(asked.slice(128, 130).toSorted()).toEqual(['/128/card.json', '/129/card.json'])
  } finally {
    release()
    await running.close()
  }
})

it('a list that has no time left for some agents says that they were not asked, and the next asks them first', async () => {
  const asked: string[] = []
  const held: ServerResponse[] = []
  const url = await web((request, response) => {
    asked.push(request.url ?? '')
    held.push(response)
  })
  const running = await freshSystem('pglite')
  try {
    const { system, viewer } = running
    const cardUrls = Array.from({ length: 66 }, (_, n) => `${url}${n}/card.json`)
    for (const cardUrl of cardUrls) await system.agents.register(viewer, cardUrl)
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
    for (const response of held) response.writeHead(503).end()
    await again
  } finally {
    await running.close()
  }
})
