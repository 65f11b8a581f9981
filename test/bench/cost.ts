/**
 * What one command costs: processor time of the console and of the database, transactions, bytes of write-ahead log, beside
 * one bare job of graphile-worker. Processor time does not see a busy neighbour, so these figures can be compared between
 * two days where throughput cannot.
 */
import type { Child } from './child.ts'
import { startAgent, startConsole, startPeer } from './commands.ts'
import type { ConsoleMethods } from './console.ts'
import { figure, table } from './figures.ts'
import { Hands } from './hands.ts'
import { flow, type Flow } from './rounds.ts'
import type { BenchOptions } from './run.ts'
import { openStage, query, type Stage } from './stage.ts'

const concurrency = 16

interface Subject {
  readonly name: string
  readonly url: string
  readonly cpuMs: () => Promise<number>
  readonly round: (n: number) => Promise<Flow>
  readonly done: () => Promise<number>
}

interface Cost {
  readonly done: number
  readonly ownMs: number
  readonly databaseMs: number
  /** What the bench itself takes: the client's hands and the agent. */
  readonly benchMs: number
  readonly transactions: number
  readonly walBytes: number
}

interface Opened {
  readonly subjects: readonly Subject[]
  readonly child: Child<ConsoleMethods>
  readonly close: () => Promise<void>
}

async function costOf(subject: Subject, stage: Stage, benchCpuMs: () => Promise<number>, n: number): Promise<Cost> {
  const look = async (): Promise<readonly number[]> => {
    const [row] = await query(
      subject.url,
      `select xact_commit as commits, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal from pg_stat_database where datname = current_database()`,
    )
    const done = await subject.done()
    const [own, bench] = [await subject.cpuMs(), await benchCpuMs()]
    return [done, own, stage.databaseCpuMs(), bench, Number(row?.['commits']), Number(row?.['wal'])]
  }
  const before = await look()
  await subject.round(n)
  const after = await look()
  const [done = 0, ownMs = 0, databaseMs = 0, benchMs = 0, commits = 0, wal = 0] = after.map(
    (value, i) => value - (before[i] ?? 0),
  )
  return {
    done,
    ownMs: ownMs / done,
    databaseMs: databaseMs / done,
    benchMs: benchMs / done,
    transactions: commits / done,
    walBytes: wal / done,
  }
}

async function openSubjects(stage: Stage, cardUrl: string, forMs: number): Promise<Opened> {
  const peerUrl = await stage.database()
  const peer = startPeer('graphile.ts')
  await peer.call('open', { url: peerUrl, concurrency })
  const url = await stage.database()
  const child = startConsole()
  const { origin, agentId } = await child.call('open', { url, folder: stage.folder('cost'), cardUrl })
  const http = new Hands(origin, concurrency)
  let jobs = 0
  const path = `/api/agents/${agentId}/commands`
  const accept = (round: number) => (n: number) =>
    http.post({ path, key: `cost-${round}-${n}`, body: '{"text":"Do it."}' }, 202)
  const ours = {
    url,
    cpuMs: () => child.cpuMs(),
    done: async () =>
      Number((await query(url, `select count(*) as n from command where status = 'succeeded'`))[0]?.['n']),
  }
  const subjects: Subject[] = [
    {
      name: 'graphile-worker',
      url: peerUrl,
      cpuMs: () => peer.cpuMs(),
      round: async () => {
        const result = await peer.call('flow', { forMs, concurrency })
        jobs += (result.accepted * forMs) / 1000
        return result
      },
      done: () => Promise.resolve(jobs),
    },
    {
      name: 'signalbox over HTTP',
      ...ours,
      round: (n) => flow({ forMs, concurrency, accept: accept(n), unfinished: () => child.call('unfinished', null) }),
    },
    {
      name: 'signalbox below HTTP',
      ...ours,
      round: (n) => child.call('flowInside', { forMs, concurrency, round: `cost-inside-${n}` }),
    },
  ]
  const close = async (): Promise<void> => {
    http.close()
    await child.end()
    await peer.end()
  }
  return { subjects, child, close }
}

/** A server's code is compiled as it runs: five seconds of load halve what a command costs, so that none of it is counted. */
const warmUps = 4

export async function benchCost(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startAgent()
  const forMs = options.seconds * 1000
  const { fast: cardUrl } = await agent.call('open', null)
  const benchCpuMs = async (): Promise<number> => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000 + (await agent.cpuMs())
  }
  const { subjects, child, close } = await openSubjects(stage, cardUrl, forMs)
  try {
    for (const subject of subjects) for (let n = 0; n < warmUps; n++) await subject.round(-1 - n)
    const rows: string[][] = []
    for (const subject of subjects)
      for (let n = 0; n < options.rounds; n++) {
        const folder = n === options.rounds - 1 && subject !== subjects[0] ? options.profileFolder : null
        if (folder !== null) await child.call('profile', null)
        const cost = await costOf(subject, stage, benchCpuMs, n)
        if (folder !== null) await child.call('endProfile', { folder, name: subject.name })
        const { done, ownMs, databaseMs, benchMs, transactions, walBytes } = cost
        const figures = [done / options.seconds, ownMs, databaseMs, ownMs + databaseMs, benchMs, transactions, walBytes]
        rows.push([subject.name, ...figures.map(figure)])
      }
    const head = [
      'subject',
      'done/s',
      'own CPU, ms',
      'database CPU, ms',
      'both',
      'the bench’s CPU, ms',
      'transactions',
      'WAL, bytes',
    ]
    process.stdout.write(table('cost: of one command (or job)', head, rows))
  } finally {
    await close()
    await agent.end()
    await stage.close()
  }
}
