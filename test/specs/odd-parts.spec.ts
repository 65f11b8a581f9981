/**
 * An answer of which one part cannot be read: the send succeeded, the rest is shown, and a sentence stands where the part was. Base64 in
 * lines, as encoders of mail write it, is base64 [RFC 2045 §6.8].
 */
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { rebuildTask } from '../../actors/rebuild.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { interfaceEntry } from '../support/peers/card.ts'
import { recordOf } from '../support/peers/operations.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'

let house: TestConsole
beforeAll(async () => {
  house = await startConsole({ database: 'pglite', uiDirectory: null })
})
afterAll(() => house.close())

const inLines = 'aGVsbG8gd29y\r\nbGQ=\n'
const v10 = {
  version: '1.0',
  state: 'TASK_STATE_COMPLETED',
  parts: [{ raw: inLines, filename: 'a.txt' }, { text: 'both', url: 'https://x.example' }, { text: 'said' }],
}
const v03 = {
  version: '0.3',
  state: 'completed',
  parts: [
    { kind: 'file', file: { bytes: inLines, name: 'a.txt' } },
    { kind: 'file', file: { bytes: '!!!!', name: 'b.txt' } },
    { kind: 'text', text: 'said' },
  ],
}

test.each([v10, v03])('an agent of A2A $version', async ({ version, state, parts }) => {
  const listening = await listenOnLoopback((request, response) => {
    const reply = (body: object): void =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'GET') {
      const named = {
        name: 'Odd',
        description: 'Odd parts.',
        version: '1',
        skills: [],
        capabilities: { streaming: false },
      }
      const modes = { defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] }
      const url = `${listening.origin}/rpc`
      const ways =
        version === '1.0'
          ? { supportedInterfaces: [interfaceEntry(url, 'JSONRPC', undefined)] }
          : { url, preferredTransport: 'JSONRPC', protocolVersion: '0.3.0' }
      return reply({ ...named, ...modes, ...ways })
    }
    const answer = async (): Promise<void> => {
      const { id } = recordOf(await json(request))
      const task = { id: `odd ${version}`, contextId: 'c', status: { state }, artifacts: [{ artifactId: 'a', parts }] }
      reply({ jsonrpc: '2.0', id, result: version === '1.0' ? { task } : { kind: 'task', ...task } })
    }
    answer().catch(() => response.destroy())
  })
  const agentId = await house.api.register(`${listening.origin}/card.json`)
  const { status, error, result } = await house.finished((await house.send(agentId, { text: 'make it' })).id)
  expect([status, error]).toEqual(['succeeded', null])
  const localId = result?.localId ?? ''
  const { artifacts } = await house.task(localId, (task) => task.state === 'TASK_STATE_COMPLETED')
  const [file, odd, said] = artifacts[0]?.parts ?? []
  expect(file).toMatchObject({ kind: 'raw', filename: 'a.txt', value: { size: 11 } })
  expect(odd).toMatchObject({
    kind: 'unknown',
    value: expect.stringMatching(/^This part cannot be read: .*\.$/) as string,
  })
  expect(said).toMatchObject({ kind: 'text', value: 'said' })
  const bytes = await house.api.fetch(z.object({ href: z.string() }).parse(file?.value).href)
  expect(await bytes.text()).toBe('hello world')
  // What is stored says it once: a rebuild makes the same of it.
  expect(await rebuildTask(house.db.pool, house.viewer.organizationId, localId)).toMatchObject({ repaired: false })
  await listening.close()
})
