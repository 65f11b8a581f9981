/**
 * F3 for what has no name of its own: death before or after the n-th commit of a process' life, whatever it writes (its own start, an agent
 * that is registered, the audit's links, leases, looks without news, housekeeping), under load and while agents are registered. The
 * deaths whose meaning is known exactly are crash-points.test.ts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { AuditAnswer, ChainAnswer } from '../../domain/audit.ts'
import { Client } from '../support/api.ts'
import { bothDatabases } from '../support/databases.ts'
import { runScript } from '../support/scripts.ts'
import { dialectNames } from './dialects.ts'
import type { Stage } from './stage.ts'
import { expectMostSucceeded, storm, usualWords } from './storm.ts'
import { isLong, sized } from '../support/pass.ts'

const senders = 6
const lives = sized(2, 60)
/** A start is a dozen commits or less; those that come later are drawn. */
const nthLimit = 40

describe.each(bothDatabases)('death at any commit on %s', (database) => {
  // On the embedded database, where a start costs 2 s of a processor, in the long pass.
  const isPlayed = isLong || database === 'postgresql'
  it.runIf(isPlayed)(
    `loses nothing, delivers nothing twice and leaves nothing half done, in ${lives} lives`,
    async () => {
      const history = await storm(`any commit, ${database}`, { database }, async (stage, chance) => {
        const console_ = await stage.console({ storm: [] })
        const { url } = console_
        const load = await stage.load(() => [url], chance, usualWords)
        const stop = load.begin(senders)
        await stage.broken('kill -9', () => console_.end('SIGKILL'))
        const registering: Promise<void>[] = []
        for (let life = 1; life <= lives; life++) {
          // The long pass dies on both sides of each of the first thirty; the short one once on each side of whichever is drawn.
          const side = life % 2 === 1 ? 'before' : 'after'
          const nth = isLong ? Math.ceil(life / 2) : chance.whole(1, nthLimit)
          await stage.leasesOver()
          registering.push(registered(stage, url, life))
          await stage.broken(`${side} commit ${nth}`, async () => {
            const doomed = await stage.console({ storm: ['--die-at', `any/${side}-commit`, '--nth', String(nth)] })
            await doomed.diesAt(`${side} commit ${nth}`)
          })
        }
        await stage.leasesOver()
        await stage.console({ storm: [] })
        await Promise.all(registering)
        // As many again as were accepted while it died, in doubt or not: afterwards all is as if nothing had been.
        await load.reached(2 * load.accepted + 20)
        await stop()
        if (!isLong) await stage.leasesOver()
        await expectWholeTrail(stage, url)
        return { load, figures: { kills: lives + 1 } }
      })
      expectMostSucceeded(history)
    },
  )
})

const addressOf = (stage: Stage, life: number): string =>
  stage.agent.cardUrl(dialectNames[0]).replace(/[^/]+$/, `life-${life}.json`)

/** The first lives end before they answer anybody, however long they take to begin on a busy machine. */
const answeredMs = 60_000 + lives * 10_000

/** As a person does it: asked again until it is answered. */
const registered = (stage: Stage, url: string, life: number): Promise<void> =>
  stage.until(async () => {
    const body = { cardUrl: addressOf(stage, life) }
    const answer = await new Client(url).post('/api/agents', body).catch(() => null)
    return answer?.status === 200 || answer?.status === 201
  }, answeredMs)

/** Each agent is there once and recorded once, and every record is linked in a chain that holds. */
async function expectWholeTrail(stage: Stage, url: string): Promise<void> {
  const client = new Client(url)
  await stage.until(async () => ChainAnswer.parse((await client.get('/api/audit/chain')).body).unlinked === 0)
  const records: string[] = []
  const page = '/api/audit?group=access'
  for (let next: string | null = ''; next !== null;) {
    const answer = AuditAnswer.parse((await client.get(`${page}${next && `&cursor=${next}`}`)).body)
    for (const { kind, subjectId } of answer.entries) if (kind === 'agent.registered') records.push(subjectId ?? '')
    next = answer.next
  }
  const { body } = await client.get('/api/agents')
  const { agents } = body as { agents: readonly { id: string; cardUrl: string }[] }
  const expected = Array.from({ length: lives }, (_, i) => addressOf(stage, i + 1))
  expect(agents.map(({ cardUrl }) => cardUrl).filter((address) => address.includes('/life-'))).toEqual(
    expect.arrayContaining(expected),
  )
  expect(new Set(agents.map(({ cardUrl }) => cardUrl)).size).toBe(dialectNames.length + lives)
  expect(records.toSorted()).toEqual(agents.map(({ id }) => id).toSorted())
  const file = join(stage.directory, 'audit-chain.jsonl')
  writeFileSync(file, await (await fetch(`${url}/api/audit/export?format=jsonl`)).text())
  expect(await runScript('bin/signalbox.ts', {}, 'audit', 'verify', file)).toMatchObject({ code: 0 })
}
