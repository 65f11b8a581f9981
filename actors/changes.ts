/**
 * Who wants to know that something was committed. A change only shortens a wait: whoever waits reads the committed state
 * again. Commits of this process are published at once; those of others when the freshness token moves (system.ts).
 */
export interface Change {
  /** Null: some process changed something, somewhere. */
  readonly organizationId: string | null
  /** Ids of the actors, tasks and agents that moved; empty where nobody knows. */
  readonly subjects: ReadonlySet<string>
}

export class Changes {
  readonly #heard = new Set<(change: Change) => void>()

  /** Calls `heard` after each commit until the returned function is called. `heard` must not throw. */
  subscribe(heard: (change: Change) => void): () => void {
    this.#heard.add(heard)
    return () => void this.#heard.delete(heard)
  }

  publish(change: Change): void {
    for (const heard of this.#heard) heard(change)
  }

  /** The next change, or the signal's abort. Ask before reading, await after: nothing falls in between. */
  next(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (signal.aborted) return Promise.resolve()
    const done = (): void => {
      stop()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const stop = this.subscribe(done)
    signal.addEventListener('abort', done, { once: true })
    return promise
  }
}
