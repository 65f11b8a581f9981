/**
 * After a commit: whoever asked hears of it, whatever goes wrong with what begins now. A listener's defect is neither the
 * commit's nor the other listeners', and a piece of work that cannot be begun does not stop the next.
 */
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPromise, setup } from 'xstate'
import { instruments } from '../../actors/system.ts'
import { named } from '../support/changes.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { kindOf, loneRuntime } from '../support/lone-runtime.ts'
import { spawning } from '../support/spawning.ts'
import { capturedLog, systemOn } from '../support/system.ts'

const organizationId = newToken()
const looker = setup({ actors: { look: fromPromise(() => Promise.resolve()) } }).createMachine({
  id: 'looker',
  initial: 'looking',
  states: { looking: { invoke: { id: 'look', src: 'look' } } },
})
const spawn = spawning(organizationId)

describe('a commit', () => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase('pglite')
  })
  afterAll(() => fresh.close())

  it('is a commit although what it launches cannot be begun', async () => {
    const { log, lines } = capturedLog()
    const launched: string[] = []
    const runtime = loneRuntime({
      db: fresh.db,
      kinds: { looker: kindOf(looker) },
      instruments,
      log,
      launch: ({ ref }) => {
        launched.push(ref.id)
        if (launched.length === 1) throw new TypeError('a defect')
      },
    })
    const ids = [newToken(), newToken()]
    expect(await Promise.all(ids.map((id) => runtime.perform(spawn, { kind: 'looker', id })))).toEqual(ids)
    expect(launched.toSorted()).toEqual(ids.toSorted())
    const [first] = launched
    expect(lines).toMatchObject([
      { level: 'error', message: 'work could not be begun', fields: { actor: `looker/${first}`, work: 'look' } },
    ])
  })

  it('is heard by everybody although one listener throws, and its command goes its way', async () => {
    const running = await systemOn(fresh.db)
    const peer = await startRawPeer()
    const heard = new Set<string>()
    running.system.changes.subscribe(() => {
      throw new TypeError('a defect')
    })
    running.system.changes.subscribe((change) => {
      for (const id of named(change)) heard.add(id)
    })
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const { id, messageId } = await running.send(agentId, { text: 'direct' })
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    expect(peer.receiptsOf(messageId)).toBe(1)
    expect([heard.has(agentId), heard.has(id)]).toEqual([true, true])
    const errors = running.lines.filter(({ level }) => level === 'error').map(({ message }) => message)
    expect(new Set(errors)).toEqual(new Set(['a listener failed']))
    await running.close()
    await peer.close()
  })
})
