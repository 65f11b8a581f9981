/**
 * Facts: what came out of a step, in the past tense. A fact is reacted to in the transaction that made it, and appended to
 * the outbox if it is news. Machines emit the small ones; whoever did the work tells `agent.reported`. Does not own what follows
 * from a fact (actors/reactions.ts).
 */
import type { EvidenceLook, LookedFor } from './evidence.ts'
import type { JsonText } from './json-text.ts'
import type { Observation } from './observation.ts'

/** How an agent's words reached us. `sent` are our own words, stored beside the agent's. */
export type Source = 'sent' | 'reply' | 'stream' | 'push' | 'poll'

/** Observations of one agent, in the order they were made. */
export interface Report {
  readonly agentId: string
  readonly tenant: string
  readonly source: Source
  /** The command that brought the reply; it may create a task, every other source speaks only of tasks that are known. */
  readonly command: ReportingCommand | null
  /** The agent's id of the task that a stream or a poll reads: events of any other are foreign. Null for a reply. */
  readonly remoteTaskId: string | null
  readonly observations: readonly Observation[]
  /**
   * The version of its task that was known when the agent was asked, where its answer counts whatever its clock says, unless more was
   * heard since. Absent where time decides.
   */
  readonly overrules?: number
  /** The same of whatever was asked for: what was heard of the task since is newer than what its answer shows. Absent where nothing was asked. */
  readonly asked?: number
  /** The task can be seen again, which is news to who had given it up, whatever else is. */
  readonly isSeenAgain?: true
  /**
   * It is told ahead of an answer, as a piece of its history (actors/long-history.ts). `of`: that answer's event, which may claim another skill.
   * Told from which version of its task to which one it led.
   */
  readonly ahead?: { readonly of: JsonText; readonly folded: (from: number, to: number) => void }
}

export interface ReportingCommand {
  readonly id: string
  readonly title: string | null
  readonly skillId: string | null
  readonly referenceTaskIds: readonly string[]
  /** What we sent, told together with the reply: it stands in the transcript only once it was delivered. */
  readonly sent: Observation | null
  /** The reply in its 1.0 shape, bytes replaced by references. */
  readonly reply: JsonText
  /**
   * The agent's name of the task that was spoken to, null for a first word: whoever answers with a message need not name it
   * [a2a.proto v1.0.1, Message.task_id is optional].
   */
  readonly continues: string | null
}

export type MachineFact =
  | { readonly type: 'command.accepted' }
  | { readonly type: 'command.discovered' }
  | { readonly type: 'command.succeeded' }
  | { readonly type: 'command.failed' }
  | { readonly type: 'command.uncertain' }
  | { readonly type: 'subscription.started' }
  | { readonly type: 'subscription.paused' }
  | { readonly type: 'subscription.finished' }
  | { readonly type: 'subscription.stopped'; readonly reason: string }
  | { readonly type: 'subscription.failing'; readonly reason: string }
  | { readonly type: 'subscription.recovered' }
  | { readonly type: 'reconciliation.woken' }
  | { readonly type: 'reconciliation.rested' }
  | { readonly type: 'reconciliation.failing'; readonly reason: string }
  | { readonly type: 'reconciliation.recovered' }
  | { readonly type: 'push.registered' }
  | { readonly type: 'push.stopped'; readonly reason: string }
  | { readonly type: 'task.claimed'; readonly membershipId: string }
  | { readonly type: 'task.released' }
  | { readonly type: 'task.assigned'; readonly membershipId: string }
  | { readonly type: 'task.due_set'; readonly dueAt: string }
  | { readonly type: 'task.due_cleared' }
  | { readonly type: 'task.fell_due' }

export type Fact =
  | MachineFact
  | { readonly type: 'agent.registered' }
  | { readonly type: 'agent.removed' }
  | { readonly type: 'agent.card_changed' }
  | { readonly type: 'agent.reported'; readonly report: Report }
  | {
      readonly type: 'task.observed'
      readonly state: string
      readonly version: number
      /** Every way in which this change was told; a reply among them means that a person was answered. */
      readonly sources: readonly Source[]
      readonly created: boolean
      /** The agent waits for a person, and not with the question that it had asked before. */
      readonly asksAnew: boolean
      /** It waited for a person before, as far as was known. */
      readonly wasAsking?: true
      readonly agentId: string
    }
  | {
      readonly type: 'task.settled'
      readonly state: string
      readonly sources: readonly Source[]
      /** Its own subscription told the end, and sees to what is left. */
      readonly byFollower: boolean
      /** What told the end may not be all that there is: a push, or an answer that shows nothing of what the task said and made. */
      readonly isPartial: boolean
      readonly created: boolean
      readonly agentId: string
    }
  /** A task that its agent does not know any more, or that is too large to be read. `taskId` is ours. */
  | {
      readonly type: 'reconciliation.unanswered'
      readonly taskId: string
      /** The task's when it was asked for: what was heard since makes the loss void. */
      readonly version: number
      readonly reason: string
      readonly oversized?: true
    }
  | { readonly type: 'task.lost'; readonly reason: string }
  /** Its agent shows it again, to which nobody had followed it any more. */
  | { readonly type: 'task.seen_again'; readonly state: string }
  /** Something that an agent pushed or streamed of a task claims another skill than the task's, and was not kept. */
  | { readonly type: 'task.crossed'; readonly source: Source }
  /** Somebody looked for an uncertain command at the agent; the command itself stays what it is. */
  | ({ readonly type: 'command.looked_for' } & LookedFor)
  /** A person decided what it means: here by sending again in its place (actors/settlement.ts tells the others). */
  | { readonly type: 'command.settled' }
  | { readonly type: 'command.evidence'; readonly outcome: EvidenceLook['outcome'] }

export type FactType = Fact['type']

/** A fact with what it is about. `subjectId` is the actor's, agent's or task's id. */
export interface ToldFact<F extends Fact = Fact> {
  readonly organizationId: string
  readonly subjectId: string
  readonly fact: F
}

/**
 * What the outbox keeps of a fact. Nothing of a report: what it changed is told by `task.observed`, and a report that changed
 * nothing (a poll, every fifteen seconds a task) is no news to anybody and must wake no browser. Nor of a look in vain, once an hour for a
 * month: the first tells `task.lost`.
 */
export function outboxData(fact: Fact): Record<string, unknown> | null {
  if (fact.type === 'agent.reported' || fact.type === 'reconciliation.unanswered') return null
  if (fact.type === 'command.looked_for') return { commandId: fact.commandId, outcome: fact.outcome }
  const { type: _, ...data } = fact
  return data
}
