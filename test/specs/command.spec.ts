/** Commands: durable before they are answered, delivered at most once, honest about how they ended. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientOf, type Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

describe.each(bothDatabases)('%s', (database) => {
  let house: TestConsole
  let api: Client
  beforeAll(async () => {
    house = await startConsole({ database })
    api = clientOf(house.url)
  })
  afterAll(() => house.close())

  test('smoke', async () => {
    const peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    const { body: { agent } } = await api.post('/api/agents', { cardUrl: peer.cardUrl }) as any
    const r = await api.post(`/api/agents/${agent.id}/messages`, { text: 'hello' })
    console.log(r.status, r.text)
    const s = await api.stream(`/api/agents/${agent.id}/stream`, { text: 'ask' })
    console.log(s.response.status, s.response.headers)
    const events = await s.rest()
    console.log(events.map((e) => e.event + ' ' + JSON.stringify(e.data).slice(0, 200)).join('\n'))
    console.log((await api.get('/api/tasks')).text, (await api.get('/api/agents')).text.slice(0, 300), (await api.get('/api/actors')).text.slice(0,300))
    console.log((await api.post(`/api/agents/${agent.id}/messages`, { textt: 'hello' })).text, (await api.post(`/api/agents/${agent.id}/messages`, { text: 1 })).text)
    console.log(house.log.lines().join(''))
    await peer.close()
  })
})
