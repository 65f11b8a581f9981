/** People's large messages are weighed: each has a commit of its own, and those that are small share one as ever. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { acceptCommand, newCommand } from '../../actors/command.ts'
import { charactersLimit } from '../../actors/loop/flight-weight.ts'
import { acceptInPlace } from '../../actors/replacing.ts'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { administratorOf } from '../support/viewers.ts'

const Commit = z.object({ commands: z.number(), characters: z.number() })

describe.each(eitherDatabase)('messages sent at once on %s', (kind) => {
  let running: RunningSystem
  let agentId: string
  beforeAll(async () => {
    running = await freshSystem(kind, { works: false })
    agentId = (await running.system.agents.register(running.viewer, 'http://127.0.0.1:9/card.json')).id
  })
  afterAll(() => running.close())

  /** What each commit took, of these: a row knows the transaction that wrote it. */
  async function commitsOf(texts: readonly string[]) {
    const sent = await Promise.all(texts.map((text) => running.send(agentId, { text })))
    const ids = sent.map(({ id }) => id)
    return running.db.pool.any(sql.type(Commit)`
      select count(*)::int as commands, sum(length(body))::int as characters from command
      where id = any(${sql.array(ids, 'uuid')}) group by xmin::text`)
  }

  it('that are large leave alone', async () => {
    const words = 'The quick "brown" fox. '.repeat(charactersLimit / 16)
    const commits = await commitsOf(Array.from({ length: 6 }, (_, i) => `${i}${words}`))
    expect(commits.map(({ commands }) => commands)).toEqual([1, 1, 1, 1, 1, 1])
  })

  it('that are neither share what one commit may carry', async () => {
    const words = 'x'.repeat(charactersLimit / 5)
    const commits = await commitsOf(Array.from({ length: 12 }, () => words))
    for (const { characters } of commits) expect(characters).toBeLessThanOrEqual(charactersLimit)
    expect(commits.some(({ commands }) => commands > 1)).toBe(true)
  })

  it('that are small share commits', async () => {
    expect((await commitsOf(Array.from({ length: 60 }, (_, i) => `${i}`))).length).toBeLessThan(10)
  })
})

it('weighs whatever a message holds, also where it goes in the place of another', () => {
  const viewer = administratorOf('00000000-0000-7000-8000-00000000000a')
  const raw = 'A'.repeat(1000)
  const part = { raw, metadata: { note: 'x'.repeat(1000) } }
  const body = { action: 'send' as const, tenant: '', text: 'x'.repeat(1000), parts: [part, { data: [raw] }] }
  const of = { agentId: viewer.organizationId, body, idempotencyKey: 'k', taskId: null, skillId: null } as const
  const command = newCommand(viewer, { ...of, status: 'pending' }, () => viewer.organizationId)
  const weight = acceptCommand.weigh?.({ command }) ?? 0
  expect(weight).toBeGreaterThanOrEqual(4000)
  expect(weight).toBeLessThan(4400)
  expect(acceptInPlace.weigh?.({ viewer, command, replaces: viewer.organizationId })).toBe(weight)
})
