/**
 * What is known of a task's agent besides what the task says: its card, and whether it was removed, after which nothing can be sent to
 * it. The list of agents says the former and may be older than the agent, so whoever is not in it is asked for.
 */
import type { LitElement } from 'lit'
import type { TaskView } from '../../domain/task.ts'
import type { App } from '../app.ts'
import { type CardFacts, readCard } from '../card.ts'
import { type AgentDetail, type AgentList, agentQuestion, agentsQuestion } from '../agent-questions.ts'
import { Query } from './query.ts'

export class TaskAgent {
  readonly #agents: Query<AgentList>
  readonly #unlisted: Query<AgentDetail>
  readonly #task: () => TaskView | undefined

  constructor(host: LitElement, app: () => App | undefined, task: () => TaskView | undefined) {
    this.#task = task
    const from = <T>(question: T) => {
      const queries = app()?.queries
      return queries && { queries, question }
    }
    this.#agents = new Query(host, () => from(agentsQuestion))
    this.#unlisted = new Query(host, () => {
      const agentId = task()?.agentId
      if (agentId === undefined || !this.#agents.data || this.#listed) return undefined
      // What it answered before it went is not asked again by itself; while this is watched, it is kept.
      app()?.queries.forget(agentQuestion(agentId).path)
      return from(agentQuestion(agentId))
    })
  }

  get #listed(): AgentList['agents'][number] | undefined {
    return this.#agents.data?.agents.find(({ id }) => id === this.#task()?.agentId)
  }

  /** Undefined until the agents are known. */
  get card(): CardFacts | undefined {
    return readCard(this.#listed?.card)
  }

  get isRemoved(): boolean {
    return this.#unlisted.answer.fault?.status === 404
  }
}
