/**
 * The idempotency store against a map in memory: what a key meant first, it means for ever. Twins that arrive together, with
 * the same content or another, give one command; the others are told which, or refused.
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Refusal } from '../../../domain/refusal.ts'
import { bothDatabases } from '../../support/databases.ts'
import { explore } from './exploring.ts'
import { openModelStage, type Stage } from './stage.ts'

const shortRuns = 10
const Rows = z.object({ rows: z.number() })

/** By key: the content that was accepted first, and the command it became. */
type Model = Map<number, { readonly text: string; readonly id: string }>
interface Real {
  readonly stage: Stage
  readonly prefix: string
}
type Command = fc.AsyncCommand<Model, Real>

const keyOf = ({ prefix }: Real, key: number): string => `${prefix}-${key}`

async function ask(real: Real, key: number, text: string) {
  const { agentId, commands, viewer } = real.stage
  const body = { action: 'send' as const, tenant: '', text }
  try {
    const { command, replayed } = await commands.accept(viewer, { agentId, body, idempotencyKey: keyOf(real, key) })
    return { text, id: command.id, replayed }
  } catch (error) {
    if (error instanceof Refusal) return { text, refused: error.code }
    throw error
  }
}

/** All of these at once, under one key. */
const twins = (key: number, texts: readonly string[]): Command => ({
  check: () => true,
  async run(model, real) {
    const answers = await Promise.all(texts.map((text) => ask(real, key, text)))
    const accepted = answers.flatMap((answer) => ('id' in answer ? [answer] : []))
    const [one] = accepted
    if (one?.id && !model.has(key)) model.set(key, { text: one.text, id: one.id })
    const first = model.get(key)
    for (const answer of answers)
      if (answer.text === first?.text) expect(answer).toMatchObject({ id: first.id })
      else expect(answer).toMatchObject({ refused: 'command.key.taken' })
    expect(accepted.filter(({ replayed }) => !replayed).length).toBeLessThanOrEqual(1)
    const rows = await real.stage.db.pool.oneFirst(sql.type(Rows)`
      select count(*)::int4 as rows from command where idempotency_key = ${keyOf(real, key)}`)
    expect(rows).toBe(1)
  },
  toString: () => `twins(${key}: ${texts.join()})`,
})

/** Every key that was ever used, asked again at once. */
const replayAll: Command = {
  check: (model) => model.size > 0,
  async run(model, real) {
    const answers = await Promise.all([...model].map(([key, { text }]) => ask(real, key, text)))
    expect(answers).toEqual([...model.values()].map(({ text, id }) => ({ text, id, replayed: true })))
  },
  toString: () => 'replayAll',
}

const text = fc.constantFrom('one', 'two')
const commands = fc.commands(
  [
    fc.tuple(fc.nat(4), fc.array(text, { minLength: 1, maxLength: 6 })).map(([key, texts]) => twins(key, texts)),
    fc.tuple(fc.nat(4), fc.array(text, { minLength: 2, maxLength: 6 })).map(([key, texts]) => twins(key, texts)),
    fc.constant(replayAll),
  ],
  { maxCommands: 12, size: 'max' },
)

describe.each(bothDatabases)('idempotency keys on %s', (kind) => {
  let stage: Stage
  let runs = 0
  beforeAll(async () => {
    stage = await openModelStage(kind)
  })
  afterAll(() => stage.close())

  it('mean what they meant first, also to twins', async () => {
    const setup = () => ({ model: new Map() as Model, real: { stage, prefix: `run-${++runs}` } })
    const property = fc.asyncProperty(commands, (plan) => fc.asyncModelRun(setup, plan))
    await explore(stage, property, shortRuns)
  })
})
