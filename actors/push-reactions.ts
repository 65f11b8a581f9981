/**
 * When a task's push begins and ends: the reactions that a deployment with push adds to the table, and what to do about
 * tasks that ended while it had none. Does not own the table (reactions.ts) or the work (push.ts).
 */
import { isTerminal } from '../domain/task.ts'
import type { TaskSettled } from '../machines/push.ts'
import type { Database } from '../persistence/database.ts'
import { findOutlived } from '../persistence/push.ts'
import type { Reaction, Reactions } from './reactions.ts'
import type { Runtime } from './runtime.ts'
import { ActorGone, type Spawn } from './step.ts'

/** Only a task that begins: whether its agent offers push is the first thing that its actor finds out. */
const beginPush: Reaction = (_batch, told) => {
  const spawns: Spawn[] = []
  for (const { organizationId, subjectId, fact } of told) {
    if (fact.type !== 'task.observed' || !fact.created || isTerminal(fact.state)) continue
    const ref = { kind: 'push', id: subjectId }
    spawns.push({ ref, lane: fact.agentId, isNew: true, organizationId, cause: 'reaction' })
  }
  return Promise.resolve({ spawns })
}

const endPush: Reaction = (_batch, told) =>
  Promise.resolve({
    sends: told.flatMap(({ subjectId, fact }) => {
      if (fact.type !== 'task.settled') return []
      const event: TaskSettled = { type: 'settled', pushed: fact.sources.includes('push') }
      return [{ ref: { kind: 'push', id: subjectId }, event }]
    }),
  })

export const pushReactions: Reactions = [
  ['task.observed', [beginPush]],
  ['task.settled', [endPush]],
]

const outlivedAtOnce = 500

/** Ends the push of tasks that were finished while push was not configured, so that nobody told it. */
export async function endOutlived(db: Database, runtime: Runtime, signal: AbortSignal): Promise<void> {
  let found: readonly string[]
  do {
    found = await findOutlived(db.pool, outlivedAtOnce)
    const event: TaskSettled = { type: 'settled', pushed: false }
    await Promise.all(found.map((id) => unlessGone(runtime.send({ kind: 'push', id }, event, 'reaction'))))
  } while (found.length === outlivedAtOnce && !signal.aborted)
}

/** Another process may have ended it first. */
async function unlessGone(sent: Promise<unknown>): Promise<void> {
  try {
    await sent
  } catch (error) {
    if (!(error instanceof ActorGone)) throw error
  }
}
