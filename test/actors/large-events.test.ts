/**
 * A large event of a stream waits for one turn, once it is whole: what only adds to it passes by, whoever has the turn. Otherwise each
 * 64 KiB of it would go behind everything large in the process.
 */
import { expect, it, onTestFinished } from 'vitest'
import type { Kinds, WorkHandler } from '../../actors/loop/kinds.ts'
import { HeavyTurns, type HeavyText } from '../../actors/threads/heavy-turns.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { freshSystem } from '../support/system.ts'
import { patience } from './reconciliation-turns.ts'

const MiB = 1024 * 1024

/** Notes the bytes of whatever asks for a turn. */
class NotedTurns extends HeavyTurns {
  readonly asked: number[] = []

  override take<T>(text: HeavyText, work: (isHeavy: boolean) => Promise<T>): Promise<T> {
    if (text.bytes >= MiB) this.asked.push(text.bytes)
    return super.take(text, work)
  }
}

it('is read from the agent while another has the turn, and takes one for all of it', async () => {
  let signs = 0
  /** Counts the signs of work of who follows. */
  const counted = (kinds: Kinds): Kinds => {
    const { subscription } = kinds
    const follow = subscription?.work['follow']
    if (!subscription || !follow) throw new Error('There are no subscriptions.')
    const counting: WorkHandler = (actor, held) => follow(actor, { ...held, busy: () => void (signs += 1) })
    return { ...kinds, subscription: { ...subscription, work: { ...subscription.work, follow: counting } } }
  }
  const running = await freshSystem('pglite', { rhythm: counted })
  onTestFinished(() => running.close())
  const peer = await startRawPeer()
  onTestFinished(() => peer.close())
  const heavy = new NotedTurns()
  Object.assign(running.system.pool, { heavy })
  const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
  const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
  const [localId, taskId] = [String(result?.localId), String(result?.taskId)]
  const { contextId } = await running.task(localId, () => true)
  await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBe(1)

  const { promise: held, resolve: letGo } = Promise.withResolvers<void>()
  onTestFinished(() => letGo())
  const other = heavy.take({ bytes: MiB, agentId: 'other' }, () => held)
  const text = 'x'.repeat(4 * MiB)
  peer.script.emit(taskId, {
    artifactUpdate: { taskId, contextId, artifact: { artifactId: 'large', parts: [{ text }] } },
  })
  const isWhole = (bytes: number | undefined): boolean => bytes !== undefined && bytes > text.length
  await expect.poll(() => heavy.asked.length, patience).toBe(2)
  expect(isWhole(heavy.asked[1])).toBe(true)
  // Nothing could be recorded of it yet: a stream on which it comes at a pace is not quiet all the same.
  expect(signs).toBeGreaterThanOrEqual(8)
  letGo()
  await other
  const { artifacts } = await running.task(localId, (task) => task.artifacts.length > 0)
  expect(artifacts.map(({ parts }) => String(parts[0]?.value).length)).toEqual([text.length])
  expect(heavy.asked.length).toBe(2)
})
