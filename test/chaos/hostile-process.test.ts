/**
 * F10 against a process of its own with the embedded database, where the database, the parsers and what an agent sends share one
 * memory: what is sent and what is followed meets answers that are no JSON, too large, too deep, or larger than they look. The process
 * lives and stays small, what became of each send is said as ever, and whoever talks to other agents meanwhile notices nothing.
 */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { isTerminal } from '../../domain/task.ts'
import { Client, commandIn } from '../support/api.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { deepJson, garbage, type AnswerFault } from '../support/peers/raw-faults.ts'
import { longSizes, shortSizes } from './hostile-faults.ts'
import { type Chance } from './seed.ts'
import type { Stage } from './stage.ts'
import { expectMostSucceeded, expectNoDoubt, storm, usualWords } from './storm.ts'
import { isLong, sized } from '../support/pass.ts'

const MiB = 1024 * 1024
const senders = 4
const rounds = sized(1, 10)
const bindings = ['JSONRPC', 'HTTP+JSON'] as const
/**
 * Room for large answers is 200 MiB; a text that is parsed takes its size again in the thread that parses it, and what the collector
 * has not come to is there, too.
 */
const extraResidentBytes = 400 * MiB

function faultsOf(type: string): readonly AnswerFault[] {
  const { floodBytes, bombBytes } = isLong ? longSizes : shortSizes
  const typed = (fault: AnswerFault): AnswerFault =>
    fault.fault === 'body' ? { ...fault, headers: { 'content-type': type } } : fault
  return [
    typed(garbage),
    { fault: 'flood', bytes: floodBytes, type },
    { fault: 'gzip-bomb', bytes: bombBytes, type },
    { fault: 'endless-headers', bytes: MiB },
    typed(deepJson(100_000)),
  ]
}

/** An agent that answers sends so: that may have been done is all that is known, and it is sent once. */
async function sentTo(fault: AnswerFault, { peer, client, stage }: Meeting): Promise<void> {
  peer.script.fault('SendMessage', fault, Infinity)
  const agentId = await client.register(peer.cardUrl)
  const key = { 'idempotency-key': `to ${peer.origin}` }
  const { id, messageId } = commandIn(await client.post(`/api/agents/${agentId}/commands`, { text: 'direct' }, key))
  await stage.until(async () => !['pending', 'dispatching'].includes((await client.command(id)).status))
  const { status } = await client.command(id)
  expect({ fault: fault.fault, status, receipts: peer.receiptsOf(messageId) }).toEqual({
    fault: fault.fault,
    status: 'uncertain',
    receipts: 1,
  })
}

/** An agent whose stream begins so, once: it is followed again, and its end is seen. */
async function followed(fault: AnswerFault, { peer, client, stage }: Meeting): Promise<void> {
  peer.script.fault('SubscribeToTask', fault)
  const { localId } = await client.send(await client.register(peer.cardUrl), { text: 'hold' })
  await peer.script.held(1)
  await stage.until(() => peer.callsOf('SubscribeToTask') > 1 || peer.callsOf('GetTask') > 0)
  peer.script.finish()
  await stage.until(async () => isTerminal((await client.task(localId)).state))
  expect(await client.task(localId)).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
  expect(peer.receipts.length).toBe(1)
}

interface Meeting {
  readonly peer: RawPeer
  readonly client: Client
  readonly stage: Stage
}

/** Every fault of a send and of a stream at once, each an agent's of its own. */
async function meetAll(stage: Stage, client: Client, chance: Chance, peers: RawPeer[]): Promise<void> {
  const meet = async (fault: AnswerFault, play: typeof sentTo): Promise<void> => {
    const peer = await startRawPeer({ binding: chance.pick(bindings) })
    peers.push(peer)
    await play(fault, { peer, client, stage })
  }
  await Promise.all([
    ...faultsOf('application/json').map((fault) => meet(fault, sentTo)),
    ...faultsOf('text/event-stream').map((fault) => meet(fault, followed)),
  ])
}

/** proc(5): how large it is, and was at most. */
function residentBytes(pid: number | undefined): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid ?? 0}/status`, 'utf8')
  const kibibytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
  return { now: kibibytes('VmRSS') * 1024, most: kibibytes('VmHWM') * 1024 }
}

it('F10: agents that flood a process with the embedded database end nothing, and nobody else notices', async () => {
  const peers: RawPeer[] = []
  try {
    const history = await storm('hostile agents, pglite', { database: 'pglite' }, async (stage, chance) => {
      const console_ = await stage.console()
      const client = new Client(console_.url)
      const load = await stage.load(() => [console_.url], chance, usualWords)
      await load.run(sized(10, 200), senders)
      const beforeBytes = await console_.heldBytes()
      const before = residentBytes(console_.process.pid).now
      const stop = load.begin(senders)
      const accepted = load.accepted
      for (let round = 0; round < rounds; round++) await meetAll(stage, client, chance, peers)
      const meanwhile = load.accepted - accepted
      await stop()
      expect(meanwhile).toBeGreaterThan(10)
      const extra = residentBytes(console_.process.pid).most - before
      expect(extra).toBeLessThan(extraResidentBytes)
      const afterBytes = await stage.weighAgain(console_, beforeBytes)
      return { load, figures: { agents: peers.length, meanwhile, extraMiB: extra / MiB, beforeBytes, afterBytes } }
    })
    expectNoDoubt(history)
    expectMostSucceeded(history)
  } finally {
    await Promise.all(peers.map((peer) => peer.close()))
  }
})
