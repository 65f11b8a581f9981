/**
 * Who wants to know that something was committed. A change only shortens a wait: whoever waits reads the committed state
 * again. Commits of this process are published at once, others' when they are seen (../freshness.ts).
 */
export interface Change {
  /** Null: some process changed something, somewhere. */
  readonly organizationId: string | null
  readonly subjects: Subjects
  /** It may be of anybody, which was told before, and is once more when everybody is known again. */
  readonly goesOn?: true
  /** The acknowledged commit of this process that it tells of; null where it was seen by looking. */
  readonly commit: Commit | null
}

/** Somebody moved, and nobody knows who: it may be any. No set, so that whoever looks for somebody has to ask. */
export const anybody = Symbol('anybody')

/** Ids of the actors, tasks and agents that moved, of people whose access did, or `anybody`. */
export type Subjects = ReadonlySet<string> | typeof anybody

/** Whether it moved, or may have. */
export const concerns = (subjects: Subjects, id: string): boolean => subjects === anybody || subjects.has(id)

export interface Commit {
  /** Names its facts in the outbox. */
  readonly batchId: string
  /** Kinds of actors of which it left something due in its row, for whoever has room. */
  readonly leftDue: ReadonlySet<string>
  /** How many facts of each kind it appended; absent where nobody says. */
  readonly facts?: ReadonlyMap<string, number>
}

const unheard = (error: unknown): void =>
  queueMicrotask(() => {
    throw error
  })

export class Changes {
  readonly #heard = new Set<(change: Change) => void>()
  readonly #failed: (error: unknown) => void

  /** `failed`: told of a listener that threw, a defect. Where nobody is told it is the process's unhandled error. */
  constructor(failed: (error: unknown) => void = unheard) {
    this.#failed = failed
  }

  /** How many wait. */
  get listeners(): number {
    return this.#heard.size
  }

  /** Calls `heard` after each commit until the returned function is called. */
  subscribe(heard: (change: Change) => void): () => void {
    this.#heard.add(heard)
    return () => void this.#heard.delete(heard)
  }

  /** Never throws: what is told of has happened, and one listener's defect is neither its teller's nor the others'. */
  publish(change: Change): void {
    for (const heard of this.#heard) {
      try {
        heard(change)
      } catch (error) {
        this.#failed(error)
      }
    }
  }
}
