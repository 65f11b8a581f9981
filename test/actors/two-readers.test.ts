/**
 * However many agents have something unfinished at once, a process has two readers for all of them, and one for those whose last
 * look failed: counted at the agents, by the reads of tasks that are open there at the same time.
 */
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eitherDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const agentsCount = 8
/** How long an agent holds a read: long enough for a reader too many to come, and an answer that is quick all the same. */
const heldMs = 250

/** The reads that are open at all agents together. */
class OpenReads {
  most = 0
  #now = 0

  readonly asked = (operation: string, answer: ServerResponse): void => {
    if (operation !== 'GetTask') return
    this.#now += 1
    this.most = Math.max(this.most, this.#now)
    answer.once('close', () => (this.#now -= 1))
  }
}

describe.each(eitherDatabase)(`%s: of ${agentsCount} agents that are due at once`, (database) => {
  let running: RunningSystem
  let scopes: Scopes
  let reads: OpenReads
  let agents: readonly { readonly peer: RawPeer; readonly agentId: string }[]
  beforeEach(async () => {
    running = await freshSystem(database, { rhythm: followsNothing })
    scopes = new Scopes(running)
    reads = new OpenReads()
    const { asked } = reads
    agents = await Promise.all(
      Array.from({ length: agentsCount }, async () => {
        const peer = await startRawPeer({ asked })
        return { peer, agentId: (await running.system.agents.register(running.viewer, peer.cardUrl)).id }
      }),
    )
    const sent = await Promise.all(agents.map(({ agentId }) => running.send(agentId, { text: 'hold' })))
    for (const { id } of sent) await running.finished(id)
  })
  afterEach(async () => {
    await running.close()
    await Promise.all(agents.map(({ peer }) => peer.close()))
  })

  /** Each is read once, and holds the reader for a while. Resolves with how many were read at once, at the most. */
  async function mostAtOnce(): Promise<number> {
    const before = agents.map(({ peer }) => peer.callsOf('GetTask'))
    for (const { peer } of agents) peer.script.fault('GetTask', { fault: 'delay', delayMs: heldMs }, Infinity)
    reads.most = 0
    for (const { agentId } of agents) await scopes.begin(agentId)
    const unread = () => agents.filter(({ peer }, i) => peer.callsOf('GetTask') === before[i]).length
    await expect.poll(unread, patience).toBe(0)
    return reads.most
  }

  it('two are read at the same time', async () => {
    expect(await mostAtOnce()).toBe(2)
  })

  it('one is read at a time, where the last look at each had failed', async () => {
    const failing = async (agentId: string): Promise<boolean> => {
      const { context, work } = (await scopes.row(agentId)) ?? {}
      if ((context?.failures ?? 0) > 0) return true
      if (work === null || work === undefined) await scopes.begin(agentId)
      return false
    }
    for (const { peer } of agents) peer.script.fault('GetTask', { fault: 'status', status: 503 }, Infinity)
    for (const { agentId } of agents) await expect.poll(() => failing(agentId), patience).toBe(true)
    for (const { peer } of agents) peer.script.heal()
    expect(await mostAtOnce()).toBe(1)
  })
})
