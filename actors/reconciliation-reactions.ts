/** What follows from doubt, from a look, and from an agent that forgot a task: rows about them, in the same transaction. */
import type { ToldFact } from '../domain/fact.ts'
import { openEvidence, storeLooks } from '../persistence/evidence.ts'
import { noteLost } from '../persistence/reconciliation.ts'
import type { Reaction } from './loop/reaction.ts'

/** Nobody knows whether the agent has it: from now on it is looked for. The command itself is left alone, for good. */
export const seekCommand: Reaction = (batch, told) => {
  const commandIds = told.map(({ subjectId }) => subjectId)
  batch.writes.push(() => openEvidence(batch.tx, commandIds, batch.at.toISOString()))
  return Promise.resolve({})
}

/** A look is stored under the lease of whoever looked, and told to those who watch the command. */
export const keepLook: Reaction = async (batch, told) => {
  const looks = told.flatMap(({ fact }) => (fact.type === 'command.looked_for' ? [fact] : []))
  const news = await storeLooks(batch.tx, looks, batch.at.toISOString())
  return {
    told: told.flatMap(({ organizationId, fact }): ToldFact[] =>
      fact.type === 'command.looked_for' && news.has(fact.commandId)
        ? [{ organizationId, subjectId: fact.commandId, fact: { type: 'command.evidence', outcome: fact.outcome } }]
        : [],
    ),
  }
}

/** A task that cannot be seen any more: said once, asked for a few times more, then once an hour where it is no matter of its size. */
export const noteLostTasks: Reaction = async (batch, told) => {
  const lost = told.flatMap(({ organizationId, fact }) =>
    fact.type === 'reconciliation.unanswered' ? [{ ...fact, organizationId, oversized: fact.oversized === true }] : [],
  )
  const news = await noteLost(batch.tx, lost, batch.at.toISOString())
  return {
    told: lost.flatMap(({ organizationId, taskId, reason }) =>
      news.has(taskId) ? [{ organizationId, subjectId: taskId, fact: { type: 'task.lost', reason } }] : [],
    ),
  }
}
