/**
 * What one stream brings on its way into commits, one after the other: what is read while a commit is under way goes with the
 * next, up to a bound, and then the reader waits. So a stream of small events is not one commit a network packet (1 KB events:
 * 1.4 MB/s), and memory does not grow with an agent that talks faster than the database writes. Does not read or parse.
 */
import type { ParsedEvent, SeenEvent } from './threads/messages.ts'

/**
 * Characters that may wait; the reader is held back above. More was faster, but a commit of 1,000 small events kept a light
 * route waiting three times as long. A single event may be more, and is then alone with what waits.
 */
const waitingLimit = 256 * 1024

const weightOf = (events: readonly ParsedEvent[]): number =>
  events.reduce((sum, event) => sum + (event.kind === 'observation' ? lengthOf(event) : 0), 0)
const lengthOf = ({ observation, long }: SeenEvent): number => (long?.whole ?? observation.event).length

export class CommitQueue {
  readonly #commit: (events: readonly ParsedEvent[]) => Promise<void>
  readonly #tellFailure: () => void
  #waiting: ParsedEvent[] = []
  #weight = 0
  #underWay: Promise<void> | null = null
  #failure: { readonly error: unknown } | null = null

  /** `failed`: called when a commit fails, for a reader whose agent says nothing more would add nothing more either. */
  constructor(commit: (events: readonly ParsedEvent[]) => Promise<void>, failed: () => void = () => undefined) {
    this.#commit = commit
    this.#tellFailure = failed
  }

  /** Resolves when there is room for more. Rejects with what a commit before it failed with: nothing later is committed. */
  async add(events: readonly ParsedEvent[]): Promise<void> {
    this.#check()
    if (events.length > 0) {
      this.#waiting.push(...events)
      this.#weight += weightOf(events)
      this.#underWay ??= this.#run()
    }
    if (this.#weight >= waitingLimit) await this.#underWay
    this.#check()
  }

  /** Resolves when everything is committed. */
  async settled(): Promise<void> {
    await this.#underWay
    this.#check()
  }

  /** Never rejects: why it failed is told to whoever adds or waits next. */
  async #run(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const events = this.#waiting.splice(0)
        this.#weight = 0
        await this.#commit(events)
      }
    } catch (error) {
      this.#failure = { error }
      this.#tellFailure()
    }
    this.#underWay = null
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error
  }
}
