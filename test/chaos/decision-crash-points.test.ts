/**
 * F3 for what a person decides of a send that failed: death around the commit that settles it, and around the one that accepts
 * another in its place. What the person was not told is found by asking again, in the same words and under the same key.
 */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AuditRecord } from '../../domain/audit.ts'
import type { CommandStatus } from '../../domain/command.ts'
import { SentWordsAnswer } from '../../domain/unsettled-send.ts'
import { Client } from '../support/api.ts'
import { bothDatabases } from '../support/databases.ts'
import { deathAt, heir } from './deaths.ts'
import type { CrashPoint } from './doomed/doom.ts'
import type { Member } from './fleet.ts'
import type { Load } from './load.ts'
import type { Stage } from './stage.ts'
import { storm } from './storm.ts'
import { isLong, sized } from '../support/pass.ts'

const Trail = z.object({ entries: z.array(AuditRecord) })

interface Case {
  readonly point: CrashPoint
  /** What is said of the send before anybody asks again. */
  readonly decided: 'no-matter' | 'sent-again' | null
  /** Of the command in its place, whose agent's card was read a moment ago: accepting and dispatching are one commit. */
  readonly successor: 'succeeded' | 'uncertain' | null
}

const cases: readonly Case[] = [
  { point: 'settle/before-commit', decided: null, successor: null },
  { point: 'settle/after-commit', decided: 'no-matter', successor: null },
  { point: 'replace/before-commit', decided: null, successor: 'succeeded' },
  { point: 'replace/after-commit', decided: 'sent-again', successor: 'uncertain' },
]
const rounds = sized(1, 5)

describe.each(bothDatabases)('death around a decision on %s', (database) => {
  it.runIf(isLong)('leaves it made or not made, and made once when it is asked for again', async () => {
    const kills = rounds * cases.length
    await storm(`decisions, ${database}`, { database }, async (stage, chance) => {
      let console_ = await stage.console({ storm: [] })
      const client = new Client(console_.url)
      const load = await stage.load(
        () => [console_.url],
        chance,
        () => 'message',
      )
      for (let round = 0; round < rounds; round++) {
        for (const each of cases) {
          console_ = await decidedOver(each, { stage, console_, client, load })
        }
      }
      return { load, figures: { kills } }
    })
  })
})

interface Scene {
  readonly stage: Stage
  readonly console_: Member
  readonly client: Client
  readonly load: Load
}

/** A send that failed, a decision about it over one death, and the same decision again. Returns the process that lives after it. */
async function decidedOver({ point, decided, successor }: Case, { stage, console_, client, load }: Scene) {
  const failed = load.wish('refuse')
  const id = await ended(load, failed, 'failed')
  const settle = () => client.post(`/api/sends/${id}/settle`, { decision: 'no-matter' })
  const again = successor === null ? null : load.wish('message', failed.agentId, { action: 'send', replaces: id })
  // Under whoever asks the process dies.
  await deathAt(stage, console_, point, () => (again ? load.ask(again) : Promise.allSettled([settle()])))
  const next = await heir(stage)
  expect({ point, decided: (await settlementOf(client, id))?.decision ?? null }).toEqual({ point, decided })
  if (again === null || successor === null) {
    expect((await settle()).status).toBe(200)
    expect(await settlementOf(client, id)).toMatchObject({ decision: 'no-matter', successorId: null })
  } else {
    const successorId = await ended(load, again, successor)
    expect(await settlementOf(client, id)).toMatchObject({ decision: 'sent-again', successorId })
  }
  const trail = Trail.parse((await client.get('/api/audit?group=commands')).body).entries
  const settled = trail.filter(({ subjectId, kind }) => subjectId === id && kind === 'command.settled')
  expect({ point, settled: settled.length }).toEqual({ point, settled: 1 })
  return next
}

/** Asks until the command is accepted, and waits for its end. Returns its id. */
async function ended(load: Load, wish: ReturnType<Load['wish']>, status: CommandStatus): Promise<string> {
  const command = await load.ended((await load.insist(wish)) ?? '')
  expect({ words: wish.text, status: command.status }).toEqual({ words: wish.text, status })
  return command.id
}

const settlementOf = async (client: Client, id: string) =>
  SentWordsAnswer.parse((await client.get(`/api/sends/${id}`)).body).send.settlement
