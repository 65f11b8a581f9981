/**
 * F9 and F10: agents that hang, hang up, lie and flood, in both versions and over both bindings, for the card, a send, a
 * stream and a read. Each is one of the published SDK's agents behind a front that misbehaves. What must hold: a command
 * ends as the rules say, what was followed is followed again, the process lives and stays small, nobody else notices.
 *
 * In the short pass each operation meets every third fault, so that at least one of the four meets each, in a dialect that the seed
 * chooses; in the long one all meet all, in every dialect, at the plan's sizes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Outbound } from '../../actors/outbound.ts'
import { commandErrors } from '../../domain/command.ts'
import { isTerminal } from '../../domain/task.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Peer } from '../support/peers/peer.ts'
import { heldBytes } from '../support/held-memory.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { startFront, type Front } from '../support/peers/raw-front.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { beside } from './beside.ts'
import { memoryGrowthMax } from './checker.ts'
import { fateOfSend, longSizes, misdeeds, shortSizes, type Misdeed } from './hostile-faults.ts'
import { chanceOf } from './seed.ts'
import { isLong, sized } from '../support/pass.ts'

const sizes = isLong ? longSizes : shortSizes
const dialects = [
  ['1.0', 'JSONRPC'],
  ['1.0', 'HTTP+JSON'],
  ['0.3', 'JSONRPC'],
  ['0.3', 'HTTP+JSON'],
] as const
type Dialect = (typeof dialects)[number]

/** A minute's wait is three seconds here: these tests are about what follows from it. */
const longestMs = 3_000
const extraMemoryBytes = 200 * 1024 * 1024

/** What is held, the ninety agents of this file included. Not the resident size: the allocator gives floods back late. */
function sizeBytes(): number {
  const { heapTotal, external } = process.memoryUsage()
  return heapTotal + external
}

/** What is left of it when nothing is under way. Several looks: what a collection lets go may be counted until a later one. */
async function leastHeldBytes(): Promise<number> {
  let least = Infinity
  for (let n = 0; n < 10; n++) {
    least = Math.min(least, heldBytes())
    await new Promise((resolve) => setImmediate(resolve))
  }
  return least
}

let running: RunningSystem
let neighbour: Peer
let neighbourId: string
const memory = { held: 0, before: 0, most: 0 }
let watching: NodeJS.Timeout
const fronts: Front[] = []
beforeAll(async () => {
  const policy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const
  running = await freshSystem('postgresql', { outbound: new Outbound(policy, { longestMs }) })
  neighbour = await startRawPeer()
  neighbourId = (await running.system.agents.register(running.viewer, neighbour.cardUrl)).id
  await running.finished((await running.send(neighbourId, { text: 'direct' })).id)
  memory.before = sizeBytes()
  watching = setInterval(() => {
    memory.most = Math.max(memory.most, sizeBytes())
  }, 20)
})
afterAll(async () => {
  clearInterval(watching)
  await running.close()
  await Promise.all(fronts.map((front) => front.close()))
  await neighbour.close()
})

interface Case {
  readonly misdeed: Misdeed
  readonly dialect: Dialect
}

/** Which third of the faults an operation meets in the short pass; odd line ends matter to a stream, and a drip to whoever waits for an end. */
const thirds = { send: 0, card: 1, stream: 2, get: 2 } as const

function casesOf(operation: keyof typeof thirds, type: string): readonly Case[] {
  const list = misdeeds(type, sizes)
  if (isLong) return dialects.flatMap((dialect) => list.map((misdeed) => ({ misdeed, dialect })))
  const chance = chanceOf(`hostile ${operation}`)
  const met = list.filter((_, n) => n % 3 === thirds[operation])
  return met.map((misdeed) => ({ misdeed, dialect: chance.pick<Dialect>(dialects) }))
}

interface Stage {
  readonly peer: Peer
  readonly front: Front
  readonly agentId: string
}

/** Plays a case on an agent of its own, and says under which name it ended how. */
async function played<T>(
  { misdeed, dialect: [version, binding] }: Case,
  streaming: boolean,
  play: (stage: Stage) => Promise<T>,
): Promise<readonly [string, T]> {
  const peer = await startSdkPeer({ version, binding, streaming })
  const front = await startFront(peer)
  const agentId = (await running.system.agents.register(running.viewer, front.cardUrl)).id
  const ended = await play({ peer, front, agentId })
  // The front keeps its port until all is over: who got it next would be the same agent, with another's card.
  fronts.push(front)
  // What is in doubt is looked for on and on, by two readers; an agent that is no more must not keep them from those that are.
  for (const operation of ['GetAgentCard', 'GetTask', 'ListTasks'])
    front.fault(operation, { fault: 'status', status: 503 }, Infinity)
  await peer.close()
  return [`${version} ${binding} ${misdeed.name}`, ended] as const
}

const concurrency = 12
/** A few at a time: the plan is about agents, not about a thousand sockets. */
async function all<T>(cases: readonly Case[], play: (each: Case) => Promise<readonly [string, T]>) {
  const ended: (readonly [string, T])[] = []
  const queue = cases.entries()
  const lane = async (): Promise<void> => {
    for (const [i, each] of queue) ended[i] = await play(each)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, cases.length) }, lane))
  return ended
}

/** Meanwhile somebody else talks to an agent that behaves, and is answered time and again: nobody waits for those that hang. */
async function meanwhile<T>(work: Promise<T>): Promise<T> {
  const { result, answered } = await beside(work, async () => {
    const done = await running.finished((await running.send(neighbourId, { text: 'direct' })).id)
    expect(done.status).toBe('succeeded')
  })
  expect(answered).toBeGreaterThan(10)
  return result
}

const json = 'application/json'
const sse = 'text/event-stream'
const longMs = sized(120_000, 1_200_000)

describe('an agent that misbehaves', () => {
  it(
    'when it is sent something: what may have been done is uncertain, and nothing is sent twice',
    { timeout: longMs },
    async () => {
      const cases = casesOf('send', json)
      const ended = await meanwhile(
        all(cases, (each) =>
          played(each, true, async ({ peer, front, agentId }) => {
            front.fault('SendMessage', each.misdeed.fault, Infinity)
            const { status, error, messageId } = await running.finished(
              (await running.send(agentId, { text: 'direct' })).id,
            )
            return { status, error, twice: peer.receiptsOf(messageId) > 1 }
          }),
        ),
      )
      expect(ended).toEqual(
        cases.map(({ misdeed, dialect }) => [
          `${dialect.join(' ')} ${misdeed.name}`,
          { ...fateOfSend(misdeed), twice: false },
        ]),
      )
      // Of a process that has met each fault once: a young one still loads what it needs for the first time.
      memory.held = await leastHeldBytes()
    },
  )

  it('when its card is asked for: nothing is sent, and the command says why', { timeout: longMs }, async () => {
    const cases = casesOf('card', json)
    const ended = await meanwhile(
      all(cases, (each) =>
        played(each, true, async ({ peer, front, agentId }) => {
          front.fault('GetAgentCard', each.misdeed.fault, Infinity)
          const { status, error } = await running.finished((await running.send(agentId, { text: 'direct' })).id)
          const shown = await previewed(front.cardUrl, fateOfCard(each.misdeed).shown)
          return { status, error, sent: peer.receipts.length, shown }
        }),
      ),
    )
    expect(ended).toEqual(
      cases.map(({ misdeed, dialect }) => [`${dialect.join(' ')} ${misdeed.name}`, fateOfCard(misdeed)]),
    )
  })

  it('when its stream is followed: it is followed again, and its end is seen', { timeout: longMs }, async () => {
    // A drip cannot be told from keep-alives: it is borne for as long as a stream may last, half an hour.
    const cases = casesOf('stream', sse).filter(({ misdeed: { fault } }) => fault.fault !== 'trickle')
    const ended = await meanwhile(
      all(cases, (each) => played(each, true, (stage) => followed(each, stage, 'SubscribeToTask'))),
    )
    expect(ended).toEqual(
      cases.map(({ misdeed, dialect }) => [`${dialect.join(' ')} ${misdeed.name}`, 'TASK_STATE_COMPLETED']),
    )
  })

  it('when its task is read: it is read again, and its end is seen', { timeout: longMs }, async () => {
    const cases = casesOf('get', json)
    const ended = await meanwhile(
      all(cases, (each) => played(each, false, (stage) => followed(each, stage, 'GetTask'))),
    )
    expect(ended).toEqual(
      cases.map(({ misdeed, dialect }) => [`${dialect.join(' ')} ${misdeed.name}`, 'TASK_STATE_COMPLETED']),
    )
  })

  it.each(dialects)(
    'of A2A %s over %s may say NUL and half a character, and is quoted exactly',
    async (version, binding) => {
      const peer = await startSdkPeer({ version, binding })
      const front = await startFront(peer)
      for (const operation of ['SendMessage', 'SubscribeToTask', 'GetTask'])
        front.fault(
          operation,
          { fault: 'replace', word: 'ODDITIES', by: String.raw`\u0000 \ud800 \udc00 \ud83d\udca3` },
          Infinity,
        )
      const agentId = (await running.system.agents.register(running.viewer, front.cardUrl)).id
      const command = await running.finished((await running.send(agentId, { text: 'ODDITIES' })).id)
      expect(command).toMatchObject({ status: 'succeeded' })
      const view = await running.task(String(command.result?.localId), ({ state }) => isTerminal(state))
      expect(view.artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))).toEqual([
        '\0 \ud800 \udc00 \u{1f4a3}',
      ])
      await front.close()
      await peer.close()
    },
  )
})

it('has left the process alive, quiet and small', () => {
  expect(running.system.supervisor.snapshot.matches('running')).toBe(true)
  expect(running.lines.filter(({ level }) => level === 'error')).toEqual([])
  expect(memory.most - memory.before).toBeLessThan(extraMemoryBytes)
})

it.runIf(isLong)('has left nothing behind', async () => {
  await Promise.all(fronts.splice(0).map((front) => front.close()))
  await expect.poll(heldBytes).toBeLessThan(memory.held * memoryGrowthMax)
})

/** The first time somebody looks, the agent misbehaves; the second time it tells the truth. Says how the task ended. */
async function followed({ misdeed }: Case, { peer, front, agentId }: Stage, operation: string): Promise<string> {
  front.fault(operation, misdeed.fault)
  const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
  await peer.script.held(1)
  // A stream is opened again before its end is told; a read says the same whenever it is made.
  await front.asked(operation, misdeed.harmless || operation === 'GetTask' ? 1 : 2)
  peer.script.finish()
  return (await running.task(String(result?.localId), ({ state }) => isTerminal(state))).state
}

/** What a person is shown of a card. Asked three times, as a command asks: on a busy machine an answer may take more than its seconds. */
async function previewed(cardUrl: string, expected: string): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const shown = await running.system.agents.preview(cardUrl).then(
      () => 'a card',
      (refusal: unknown) => (refusal instanceof Refusal ? refusal.message.replace(/ Tried: .*/s, '') : refusal),
    )
    if (shown === expected || tries === 3) return shown
  }
}

function fateOfCard({ name, harmless }: Misdeed) {
  if (harmless) return { status: 'succeeded', error: null, sent: 1, shown: 'a card' }
  const final: Readonly<Record<string, string>> = {
    floods: 'Agent Card exceeds the 2 MB safety limit.',
    'sends a gzip bomb': 'Agent Card exceeds the 2 MB safety limit.',
    'sends endless headers': 'Agent Card exceeds the 2 MB safety limit.',
    redirects: 'Agent redirects are not permitted.',
  }
  const sentence = final[name]
  return sentence === undefined
    ? { status: 'failed', error: commandErrors.discovery, sent: 0, shown: 'Agent Card discovery failed.' }
    : { status: 'failed', error: sentence, sent: 0, shown: sentence }
}
