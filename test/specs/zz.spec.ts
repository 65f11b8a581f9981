/** x */
import { test } from 'vitest'
import { startConsole } from '../support/console.ts'
import { startRawPeer } from '../support/peers/raw.ts'
test('x', async () => {
  const h = await startConsole({ database: 'postgresql' })
  const p = await startRawPeer()
  const a = await h.api.register(p.cardUrl)
  console.log((await h.api.post(`/api/agents/${a}/messages`, { text: 'ask' })).text.slice(0,300), h.log.errors().join('').slice(0, 2500))
  await h.close(); await p.close()
})
