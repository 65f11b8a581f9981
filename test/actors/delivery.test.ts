/** What a command says afterwards is what is known: one row a fault, with the agent's own receipt log as the witness. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandErrors } from '../../domain/command.ts'
import { eitherDatabase } from '../support/databases.ts'
import { deepJson, garbage, wrongTypes } from '../support/peers/raw-faults.ts'
import { startRawPeer, type RawFault, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'

const refusal = { fault: 'error', code: -32602, message: 'That is not how one asks.' } as const

const endless = (status: number) => Array.from({ length: 1_000 }, () => status)

/** fault, the status it must end in, the sentence, and how often the agent received the message. */
const cases: readonly (readonly [string, RawFault, 'succeeded' | 'failed' | 'uncertain', string | null, number])[] = [
  ['an error before any work', refusal, 'failed', refusal.message, 1],
  ...[-32700, -32600, -32601, -32602, -32001, -32002, -32003, -32004, -32005, -32007, -32008, -32009].map(
    (code) => [`code ${code}`, { ...refusal, code }, 'failed', refusal.message, 1] as const,
  ),
  // A server's own codes say nothing of when: many servers give one for whatever is thrown in mid-work.
  ...[-32603, -32006, -32000, -32050, -32099, -1, -500, 500].map(
    (code) => [`code ${code}`, { ...refusal, code }, 'uncertain', commandErrors.uncertain, 1] as const,
  ),
  ['HTTP 401', { fault: 'status', status: 401 }, 'failed', 'Agent credentials are required.', 1],
  ['HTTP 404', { fault: 'status', status: 404 }, 'failed', 'HTTP 404 Not Found', 1],
  // A proxy's, of an agent that may be at work.
  ...[408, 499].map(
    (status) => [`HTTP ${status}`, { fault: 'status', status }, 'uncertain', commandErrors.uncertain, 1] as const,
  ),
  ['HTTP 500', { fault: 'status', status: 500 }, 'uncertain', commandErrors.uncertain, 1],
  ['100 before its answer', { fault: 'interim', statuses: [100] }, 'succeeded', null, 1],
  ['100 without an end', { fault: 'interim', statuses: endless(100) }, 'uncertain', commandErrors.uncertain, 1],
  ['a reset after it worked', { fault: 'reset', performed: true }, 'uncertain', commandErrors.uncertain, 1],
  ['a reset before it worked', { fault: 'reset', performed: false }, 'uncertain', commandErrors.uncertain, 1],
  ['garbage', garbage, 'uncertain', commandErrors.uncertain, 1],
  ['wrong types', wrongTypes, 'uncertain', commandErrors.uncertain, 1],
  ['JSON of 100,000 levels', deepJson(100_000), 'uncertain', commandErrors.uncertain, 1],
  ['a 30 MiB answer', { fault: 'flood', bytes: 30 * 1024 * 1024 }, 'uncertain', commandErrors.uncertain, 1],
  ['a gzip bomb', { fault: 'gzip-bomb', bytes: 200 * 1024 * 1024 }, 'uncertain', commandErrors.uncertain, 1],
  ['a redirect', { fault: 'redirect', location: 'http://127.0.0.1:1/' }, 'uncertain', commandErrors.uncertain, 1],
]

describe.each(eitherDatabase)('delivery on %s', (kind) => {
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    running = await freshSystem(kind)
    peer = await startRawPeer()
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  })
  afterAll(async () => {
    await running.close()
    await peer.close()
  })

  it.each(cases)('after %s is known to be %s', async (_, fault, status, error, receipts) => {
    peer.script.heal()
    peer.script.fault('SendMessage', fault)
    const { id, messageId } = await running.send(agentId, { text: 'hello' })
    expect(await running.finished(id)).toMatchObject({ status, error })
    expect(peer.receiptsOf(messageId)).toBe(receipts)
  })

  it('fails when no connection could be opened, because nothing was sent', async () => {
    const gone = await startRawPeer()
    const { id: deadId } = await running.system.agents.register(running.viewer, gone.cardUrl)
    const first = await running.send(deadId, { text: 'hello' })
    await running.finished(first.id)
    await gone.close()
    // Its card was seen a moment ago, so this one gets as far as the connection.
    const { id } = await running.send(deadId, { text: 'hello' })
    expect(await running.finished(id)).toMatchObject({ status: 'failed', error: 'Agent network request failed.' })
  })

  it('tries discovery three times, one second and then two apart, and sends nothing', async () => {
    const shy = await startRawPeer()
    shy.script.fault('GetAgentCard', { fault: 'status', status: 503 }, Infinity)
    const { id: shyId } = await running.system.agents.register(running.viewer, shy.cardUrl)
    const { id } = await running.send(shyId, { text: 'hello' })
    expect(await running.finished(id)).toMatchObject({ status: 'failed', error: commandErrors.discovery })
    expect(shy.receipts).toHaveLength(0)
    await shy.close()
  })

  it('gives the same command to the same key, and delivers it once, however many ask at once', async () => {
    peer.script.heal()
    const body = { text: 'hello', messageId: `twin-${kind}` }
    const twins = await Promise.all(Array.from({ length: 20 }, () => running.send(agentId, body, `twin-${kind}`)))
    expect(new Set(twins.map((command) => command.id)).size).toBe(1)
    await running.finished(twins[0]?.id ?? '')
    const replay = await running.send(agentId, body, `twin-${kind}`)
    expect(replay.status).toBe('succeeded')
    expect(peer.receiptsOf(body.messageId)).toBe(1)
    await expect(running.send(agentId, { text: 'other' }, `twin-${kind}`)).rejects.toThrow(
      'This idempotency key already belongs to different command content.',
    )
  })

  it('logs no error for what agents do wrong', () => {
    expect(running.lines.filter((line) => line.level === 'error')).toEqual([])
  })
})
