/**
 * The groups of one connection, one after the other: the next is written when the server is ready for it, and whatever is asked
 * for meanwhile goes as one. node-postgres 8 would queue a second query by itself; version 9 will not, and its pipeline mode
 * takes no queries but its own [node-postgres 8.23, lib/client.js: `query`]. Nothing is lost by it: what belongs together
 * leaves as one group, and the server answers groups in order anyway. Does not open or end the connection.
 */
import pg from 'pg'
import { StatementGroup, type GroupedStatement, type Prepared } from './statement-group.ts'

export class GroupLine {
  readonly #client: pg.Client
  readonly #prepared: Prepared
  #waiting: GroupedStatement[] = []
  #underWay = false
  #idle: (() => void)[] = []
  /** Called when the line is in nobody knows what state: it failed by anything but a server's report. */
  readonly #broken: () => void

  constructor(client: pg.Client, prepared: Prepared, broken: () => void = () => undefined) {
    this.#client = client
    this.#prepared = prepared
    this.#broken = broken
  }

  get isIdle(): boolean {
    return !this.#underWay
  }

  /** Resolves when the server is ready for whoever comes next, or the line is gone. The last answer may come before that. */
  idle(): Promise<void> {
    return this.#underWay ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve()
  }

  send(statements: readonly GroupedStatement[]): void {
    this.#waiting.push(...statements)
    if (!this.#underWay) this.#leave()
  }

  #leave(): void {
    const statements = this.#waiting
    this.#waiting = []
    this.#underWay = true
    const group = new StatementGroup(statements, this.#prepared)
    group.callback = (error) => this.#ended(error)
    this.#client.query(group)
  }

  #ended(error: Error | undefined): void {
    if (!error) return this.#next()
    if (error instanceof pg.DatabaseError) return this.#afterReport()
    this.#broken()
    // What waits is sent all the same: an ended client says no to it at once, and so everybody hears of it.
    this.#next()
  }

  /** The server has told of a failure, and reads again once it has said that it is ready; then, or when it hangs up. */
  #afterReport(): void {
    const ready = (): void => {
      this.#client.off('drain', ready)
      this.#client.off('end', ready)
      this.#next()
    }
    this.#client.on('drain', ready)
    this.#client.on('end', ready)
  }

  #next(): void {
    this.#underWay = false
    if (this.#waiting.length > 0) return this.#leave()
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
