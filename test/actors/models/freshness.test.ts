/**
 * Freshness against a model in memory: every commit that tells something is followed by a signal that names it, whoever reads
 * on the signal finds it committed, and nothing is signalled that did not happen. Another process on the same PostgreSQL
 * hears of it, too, by asking.
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Change } from '../../../actors/loop/changes.ts'
import { openDatabase } from '../../../persistence/database.ts'
import { named, nextChange } from '../../support/changes.ts'
import { bothDatabases } from '../../support/databases.ts'
import { systemOn, type RunningSystem } from '../../support/system.ts'
import { explore } from './exploring.ts'
import { openModelStage, statusOf, type Stage } from './stage.ts'

const shortRuns = 8
const boundMs = 10_000
const startMs = Date.parse('2026-11-21T12:00:00.000Z')
const Facts = z.object({ facts: z.number() })

interface Model {
  /** What was ever committed and told, by whom it is about. */
  readonly told: Set<string>
  readonly keys: Set<string>
  clock: number
}
interface Real {
  readonly stage: Stage
  readonly prefix: string
  readonly taskId: string
  readonly remoteId: string
  readonly heard: Heard
}
type Command = fc.AsyncCommand<Model, Real>

const factsOf = (stage: Stage, subject: string): Promise<number> =>
  stage.db.pool.oneFirst(sql.type(Facts)`select count(*)::int4 as facts from fact where subject_id = ${subject}`)

/** Reads, the moment a signal is heard, what was committed about whatever it names. */
class Heard {
  readonly #stage: Stage
  #reads: Promise<readonly [subject: string, facts: number]>[] = []

  constructor(stage: Stage) {
    this.#stage = stage
  }

  note(change: Change): void {
    for (const subject of named(change))
      this.#reads.push(factsOf(this.#stage, subject).then((facts) => [subject, facts] as const))
  }

  /** What was heard since the last call. */
  async take(): Promise<ReadonlyMap<string, number>> {
    return new Map(await Promise.all(this.#reads.splice(0)))
  }
}

/** Does something, and compares what was heard with what the outbox gained; `isNews`: whether there is anything to gain. */
async function listening(
  model: Model,
  real: Real,
  act: () => Promise<readonly string[]>,
  isNews: boolean,
): Promise<void> {
  await real.heard.take()
  const before = new Map<string, number>()
  for (const subject of model.told) before.set(subject, await factsOf(real.stage, subject))
  const subjects = await act()
  const heard = await real.heard.take()
  for (const subject of subjects) {
    const facts = await factsOf(real.stage, subject)
    expect(facts > (before.get(subject) ?? 0)).toBe(isNews)
    expect(heard.get(subject)).toBe(isNews ? facts : undefined)
    model.told.add(subject)
  }
}

const accept = (which: number): Command => ({
  check: () => true,
  async run(model, real) {
    const key = `${real.prefix}-${which}`
    const { stage } = real
    const body = { action: 'send' as const, tenant: '', text: 'Do it.' }
    const isNews = !model.keys.has(key)
    model.keys.add(key)
    const once = async () =>
      (await stage.commands.accept(stage.viewer, { agentId: stage.agentId, body, idempotencyKey: key })).command.id
    // Twins are one piece of news; a replay is none.
    await listening(model, real, async () => [...new Set([await once(), await once()])], isNews)
  },
  toString: () => `accept(${which})`,
})

const push = (isNews: boolean): Command => ({
  check: (model) => isNews || model.clock > 0,
  async run(model, real) {
    const { stage, remoteId, taskId } = real
    if (isNews) model.clock += 1
    const seen = statusOf(remoteId, 'TASK_STATE_WORKING', new Date(startMs + model.clock * 1000).toISOString())
    const tell = async () => {
      await stage.tell({ kind: 'subscription', id: taskId }, { source: 'push', remoteTaskId: remoteId }, seen)
      return [taskId]
    }
    await listening(model, real, tell, isNews)
  },
  toString: () => `push(${isNews ? 'news' : 'again'})`,
})

/** A round of a loop tells nothing. */
const round: Command = {
  check: () => true,
  async run(model, real) {
    const { stage, taskId } = real
    const ref = { kind: 'subscription', id: taskId }
    const goRound = async () => {
      const claimed = await stage.claim(ref)
      if (!claimed) throw new Error('The subscription is not due.')
      const event = { type: 'xstate.done.actor.follow', output: { kind: 'ended', news: true } }
      await stage.report(claimed, event)
      await stage.ring(ref, { type: 'xstate.after.backoff.subscription.backingOff' })
      return [taskId]
    }
    await listening(model, real, goRound, false)
  },
  toString: () => 'round',
}

const commands = fc.commands([fc.nat(5).map(accept), fc.boolean().map(push), fc.constant(round)], {
  maxCommands: 20,
  size: 'max',
})

describe.each(bothDatabases)('commits on %s', (kind) => {
  let stage: Stage
  let runs = 0
  beforeAll(async () => {
    stage = await openModelStage(kind)
  })
  afterAll(() => stage.close())

  it('are followed by a signal, and a signal by what it speaks of', async () => {
    await explore(
      stage,
      fc.asyncProperty(commands, async (plan) => {
        const [remoteId, heard] = [uuidv7(), new Heard(stage)]
        const taskId = await stage.beginTask(remoteId, 'TASK_STATE_WORKING')
        const deaf = stage.changes.subscribe((change) => heard.note(change))
        const model: Model = { told: new Set([taskId]), keys: new Set(), clock: 0 }
        const real: Real = { stage, prefix: `run-${++runs}`, taskId, remoteId, heard }
        await fc.asyncModelRun(() => ({ model, real }), plan).finally(deaf)
      }),
      shortRuns,
    )
  })
})

describe('commits on one PostgreSQL', () => {
  let stage: Stage
  let other: RunningSystem
  let close: () => Promise<void>
  beforeAll(async () => {
    stage = await openModelStage('postgresql')
    const db = await openDatabase(stage.profile)
    other = await systemOn(db, { works: false })
    close = async () => {
      await other.close()
      await db.close()
      await stage.close()
    }
  })
  afterAll(() => close())

  it('are heard of by a process that was told by nobody', async () => {
    const body = { action: 'send' as const, tenant: '', text: 'Do it.' }
    for (let n = 0; n < 10; n++) {
      const signal = AbortSignal.timeout(boundMs)
      const next = nextChange(other.system.changes, signal)
      const asked = { agentId: stage.agentId, body, idempotencyKey: `heard-${n}` }
      const { command } = await stage.commands.accept(stage.viewer, asked)
      await next
      expect(signal.aborted).toBe(false)
      expect((await other.system.commands.find(stage.viewer, command.id)).id).toBe(command.id)
    }
  })
})
