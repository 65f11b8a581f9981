/** When a task's push begins, in a deployment that has push, and when it ends. Does not own the table (reactions.ts) or the work (push.ts). */
import { isTerminal } from '../domain/task.ts'
import type { TaskSettled } from '../machines/push.ts'
import type { Reaction, Reactions } from './loop/reaction.ts'
import type { Spawn } from './loop/step.ts'

/** A task that begins; those that began before are found by a walk (push-latecomers.ts). */
const beginPush: Reaction = (_batch, told) => {
  const spawns: Spawn[] = []
  for (const { organizationId, subjectId, fact } of told) {
    if (fact.type !== 'task.observed' || !fact.created || isTerminal(fact.state)) continue
    const ref = { kind: 'push', id: subjectId }
    spawns.push({ ref, lane: fact.agentId, isNew: true, organizationId, cause: 'reaction' })
  }
  return Promise.resolve({ spawns })
}

export const endPush: Reaction = (_batch, told) =>
  Promise.resolve({
    sends: told.flatMap(({ subjectId, fact }) => {
      if (fact.type !== 'task.settled') return []
      const event: TaskSettled = { type: 'settled' }
      return [{ ref: { kind: 'push', id: subjectId }, event }]
    }),
  })

/** What a deployment with push adds to the table. What began is ended by all (reactions.ts), also once push was turned off. */
export const pushReactions: Reactions = [['task.observed', [beginPush]]]
