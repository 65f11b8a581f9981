/**
 * How long one command waits: accept → first byte at the agent, and accept → done, with nothing else to do and under load,
 * beside graphile-worker's and pg-boss's enqueue → handler. Agent and client stamp times on one monotonic clock, from before the
 * request; under load "done" is the console's own word, from the commit that accepted to the commit that ended, and so without
 * the wait before the first of them: it may be less than the wait for the first byte, and says so in its row.
 */
import type { AgentMethods } from './agent.ts'
import type { Child } from './child.ts'
import { startAgent, startConsole, startPeer } from './commands.ts'
import type { ConsoleMethods } from './console.ts'
import { figure, percentile, sharedClock, table } from './figures.ts'
import { Hands } from './hands.ts'
import { flow } from './rounds.ts'
import type { BenchOptions } from './run.ts'
import { openStage } from './stage.ts'

/** Rounds under load before anything counts: a server that has run for a while, its code compiled, and peers no less so. */
const warmUps = 3
const samplesPerRound = 60
const loadHands = 16

interface Waits {
  readonly firstByteMs: number[]
  readonly doneMs: number[]
}

class ConsoleClient {
  readonly #http: Hands
  readonly #agentId: string
  readonly #agent: Child<AgentMethods>
  readonly #child: Child<ConsoleMethods>
  #last = 0

  constructor(to: { origin: string; agentId: string }, agent: Child<AgentMethods>, child: Child<ConsoleMethods>) {
    this.#http = new Hands(to.origin, loadHands)
    this.#agentId = to.agentId
    this.#agent = agent
    this.#child = child
  }

  /** `/messages` answers when the command is finished, so its answer is the moment of "done". */
  async idle(count: number): Promise<Waits> {
    await this.#agent.call('receipts', null)
    const sentMs = new Map<string, number>()
    const doneMs: number[] = []
    for (let i = 0; i < count; i++) {
      const messageId = this.#nextId()
      const startMs = sharedClock()
      sentMs.set(messageId, startMs)
      await this.#post('messages', messageId, 200)
      doneMs.push(sharedClock() - startMs)
    }
    return { firstByteMs: await this.#firstBytes(sentMs), doneMs }
  }

  /** Sixteen hands accept as fast as they can. Done is read from the rows: batch start to batch start. */
  async loaded(forMs: number): Promise<Waits> {
    await this.#agent.call('receipts', null)
    const sentMs = new Map<string, number>()
    const since = new Date().toISOString()
    await flow({
      forMs,
      concurrency: loadHands,
      accept: async () => {
        const messageId = this.#nextId()
        sentMs.set(messageId, sharedClock())
        await this.#post('commands', messageId, 202)
      },
      unfinished: () => this.#child.call('unfinished', null),
    })
    return {
      firstByteMs: await this.#firstBytes(sentMs),
      doneMs: [...(await this.#child.call('durations', { since }))],
    }
  }

  async close(): Promise<void> {
    this.#http.close()
    await this.#child.end()
  }

  #nextId(): string {
    return `wait-${++this.#last}`
  }

  async #post(route: string, messageId: string, expected: number): Promise<void> {
    const path = `/api/agents/${this.#agentId}/${route}`
    await this.#http.post({ path, key: messageId, body: JSON.stringify({ text: 'Do it.', messageId }) }, expected)
  }

  async #firstBytes(sentMs: ReadonlyMap<string, number>): Promise<number[]> {
    const receipts = await this.#agent.call('receipts', null)
    if (receipts.length !== sentMs.size)
      throw new Error(`${sentMs.size} commands were accepted and ${receipts.length} arrived.`)
    return receipts.map(([messageId, atMs]) => atMs - (sentMs.get(messageId) ?? Number.NaN))
  }
}

interface Line {
  readonly name: string
  readonly samples: number[]
}

export async function benchLatency(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startAgent()
  try {
    const { fast: cardUrl } = await agent.call('open', null)
    const peers = await Promise.all(
      [
        ['graphile-worker', 'graphile.ts'],
        ['pg-boss', 'pgboss.ts'],
      ].map(async ([name = '', file = '']) => {
        const child = startPeer(file)
        await child.call('open', { url: await stage.database(), concurrency: loadHands })
        for (let n = 0; n < warmUps; n++)
          await child.call('flow', { forMs: options.seconds * 1000, concurrency: loadHands })
        return { name, child, starts: [] as number[] }
      }),
    )
    const consoles = []
    for (const [name, url] of [['postgresql', await stage.database()] as const, ['embedded', null] as const]) {
      const child = startConsole()
      const client = new ConsoleClient(
        await child.call('open', { url, folder: stage.folder(name), cardUrl }),
        agent,
        child,
      )
      for (let n = 0; n < warmUps; n++) await client.loaded(options.seconds * 1000)
      consoles.push({ name, client, idle: [] as Waits[], loaded: [] as Waits[] })
    }
    for (let n = 0; n < options.rounds; n++) {
      for (const peer of peers) peer.starts.push(...(await peer.child.call('starts', { count: samplesPerRound })))
      for (const each of consoles) each.idle.push(await each.client.idle(samplesPerRound))
    }
    for (let n = 0; n < options.rounds; n++)
      for (const each of consoles) each.loaded.push(await each.client.loaded(options.seconds * 1000))
    const lines: Line[] = [
      ...peers.map(({ name, starts }) => ({ name: `${name}: enqueue → handler, idle`, samples: starts })),
      ...consoles.flatMap(({ name, idle, loaded }) => [
        { name: `${name}: accept → first byte, idle`, samples: idle.flatMap((waits) => waits.firstByteMs) },
        { name: `${name}: accept → done, idle`, samples: idle.flatMap((waits) => waits.doneMs) },
        { name: `${name}: accept → first byte, ${loadHands} hands`, samples: loaded.flatMap((w) => w.firstByteMs) },
        {
          name: `${name}: accepted → done, by its rows, ${loadHands} hands`,
          samples: loaded.flatMap((waits) => waits.doneMs),
        },
      ]),
    ]
    const base = percentile(lines[0]?.samples ?? [], 0.5)
    const firstBytes = lines.find(({ name }) => name === 'postgresql: accept → first byte, idle')?.samples ?? []
    options.judge('firstByte', percentile(firstBytes, 0.5) / base)
    process.stdout.write(
      table(
        'latency: milliseconds over HTTP (graphile-worker idle p50 = 1)',
        ['what', 'samples', 'p50', 'ratio', 'p99', 'ratio'],
        lines.map(({ name, samples }) => [
          name,
          String(samples.length),
          ...[0.5, 0.99].flatMap((part) => {
            const value = percentile(samples, part)
            return [figure(value), figure(value / base)]
          }),
        ]),
      ),
    )
    for (const { client } of consoles) await client.close()
    for (const { child } of peers) await child.end()
  } finally {
    await agent.end()
    await stage.close()
  }
}
