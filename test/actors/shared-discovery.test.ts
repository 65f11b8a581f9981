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
