// scratch
import { test, expect } from 'vitest'
import { startRawPeer } from '../support/peers/raw.ts'
import { pushConsole, deliver, pushStateOf, toldTo, callsOnly } from '../support/push.ts'
import { freshDatabase } from '../support/databases.ts'
test('stress', { timeout: 120000 }, async () => {
  const { db, close } = await freshDatabase('postgresql')
  const one = await pushConsole(db)
  const two = await pushConsole(db)
  const peer = await startRawPeer({ card: { capabilities: { streaming: true, pushNotifications: true } } })
  const agent = await one.api.register(peer.cardUrl)
  const calls: { id: string; taskId: string; localId: string }[] = []
  for (let i = 0; i < 6; i++) {
    const { localId } = await one.api.send(agent, { text: 'hold' })
    await expect.poll(() => pushStateOf(one, localId)).toBe('registered')
    calls.push({ ...toldTo(peer), localId })
  }
  const t0 = performance.now()
  const lat: number[] = []
  const statuses = new Map<number, number>()
  await Promise.all(
    calls.flatMap((c, k) =>
      Array.from({ length: 100 }, async (_, i) => {
        const state = i === 90 ? 'TASK_STATE_COMPLETED' : i % 2 ? 'TASK_STATE_WORKING' : 'TASK_STATE_INPUT_REQUIRED'
        const t = performance.now()
        if (i % 10 === 3) peer.script.emit(c.taskId, { statusUpdate: { taskId: c.taskId, status: { state: 'TASK_STATE_WORKING', timestamp: new Date().toISOString(), message: { messageId: `s${k}-${i}`, role: 'ROLE_AGENT', parts: [{ text: 'x' }] } } } })
        const r = await deliver(i % 2 ? one : two, c.id, { statusUpdate: { taskId: c.taskId, status: { state, message: { messageId: `m${k}-${i}`, role: 'ROLE_AGENT', parts: [{ text: 'x' }] } } } })
        lat.push(performance.now() - t)
        statuses.set(r.status, (statuses.get(r.status) ?? 0) + 1)
      }),
    ),
  )
  lat.sort((a, b) => a - b)
  console.log('took', performance.now() - t0, 'p50', lat[lat.length >> 1], 'max', lat.at(-1), [...statuses])
  for (const c of calls) {
    const v = await one.api.task(c.localId)
    console.log(v.state, v.messages.filter((m) => m.id.startsWith('m')).length, v.version)
    await expect.poll(() => pushStateOf(one, c.localId), { timeout: 20000 }).toBe('ended')
  }
  console.log(one.log.errors().length, one.lines.filter((l) => l.level !== 'info').slice(0, 5), two.lines.filter((l) => l.level !== 'info').slice(0, 5))
  await two.close(); await one.close(); await peer.close(); await close()
})
