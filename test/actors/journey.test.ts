/** The main job below HTTP: register, send, follow, answer, cancel; against the published SDK's servers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bothDatabases } from '../support/databases.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import type { Peer } from '../support/peers/peer.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'

describe.each(bothDatabases)('the main job on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())

  describe.each([
    ['1.0', 'JSONRPC'],
    ['1.0', 'HTTP+JSON'],
    ['0.3', 'JSONRPC'],
    ['0.3', 'HTTP+JSON'],
  ] as const)('with an agent of A2A %s over %s', (version, binding) => {
    let peer: Peer
    let agentId: string
    beforeAll(async () => {
      peer = await startSdkPeer({ version, binding })
      agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    })
    afterAll(() => peer.close())

    it('delivers a message once and shows the finished task', async () => {
      const { id, messageId } = await running.send(agentId, { text: 'hello' })
      const command = await running.finished(id)
      expect(command).toMatchObject({ status: 'succeeded', error: null })
      const view = await running.task(command.result?.localId ?? '', (t) => t.state === 'TASK_STATE_COMPLETED')
      expect(view.messages.map((m) => m.role)).toContain('user')
      expect(view.artifacts.length).toBeGreaterThan(0)
      expect(peer.receiptsOf(messageId)).toBe(1)
    })

    it('follows a stream of artifacts to its end', async () => {
      const command = await running.finished((await running.send(agentId, { text: 'stream 20' })).id)
      const view = await running.task(command.result?.localId ?? '', (t) => t.state === 'TASK_STATE_COMPLETED')
      const texts = view.artifacts.flatMap((a) => a.parts.map((p) => p.value))
      expect(texts.length).toBeGreaterThanOrEqual(20)
    })

    it('answers a question on the same task', async () => {
      const command = await running.finished((await running.send(agentId, { text: 'ask' })).id)
      const { localId = '', taskId } = command.result ?? {}
      await running.task(localId, (t) => t.state === 'TASK_STATE_INPUT_REQUIRED')
      const reply = await running.finished((await running.send(agentId, { text: 'blue', taskId: taskId ?? '' })).id)
      expect(reply.result?.localId).toBe(localId)
      const view = await running.task(localId, (t) => t.state === 'TASK_STATE_COMPLETED')
      expect(view.transitions.map((t) => t.state)).toContain('TASK_STATE_INPUT_REQUIRED')
    })

    it('cancels what the agent works on', async () => {
      const command = await running.finished((await running.send(agentId, { text: 'hold' })).id)
      const { localId = '', taskId } = command.result ?? {}
      const cancel = await running.send(agentId, { action: 'cancelTask', taskId: taskId ?? '' })
      expect(await running.finished(cancel.id)).toMatchObject({ status: 'succeeded' })
      await running.task(localId, (t) => t.state === 'TASK_STATE_CANCELED')
    })

    it('keeps a direct reply as a row of its own', async () => {
      const command = await running.finished((await running.send(agentId, { text: 'direct' })).id)
      const view = await running.task(command.result?.localId ?? '', () => true)
      expect(view).toMatchObject({ kind: 'message', state: 'MESSAGE_ONLY', taskId: null })
      expect(view.messages).toHaveLength(2)
    })
  })
})
