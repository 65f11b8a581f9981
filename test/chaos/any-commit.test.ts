/**
 * F3 for what has no name of its own: death before or after the n-th commit, whatever it writes (an agent that is registered, the
 * audit's links, leases, looks without news, housekeeping), under load and while agents are registered; and in the long pass of the
 * process' own start, too. The deaths whose meaning is known exactly are crash-points.test.ts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { AuditAnswer, ChainAnswer } from '../../domain/audit.ts'
import { Client } from '../support/api.ts'
import { bothDatabases } from '../support/databases.ts'
import { runScript } from '../support/scripts.ts'
import type { History } from './checker.ts'
import { dialectNames } from './dialects.ts'
import type { Load } from './load.ts'
import type { Chance } from './seed.ts'
import type { Stage } from './stage.ts'
import { expectMostSucceeded, say, storm, usualWords } from './storm.ts'
import { isLong } from '../support/pass.ts'

const senders = 6
/** About as many as a start has before it answers anybody: nobody is told of anything in a life that ends with one of them. */
const startCommits = 16
/** Counted once there is load: whoever dies at one of them has told somebody of commands that it leaves behind. */
const loadCommits = 30

interface Death {
  readonly side: 'before' | 'after'
  readonly nth: number
  readonly when: 'of its start' | 'under load'
}

const bothSides = (commits: number, when: Death['when']): Death[] =>
  Array.from({ length: commits }, (_, i) => i + 1).flatMap((nth) => [
    { side: 'before', nth, when },
    { side: 'after', nth, when },
  ])

/** The long pass dies on both sides of each; the short one once on each side of whichever is drawn, and always under load. */
const deathsBy = (chance: Chance): Death[] =>
  isLong
    ? [...bothSides(startCommits, 'of its start'), ...bothSides(loadCommits, 'under load')]
    : (['before', 'after'] as const).map((side) => ({ side, nth: chance.whole(1, loadCommits), when: 'under load' }))
const lives = isLong ? 2 * (startCommits + loadCommits) : 2
const livesUnderLoad = isLong ? 2 * loadCommits : 2

describe.each(bothDatabases)('death at any commit on %s', (database) => {
  it(`loses nothing, delivers nothing twice and leaves nothing half done, in ${lives} lives`, async () => {
    const name = `any commit, ${database}`
    const dyings: Dying[] = []
    const history = await storm(name, { database }, async (stage, chance) => {
      const console_ = await stage.console({ storm: [] })
      const { url } = console_
      const load = await stage.load(() => [url], chance, usualWords)
      const stop = load.begin(senders)
      await stage.broken('kill -9', () => console_.end('SIGKILL'))
      const registering: Promise<void>[] = []
      for (const [life, death] of deathsBy(chance).entries()) {
        await stage.leasesOver()
        const register = (): void => void registering.push(registered(stage, url, life + 1))
        if (death.when === 'under load') dyings.push(await diesUnderLoad(stage, load, death, register))
        else await diesAtStart(stage, death, register)
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
    // A death of which nobody was told anything before could lose and repeat what it liked.
    const accepted = dyings.reduce((sum, each) => sum + each.accepted, 0)
    const cutOff = dyings.reduce((sum, each) => sum + commandsCutOff(history, each.diedAt), 0)
    say(`${name}, by those that died under load`, { lives: dyings.length, accepted, cutOff })
    expect(accepted).toBeGreaterThanOrEqual(senders * livesUnderLoad)
    expect(cutOff).toBeGreaterThanOrEqual(livesUnderLoad / 2)
  })
})

const words = ({ side, nth, when }: Death): string => `${side} commit ${nth} ${when}`

async function diesAtStart(stage: Stage, death: Death, register: () => void): Promise<void> {
  register()
  await stage.broken(words(death), async () => {
    const doomed = await stage.console({ storm: ['--die-at', `any/${death.side}-commit`, '--nth', String(death.nth)] })
    await doomed.diesAt(words(death))
  })
}

interface Dying {
  /** Sends of that life of which somebody was told. */
  readonly accepted: number
  readonly diedAt: number
}

/** Commits are counted once as many sends as there are senders were accepted, and an agent is registered from then on. */
async function diesUnderLoad(stage: Stage, load: Load, death: Death, register: () => void): Promise<Dying> {
  const before = load.accepted
  const doomed = await stage.console({ storm: [] })
  await stage.until(() => load.accepted >= before + senders)
  await stage.broken(words(death), async () => {
    doomed.allow('SIGKILL')
    await doomed.tell({ dieAt: `any/${death.side}-commit`, nth: death.nth })
    register()
    await doomed.diesAt(words(death))
  })
  return { accepted: load.accepted - before, diedAt: Date.now() }
}

/** Commands of which somebody had been told when the process died, and which had not ended by then. */
function commandsCutOff({ asks, books }: History, diedAt: number): number {
  const endOf = new Map(books.log.map(({ actorId, at }) => [actorId, at]))
  return asks.filter(({ attempts }) =>
    attempts.some(
      ({ sentAt, commandId }) => commandId !== null && sentAt <= diedAt && (endOf.get(commandId) ?? 0) > diedAt,
    ),
  ).length
}

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
