/**
 * F1, F2: `kill -9` of the console at random moments under load, on both databases. Callers ask again under their keys; what
 * must hold of every accepted command is checker.ts.
 */
import { describe, expect, it } from 'vitest'
import { bothDatabases } from '../support/databases.ts'
import type { History } from './checker.ts'
import { expectMostSucceeded, meanOf, say, storm, usualWords } from './storm.ts'
import { isLong, sized } from '../support/pass.ts'

const senders = 12
const sendsARound = 40
/** A start takes 1 to 2 s of a quiet machine, and up to 8 s were seen beside other work; a lease that is waited for is a minute. */
const startWithinMs = 30_000
/** What a death left in doubt is said at the next start on the embedded database, and elsewhere when its lease is over. */
const verdictWithinMs = { pglite: startWithinMs, postgresql: 60_000 + 15_000 } as const

/** From each death to the verdicts on what was under way. */
function verdictsMs({ finals, books, faults }: History): number[] {
  const logOf = Map.groupBy(
    books.log.filter(({ kind }) => kind === 'command'),
    ({ actorId }) => actorId,
  )
  return [...finals.values()].flatMap(({ id, status }) => {
    const log = logOf.get(id) ?? []
    const begun = log.find(({ value }) => value === 'dispatching')?.at ?? Infinity
    const death = faults.find(({ to }) => to >= begun)
    const end = log.at(-1)?.at
    return status === 'uncertain' && death && end !== undefined ? [end - death.from] : []
  })
}

/** In the short pass a console on PostgreSQL is killed beside workers and a server that dies (external.test.ts), and at points that have names. */
describe.each(isLong ? bothDatabases : (['pglite'] as const))('kill -9 under load on %s', (database) => {
  const rounds = database === 'pglite' ? sized(1, 100) : 300

  it(`loses nothing and delivers nothing twice, killed ${rounds} times over`, async () => {
    const recoveries: number[] = []
    const history = await storm(`kill -9, ${database}`, { database }, async (stage, chance) => {
      let console_ = await stage.console()
      const load = await stage.load(() => [console_.url], chance, usualWords)
      const stop = load.begin(senders)
      for (let round = 0; round < rounds; round++) {
        await load.reached(load.accepted + chance.whole(1, sendsARound))
        await stage.broken('kill -9', () => console_.end('SIGKILL'))
        const from = performance.now()
        const next = load.reached(load.accepted + 1)
        console_ = await stage.console()
        await next
        recoveries.push(performance.now() - from)
      }
      await load.reached(load.accepted + sendsARound)
      await stop()
      return {
        load,
        figures: { kills: rounds, meanRecoveryMs: meanOf(recoveries), maxRecoveryMs: Math.max(...recoveries) },
      }
    })
    const verdicts = verdictsMs(history)
    const means = { meanRecoveryMs: meanOf(recoveries), meanVerdictMs: meanOf(verdicts) }
    say(`verdicts after kill -9, ${database}`, { doubts: verdicts.length, meanVerdictMs: means.meanVerdictMs })
    expect(means.meanRecoveryMs).toBeLessThan(startWithinMs)
    expect(means.meanVerdictMs).toBeLessThan(verdictWithinMs[database])
    expectMostSucceeded(history)
  })
})
