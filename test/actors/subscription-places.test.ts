/** A worker follows eight streams at a time: who comes next waits for a place, and has the first that is left. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bothDatabases } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { patience } from './reconciliation-turns.ts'

const places = 8

interface StreamingAgent {
  readonly peer: RawPeer
  readonly id: string
  localId: string
}

describe.each(bothDatabases)('the streams of a worker on %s', (kind) => {
  let running: RunningSystem
  let agents: StreamingAgent[]
  let open: Set<string>
  let most: number
  beforeEach(async () => {
    running = await freshSystem(kind)
    open = new Set()
    most = 0
    agents = []
    for (let n = 0; n <= places; n++) {
      const peer: RawPeer = await startRawPeer({
        asked: (operation, answer) => {
          if (operation !== 'SubscribeToTask') return
          const { cardUrl } = peer
          open.add(cardUrl)
          most = Math.max(most, open.size)
          answer.once('close', () => open.delete(cardUrl))
        },
      })
      const { id } = await running.system.agents.register(running.viewer, peer.cardUrl)
      agents.push({ peer, id, localId: '' })
    }
  })
  afterEach(async () => {
    await running.close()
    for (const { peer } of agents) await peer.close()
  })

  it('are eight, and the ninth has the place of the first that ends', async () => {
    for (const agent of agents) {
      const { id } = await running.send(agent.id, { text: 'hold' })
      agent.localId = (await running.finished(id)).result?.localId ?? ''
    }
    const ended = (agent: StreamingAgent) =>
      running.task(agent.localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    const waiting = () => agents.filter(({ peer }) => !open.has(peer.cardUrl))
    await expect.poll(() => open.size, patience).toBe(places)
    const [ninth] = waiting()
    const [first] = agents.filter(({ peer }) => open.has(peer.cardUrl))
    if (!first || !ninth) throw new Error('Eight of nine are open.')
    first.peer.script.finish()
    await ended(first)
    await expect.poll(() => open.has(ninth.peer.cardUrl), patience).toBe(true)
    for (const { peer } of agents) peer.script.finish()
    await Promise.all(agents.map(ended))
    await expect.poll(() => open.size, patience).toBe(0)
    expect(most).toBe(places)
  })
})
