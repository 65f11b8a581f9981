/**
 * F3: death at every named point between a caller's request and the last word about it (doomed/doom.ts), on both databases, of a
 * console that delivers, and of a worker beside one that only accepts. At each point it is known exactly what has to be true
 * afterwards: whether there is a command, whether the agent has it, and what the command says. One process dies at a point, the next
 * recovers its command and dies at the next point.
 */
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ActorAnswer } from '../../domain/actor.ts'
import { bothDatabases } from '../support/databases.ts'
import { deathAt, heir } from './deaths.ts'
import type { Command } from '../../domain/command.ts'
import { fileOf } from './dialects.ts'
import { finalOf, type Load } from './load.ts'
import type { CrashPoint } from './doomed/doom.ts'
import type { Stage } from './stage.ts'
import { storm } from './storm.ts'
import { Client } from '../support/api.ts'
import { isLong, sized } from '../support/pass.ts'

interface Case {
  readonly point: CrashPoint
  /** `known`: the agent's card was read a moment ago, so that accepting and dispatching are one commit. */
  readonly card: 'unknown' | 'known'
  /** A reply or a cancel is of a task that was there before, of an agent whose card is known by it. */
  readonly words: 'message' | 'file' | 'task' | 'reply' | 'cancel'
  readonly status: 'succeeded' | 'uncertain'
  readonly receipts: 0 | 1
  /**
   * In the short pass: on PostgreSQL each commit, from one side at least, and all that is said between two of them; on the embedded
   * database, where a start costs 2 s of a processor, the one at which an agent has it and nobody wrote so. A cancel is sent as a
   * message is. The rest in the long pass.
   */
  readonly brief?: 'on PostgreSQL' | 'everywhere'
}

/** Nothing was accepted, or only discovery was lost, or everything had been written down: it ends as if nothing had happened. */
const unharmed = { status: 'succeeded', receipts: 1, words: 'message' } as const
/** It had been marked as begun and nobody can tell how far it came: never sent again, and said so. */
const doubted = { status: 'uncertain', words: 'message' } as const

const cases: readonly Case[] = [
  { point: 'accept/before-commit', card: 'unknown', ...unharmed, brief: 'on PostgreSQL' },
  { point: 'accept/after-commit', card: 'unknown', ...unharmed },
  { point: 'accept/before-commit', card: 'known', ...unharmed },
  { point: 'accept/after-commit', card: 'known', ...doubted, receipts: 0, brief: 'on PostgreSQL' },
  { point: 'begin/before-commit', card: 'unknown', ...unharmed, brief: 'on PostgreSQL' },
  { point: 'begin/after-commit', card: 'unknown', ...doubted, receipts: 0 },
  { point: 'send/before-first-byte', card: 'unknown', ...doubted, receipts: 0, brief: 'on PostgreSQL' },
  { point: 'send/after-head', card: 'unknown', ...doubted, receipts: 0, brief: 'on PostgreSQL' },
  { point: 'send/after-body', card: 'unknown', ...doubted, receipts: 1, brief: 'on PostgreSQL' },
  { point: 'answer/received', card: 'unknown', ...doubted, receipts: 1, brief: 'on PostgreSQL' },
  { point: 'result/before-commit', card: 'unknown', ...doubted, receipts: 1, brief: 'everywhere' },
  { point: 'result/after-commit', card: 'unknown', ...unharmed, brief: 'on PostgreSQL' },
  { point: 'observation/before-commit', card: 'unknown', ...unharmed, words: 'task' },
  { point: 'observation/after-commit', card: 'unknown', ...unharmed, words: 'task', brief: 'on PostgreSQL' },
  { point: 'accept/after-commit', card: 'known', ...doubted, words: 'reply', receipts: 0 },
  { point: 'send/after-body', card: 'known', ...doubted, words: 'reply', receipts: 1 },
  { point: 'send/after-body', card: 'known', ...doubted, words: 'cancel', receipts: 1 },
  { point: 'result/before-commit', card: 'known', ...doubted, words: 'cancel', receipts: 1 },
  { point: 'result/after-commit', card: 'known', ...unharmed, words: 'reply' },
  ...(isLong ? [{ point: 'artifact/stored', card: 'unknown', ...doubted, words: 'file', receipts: 1 } as const] : []),
]

/** A task to reply to, and one to cancel; it would end by itself only after all deaths are over. */
const prologues: Partial<Record<Case['words'], string>> = { reply: 'ask 0', cancel: 'hold 0 60000' }

/** Points on the way of a process that finds what another left behind; it dies while it starts. */
const inherited: readonly CrashPoint[] = ['claim/before-commit', 'claim/after-commit']
/** The same of whoever looks for what was left in doubt. */
const looking: readonly CrashPoint[] = ['look/before-commit', 'look/after-commit']
const heirsOf = (point: CrashPoint): readonly CrashPoint[] => {
  if (point === 'begin/before-commit') return inherited
  return point === 'result/before-commit' && isLong ? looking : []
}

interface Place {
  readonly database: (typeof bothDatabases)[number]
  /** Who delivers, and dies. */
  readonly mortal: 'console' | 'worker'
}
const places: readonly Place[] = [
  ...bothDatabases.map((database) => ({ database, mortal: 'console' as const })),
  ...(isLong ? [{ database: 'postgresql' as const, mortal: 'worker' as const }] : []),
]

function playedAt({ database, mortal }: Place): readonly Case[] {
  // A worker accepts nothing.
  if (mortal === 'worker') return cases.filter(({ point }) => !point.startsWith('accept/'))
  if (isLong) return cases
  return cases.filter(({ brief }) => brief === 'everywhere' || (brief && database === 'postgresql'))
}

describe.each(places)('death of a $mortal at a named point on $database', ({ database, mortal }) => {
  const external = mortal === 'worker'
  const rounds = external ? 1 : sized(1, 5)
  const played = playedAt({ database, mortal })
  const pointsCount = played.reduce((sum, { point }) => sum + 1 + heirsOf(point).length, 0)

  it(`leaves exactly what has to be left, at each of ${pointsCount} points`, async () => {
    const wanted = new Map<string, Case>()
    /** What each death between an artifact and its commit should have left, among what was left. */
    const stored: [file: string, files: readonly string[]][] = []
    const history = await storm(`crash points, ${mortal}, ${database}`, { database }, async (stage, chance) => {
      const console_ = await stage.console({ storm: [], external })
      let victim = external ? await heir(stage, [], mortal) : console_
      const load = await stage.load(
        // Each console has the port of the one before it.
        () => [console_.url],
        chance,
        () => 'message',
      )
      const [speaksFiles] = await stage.agents(console_.url)
      for (let round = 0; round < rounds; round++) {
        for (const each of played) {
          const wish = each.words === 'file' ? load.wish('file', speaksFiles) : await wishOf(load, each)
          const of = each.words === 'task' ? `task-${wish.messageId}` : undefined
          await deathAt(stage, victim, each.point, () => load.ask(wish), of)
          victim = await heir(stage, heirsOf(each.point), mortal)
          const { id } = await finished(load, await load.insist(wish))
          wanted.set(wish.messageId, await asItWas(each, console_.url, id))
          if (each.words === 'file') stored.push([fileOf(wish.messageId), filesOf(stage)])
        }
      }
      return { load, figures: { kills: rounds * pointsCount } }
    })
    for (const [file, files] of stored) expect(files).toContain(file)
    const finals = new Map([...history.finals.values()].map((final) => [final.messageId, final]))
    for (const [messageId, { point, card, status, receipts }] of wanted) {
      const received = history.receipts.filter((receipt) => receipt.messageId === messageId).length
      expect({ point, card, status: finals.get(messageId)?.status, receipts: received }).toEqual({
        point,
        card,
        status,
        receipts,
      })
    }
  })

  /** Whoever looked for what earlier deaths left in doubt may have read the card meanwhile: then accepting it and beginning were one commit. */
  const asItWas = async (death: Case, url: string, id: string): Promise<Case> => {
    if (death.point !== 'accept/after-commit' || death.card === 'known') return death
    const { delivery } = ActorAnswer.parse((await new Client(url).get(`/api/actors/command/${id}`)).body)
    return delivery?.leftAt === delivery?.acceptedAt ? { ...death, card: 'known', ...doubted, receipts: 0 } : death
  }

  /** What is to die, and before it whatever makes its agent's card known, or its task. */
  const wishOf = async (load: Load, { words, card }: Case) => {
    const first = prologues[words]
    if (first !== undefined) {
      const begun = load.wish(first)
      const next = load.nextOf(begun, finalOf(await finished(load, await load.insist(begun))))
      if (!next) throw new Error(`Nothing follows from ${first}.`)
      return next
    }
    if (words === 'task') {
      // Another task talks while this one is being answered, as what was left of earlier deaths may: whoever died of that would leave
      // a doubt. This one's first word of its own follows its answer.
      await finished(load, await load.insist(load.wish('hold 0 100')))
      return load.wish('hold 500 700')
    }
    const wish = load.wish(words)
    if (card === 'known') await finished(load, await load.insist(load.wish('message', wish.agentId)))
    return wish
  }

  const finished = async (load: Load, id: string | null): Promise<Command> => {
    if (id === null) throw new Error('The command was not accepted.')
    return load.ended(id)
  }
})

/** What the artifact directory holds, each file whole under its digest. */
function filesOf(stage: Stage): readonly string[] {
  const directory = join(stage.env['A2A_DATA_DIR'] ?? '', 'artifacts')
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map(({ parentPath, name }) => {
    const bytes = readFileSync(join(parentPath, name))
    expect(name).toBe(hash('sha256', bytes))
    return bytes.toString()
  })
}
