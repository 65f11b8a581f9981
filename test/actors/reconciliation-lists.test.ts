/** When a list is read where no task can be: by the minute of an agent that says anything, and after four passes of one that is silent. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { instruments } from '../../actors/system.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { followsNothing, Scopes } from './reconciliation-turns.ts'

const refusal = JSON.stringify({ error: { code: 500, status: 'INTERNAL', message: 'Not one task at a time.' } })
/** An agent that fails is asked every 60 s in the end. */
const passMs = 60_000

describe.each(eitherDatabase)('an agent that shows none of its tasks, on %s', (kind) => {
  let running: RunningSystem
  let scopes: Scopes
  let peer: RawPeer
  let agentId: string
  let aheadMs = 0
  beforeAll(async () => {
    const clocks = {
      now: () => new Date(Date.now() + aheadMs),
      monotonic: () => performance.now() + aheadMs,
    }
    running = await freshSystem(kind, { rhythm: followsNothing, instruments: { ...instruments, ...clocks } })
    scopes = new Scopes(running)
  })
  beforeEach(async () => {
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    await running.finished((await running.send(agentId, { text: 'hold' })).id)
  })
  afterEach(async () => {
    await running.system.agents.remove(running.viewer, agentId)
    await peer.close()
  })
  afterAll(() => running.close())

  /** In which of so many passes, a minute apart, its list was asked for. */
  async function passesWithLists(passes: number): Promise<readonly number[]> {
    const listed: number[] = []
    let before = (await scopes.row(agentId))?.context.listedAt
    for (let pass = 1; pass <= passes; pass++) {
      const { value, context } = await scopes.turn(agentId)
      expect(value).toBe('backingOff')
      if (context.listedAt !== before) listed.push(pass)
      before = context.listedAt
      aheadMs += passMs
    }
    return listed
  }

  it('is asked for its list by the minute where it refuses each', async () => {
    peer.script.fault('GetTask', { fault: 'body', status: 500, body: refusal }, Infinity)
    expect(await passesWithLists(4)).toEqual([2, 3, 4])
  })

  it('is asked for its list by the minute where it is silent about each, once it has listed', async () => {
    peer.script.fault('GetTask', { fault: 'reset', performed: false }, Infinity)
    expect(await passesWithLists(6)).toEqual([4, 5, 6])
    peer.script.fault('ListTasks', { fault: 'reset', performed: false }, Infinity)
    expect(await passesWithLists(5)).toEqual([1, 5])
  })
})
