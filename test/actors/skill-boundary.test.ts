/** Where a skill ends, in the one place that no look beforehand covers: two answers that come with the same commit. */
import { v7 as newId } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { observe } from '../../actors/observe.ts'
import { observed } from '../../actors/threads/stream-parser.ts'
import type { ToldFact } from '../../domain/fact.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { answering } from './models/stage.ts'

let fresh: FreshDatabase
beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
})
afterAll(() => fresh.close())

const status = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00.000Z' } as const

test('a new task that two commands of two skills are answered with is the first one’s alone', async () => {
  const [organizationId, agentId, first, second] = [newId(), newId(), newId(), newId()]
  const answered = (id: string, skillId: string, text: string): ToldFact => {
    const said = { messageId: newId(), role: 'ROLE_AGENT' as const, parts: [{ text }] }
    const { observation } = observed({ task: { id: 'shared', contextId: 'c', status, history: [said] } })
    const command = { ...answering(), id, skillId }
    const observations = [observation]
    const report = { agentId, tenant: '', source: 'reply', command, remoteTaskId: null, observations } as const
    return { organizationId, subjectId: id, fact: { type: 'agent.reported', report } }
  }
  const told = [answered(first, 'invoices', 'for invoices'), answered(second, 'payroll', 'for payroll')]
  const replies = new Map<string, { readonly taskId: string; readonly reply: string; readonly remark: string | null }>()
  const effects = await fresh.db.fly((tx) =>
    observe(
      { tx, at: new Date(), newToken: newId, isAtWork: () => false, tasks: new Map(), writes: [], replies },
      told,
    ),
  )
  expect([...replies.keys()]).toEqual([first])
  expect(effects.told?.map(({ fact }) => fact.type)).toEqual(['task.observed', 'task.settled'])
})
