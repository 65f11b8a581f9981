/**
 * What was said about a task and is not delivered, or may not be, as it stands now: a question of its own, for while the task's own stream
 * feeds the page nothing refetches what is beside it. Keeps what a person is settling on the page until they are done with it.
 */
import type { LitElement, ReactiveController } from 'lit'
import * as z from 'zod/mini'
import { Command } from '../../domain/command.ts'
import type { App } from '../app.ts'
import { withBeingSettled } from '../elements/settle-send.ts'
import type { Question } from '../queries.ts'
import { Query } from './query.ts'

const Answer = z.object({ commands: z.array(Command) })
type Answer = z.infer<typeof Answer>

const commandsQuestion = (localId: string): Question<Answer> => ({
  path: `/api/tasks/${encodeURIComponent(localId)}/commands`,
  schema: Answer,
  freshness: 'live',
})

/** Whose commands are wanted. */
interface Asked {
  readonly app: App
  readonly localId: string
}

export class TaskCommands implements ReactiveController {
  readonly #host: LitElement
  readonly #ask: () => Asked | undefined
  readonly #query: Query<Answer>
  #shown: readonly Command[] = []

  constructor(host: LitElement, ask: () => Asked | undefined) {
    this.#host = host
    this.#ask = ask
    this.#query = new Query(host, () => {
      const asked = ask()
      return asked && { queries: asked.app.queries, question: commandsQuestion(asked.localId) }
    })
    host.addController(this)
  }

  hostConnected(): void {}

  /** `known`: those that came with the task, until its own are asked for. */
  shown(known: readonly Command[]): readonly Command[] {
    const fresh = this.#query.data?.commands ?? known
    this.#shown = withBeingSettled(this.#host.renderRoot, this.#shown, fresh, ({ createdAt }) => createdAt)
    return this.#shown
  }

  /** One is settled: it goes at once, and not with the next answer. */
  settled(commandId: string): void {
    const asked = this.#ask()
    const commands = this.#shown.filter(({ id }) => id !== commandId)
    asked?.app.queries.put(commandsQuestion(asked.localId), { commands })
    this.#host.requestUpdate()
  }
}
