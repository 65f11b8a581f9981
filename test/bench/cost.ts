/**
 * What one command costs: processor time of the console and of the database, transactions, bytes of write-ahead log, beside
 * one bare job of graphile-worker. Processor time does not see a busy neighbour, so these figures can be compared between
 * two days where throughput cannot.
 */
import { Pool } from 'undici'
import { startAgent, startConsole, startPeer } from './commands.ts'
import { figure, table } from './figures.ts'
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
  readonly transactions: number
  readonly walBytes: number
}

async function costOf(subject: Subject, stage: Stage, n: number): Promise<Cost> {
  const look = async (): Promise<readonly number[]> => {
    const [row] = await query(
      subject.url,
      `select xact_commit as commits, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as wal from pg_stat_database where datname = current_database()`,
    )
    const done = await subject.done()
    return [done, await subject.cpuMs(), stage.databaseCpuMs(), Number(row?.['commits']), Number(row?.['wal'])]
  }
  const before = await look()
  await subject.round(n)
  const after = await look()
  const [done = 0, ownMs = 0, databaseMs = 0, commits = 0, wal = 0] = after.map((value, i) => value - (before[i] ?? 0))
  return {
    done,
    ownMs: ownMs / done,
    databaseMs: databaseMs / done,
    transactions: commits / done,
    walBytes: wal / done,
  }
}

/** Where a CPU profile of the last round is wanted, by subject. */
export async function benchCost(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startAgent()
  const { fast: cardUrl } = await agent.call('open', null)
  const peerUrl = await stage.database()
  const peer = startPeer('graphile.ts')
  await peer.call('open', { url: peerUrl, concurrency })
  const url = await stage.database()
  const child = startConsole()
  const { origin, agentId } = await child.call('open', { url, folder: stage.folder('cost'), cardUrl })
  const http = new Pool(origin, { connections: concurrency })
  const forMs = options.seconds * 1000
  let jobs = 0
  const counted = async (run: Promise<Flow>): Promise<Flow> => {
    const result = await run
    jobs += result.accepted * options.seconds
    return result
  }
  const finished = async (): Promise<number> =>
    Number((await query(url, `select count(*) as n from command where status = 'succeeded'`))[0]?.['n'])
  const accept = (round: number) => async (n: number) => {
    const { statusCode, body } = await http.request({
      method: 'POST',
      path: `/api/agents/${agentId}/commands`,
      headers: { 'content-type': 'application/json', 'idempotency-key': `cost-${round}-${n}` },
      body: JSON.stringify({ text: 'Do it.' }),
    })
    await body.dump()
    if (statusCode !== 202) throw new Error(`A command was answered with ${statusCode}.`)
  }
  const unfinished = () => child.call('unfinished', null)
  const subjects: Subject[] = [
    {
      name: 'graphile-worker',
      url: peerUrl,
      cpuMs: () => peer.cpuMs(),
      round: () => counted(peer.call('flow', { forMs, concurrency })),
      done: () => Promise.resolve(jobs),
    },
    {
      name: 'signalbox over HTTP',
      url,
      cpuMs: () => child.cpuMs(),
      round: (n) => flow({ forMs, concurrency, accept: accept(n), unfinished }),
      done: finished,
    },
    {
      name: 'signalbox below HTTP',
      url,
      cpuMs: () => child.cpuMs(),
      round: (n) => child.call('flowInside', { forMs, concurrency, round: `cost-inside-${n}` }),
      done: finished,
    },
  ]
  try {
    for (const subject of subjects) await subject.round(-1)
    const rows: string[][] = []
    for (const subject of subjects) {
      const profiled = options.profileFolder !== null && subject.url === url
      for (let n = 0; n < options.rounds; n++) {
        if (profiled && n === options.rounds - 1) await child.call('profile', null)
        const cost = await costOf(subject, stage, n)
        if (profiled && n === options.rounds - 1)
          await child.call('endProfile', { folder: options.profileFolder ?? '', name: subject.name })
        rows.push([
          subject.name,
          ...[
            cost.done / options.seconds,
            cost.ownMs,
            cost.databaseMs,
            cost.ownMs + cost.databaseMs,
            cost.transactions,
            cost.walBytes,
          ].map(figure),
        ])
      }
    }
    const head = ['subject', 'done/s', 'own CPU, ms', 'database CPU, ms', 'both', 'transactions', 'WAL, bytes']
    process.stdout.write(table('cost: of one command (or job)', head, rows))
  } finally {
    await http.close()
    await child.end()
    await peer.end()
    await agent.end()
    await stage.close()
  }
}
