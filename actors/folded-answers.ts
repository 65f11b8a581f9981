/**
 * Answers of agents that changed nothing, so that they need not be told again: told every fifteen seconds, of a task that may wait for a
 * person for a week, each would be a transaction. Owns what is remembered; does not tell (reconciliation-looks.ts).
 */
import { remember } from './remember.ts'

/** A few hundred bytes each. */
const remembered = 10_000

export class FoldedAnswers {
  readonly #told = new Map<string, { readonly answer: string; readonly isFolded: boolean }>()

  /**
   * Whether the answer was told at this version of the task, and once more: the second time it changed nothing. Once is no proof: a
   * database that went back, as by a failover, may be at that version again and know nothing of it.
   */
  has(taskId: string, version: number, digest: string): boolean {
    const last = this.#told.get(taskId)
    return last?.answer === `${version} ${digest}` && last.isFolded
  }

  /** It was told, and is committed as far as anybody here knows. */
  add(taskId: string, version: number, digest: string): void {
    const answer = `${version} ${digest}`
    remember(this.#told, taskId, { answer, isFolded: this.#told.get(taskId)?.answer === answer }, remembered)
  }

  forget(taskId: string): void {
    this.#told.delete(taskId)
  }
}
