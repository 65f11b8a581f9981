/**
 * Commands per second: accept → delivered → done through the whole console, beside what graphile-worker and pg-boss need for
 * enqueue → no-op → done on the same PostgreSQL. Rounds alternate, so that the machine's noise hits all alike.
 */
import type { AgentMethods } from './agent.ts'
import { startChild, type Child } from './child.ts'
import type { ConsoleMethods } from './console.ts'
import { median, ratioOf, ratiosOf, table, withSpread } from './figures.ts'
import type { PeerMethods } from './graphile.ts'
import { Hands } from './hands.ts'
import { flow, type Flow } from './rounds.ts'
import { commandsSql } from './history.ts'
import type { BenchOptions } from './run.ts'
import { openStage, type Stage } from './stage.ts'

const concurrency = 16
/** How long each is run before anything is counted, seconds. */
const warmUpSeconds = 20
/** A past is written in transactions of this many commands. */
const finishedAtOnce = 100_000

interface Subject {
  readonly name: string
  round(n: number): Promise<Flow>
  close(): Promise<void>
}

export const startAgent = (): Child<AgentMethods> => startChild<AgentMethods>(new URL('agent.ts', import.meta.url))
export const startConsole = (): Child<ConsoleMethods> =>
  startChild<ConsoleMethods>(new URL('console.ts', import.meta.url))
export const startPeer = (file: string): Child<PeerMethods> => startChild<PeerMethods>(new URL(file, import.meta.url))

async function peer(name: string, file: string, stage: Stage, forMs: number): Promise<Subject> {
  const child = startPeer(file)
  await child.call('open', { url: await stage.database(), concurrency })
  return { name, round: () => child.call('flow', { forMs, concurrency }), close: () => child.end() }
}

/** The same console twice: over HTTP, and asked below it. */
async function consoles(
  { name, url, finished }: { name: string; url: string | null; finished: number },
  stage: Stage,
  cardUrl: string,
  o: BenchOptions,
): Promise<Subject[]> {
  const child = startConsole()
  const { origin, agentId, viewer } = await child.call('open', { url, folder: stage.folder(name), cardUrl })
  const { organizationId, userId: personId, membershipId } = viewer
  const whose = { organizationId, personId, membershipId, agentId }
  for (let made = 0; made < finished; made += finishedAtOnce)
    await child.call('write', { statements: commandsSql(whose, made + 1, Math.min(finished, made + finishedAtOnce)) })
  const http = new Hands(origin, concurrency)
  const path = `/api/agents/${agentId}/commands`
  const accept = (round: number) => (n: number) =>
    http.post({ path, key: `http-${round}-${n}`, body: '{"text":"Do it."}' }, 202)
  const forMs = o.seconds * 1000
  const profiled = async (part: string, n: number, run: () => Promise<Flow>): Promise<Flow> => {
    const wanted = o.profileFolder !== null && n === o.rounds - 1
    if (wanted) await child.call('profile', null)
    const result = await run()
    if (wanted && o.profileFolder) await child.call('endProfile', { folder: o.profileFolder, name: `${name} ${part}` })
    return result
  }
  return [
    {
      name: `signalbox over HTTP, ${name}`,
      round: (n) =>
        profiled('http', n, () =>
          flow({ forMs, concurrency, accept: accept(n), unfinished: () => child.call('unfinished', null) }),
        ),
      close: async () => {
        const outcomes = await child.call('outcomes', null)
        if (outcomes.some(({ status }) => status !== 'succeeded'))
          throw new Error(`Not every command succeeded: ${JSON.stringify(outcomes)}`)
        http.close()
        await child.end()
      },
    },
    {
      name: `signalbox below HTTP, ${name}`,
      round: (n) => profiled('inside', n, () => child.call('flowInside', { forMs, concurrency, round: `inside-${n}` })),
      close: () => Promise.resolve(),
    },
  ]
}

export async function benchCommands(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startAgent()
  try {
    const { fast: cardUrl } = await agent.call('open', null)
    const forMs = options.seconds * 1000
    const subjects = [
      await peer('graphile-worker', 'graphile.ts', stage, forMs),
      await peer('pg-boss, batch', 'pgboss.ts', stage, forMs),
    ]
    const pasts = [
      { name: 'postgresql', url: await stage.database(), finished: 10_000 },
      { name: 'embedded', url: null, finished: 10_000 },
      ...(options.large ? [{ name: 'postgresql, 1M finished', url: await stage.database(), finished: 1_000_000 }] : []),
    ]
    for (const past of pasts) subjects.push(...(await consoles(past, stage, cardUrl, options)))
    // A server's code is compiled as it runs: a command costs half after a few rounds. What every process does once does not count.
    const measured = subjects.map((subject) => ({ subject, flows: [] as Flow[] }))
    for (let n = -Math.ceil(warmUpSeconds / options.seconds); n < options.rounds; n++)
      for (const { subject, flows } of measured) {
        const result = await subject.round(n)
        if (n >= 0) flows.push(result)
      }
    const base = measured[0]?.flows ?? []
    const part = (flows: readonly Flow[], of: keyof Flow): number[] => flows.map((each) => each[of])
    process.stdout.write(
      table(
        `commands: per second, ${concurrency} hands, ${options.rounds} rounds of ${options.seconds} s (graphile-worker = 1)`,
        ['subject', 'accepted', 'ratio', 'done meanwhile', 'ratio', 'accept → all done', 'ratio'],
        measured.map(({ subject, flows }) => [
          subject.name,
          ...(['accepted', 'window', 'through'] as const).flatMap((of) => [
            withSpread(part(flows, of)),
            ratioOf(part(flows, of), part(base, of)),
          ]),
        ]),
      ),
    )
    const ratio = (name: string, to: string): number => {
      const through = (of: string): number[] =>
        part(measured.find(({ subject }) => subject.name.endsWith(of))?.flows ?? [], 'through')
      return median(ratiosOf(through(name), through(to)))
    }
    options.judge('throughput', ratio('over HTTP, postgresql', 'graphile-worker'))
    options.judge('embedded', ratio('over HTTP, embedded', 'over HTTP, postgresql'))
    if (options.large) options.judge('growth', ratio('over HTTP, postgresql, 1M finished', 'over HTTP, postgresql'))
    for (const subject of subjects) await subject.close()
  } finally {
    await agent.end()
    await stage.close()
  }
}
