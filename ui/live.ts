/**
 * The signal that something changed: one `EventSource` per origin, whichever tab holds it. HTTP/1.1 allows a browser six
 * connections to a host, so tabs elect a leader by a Web Lock and the others hear through a BroadcastChannel. Where
 * locks are missing (plain HTTP off loopback) every tab holds its own. Owns the connection's state; carries no content.
 */
import { createAtom, type ReadonlyAtom } from '@xstate/store'

/** `no-database`: the console answers, and says that its database does not. */
export type LiveState = 'connecting' | 'live' | 'reconnecting' | 'no-database' | 'offline' | 'signed-out'

/** The server closes the stream after 55 s on purpose; only a longer silence is worth a word. */
const patienceMs = 3_000
/** A stream that was opened, or doubted, within this time is not doubted. */
const trustMs = 10_000
const backoffMs = { first: 1_000, last: 30_000 }

type Tell = { readonly state: LiveState } | { readonly changed: true } | { readonly ask: true }

export class Live {
  readonly #url: string
  readonly #sessionUrl: string
  readonly #state = createAtom<LiveState>('connecting')
  readonly #listeners = new Set<() => void>()
  readonly #closed = new AbortController()
  readonly #channel: BroadcastChannel
  #source: EventSource | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #next: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #trustedMs = 0
  /** What it is while the stream is away. */
  #lost: LiveState = 'reconnecting'

  constructor(prefix: string) {
    this.#url = `${prefix}/api/tasks/events`
    this.#sessionUrl = `${prefix}/api/auth/session`
    this.#channel = new BroadcastChannel(`signalbox ${this.#url}`)
  }

  /** Readable and subscribable: `get()`, `subscribe()`. */
  get state(): ReadonlyAtom<LiveState> {
    return this.#state
  }

  /** Called, without content, whenever something may have changed. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  open(): void {
    const until = { signal: this.#closed.signal }
    this.#channel.addEventListener('message', (event: MessageEvent<Tell>) => this.#hear(event.data), until)
    addEventListener('online', () => this.#retryNow(), until)
    addEventListener('offline', () => this.#become('offline'), until)
    document.addEventListener('visibilitychange', () => this.#woken(), until)
    if (!navigator.onLine) this.#become('offline')
    if (!('locks' in navigator)) return this.#connect()
    this.#channel.postMessage({ ask: true } satisfies Tell)
    this.#lead().catch((error: unknown) => {
      if (!this.#closed.signal.aborted) throw error
    })
  }

  close(): void {
    this.#closed.abort()
    this.#source?.close()
    clearTimeout(this.#timer)
    this.#channel.close()
    this.#listeners.clear()
  }

  /** The session is over: the other tabs need not wait until the server ends their stream. */
  end(): void {
    if (this.#state.get() === 'signed-out') return
    this.#become('signed-out')
    this.#channel.postMessage({ state: 'signed-out' } satisfies Tell)
  }

  /** After signing in again: the leader of the tabs connects anew. */
  retry(): void {
    this.#failures = 0
    if (this.#source) this.#retryNow()
    else this.#channel.postMessage({ ask: true } satisfies Tell)
  }

  /** An answer said that the database is away: the stream may be open still, and tell of nothing. */
  doubt(): void {
    if (this.#state.get() !== 'live' || performance.now() - this.#trustedMs < trustMs) return
    this.#trustedMs = performance.now()
    this.#retryNow()
  }

  async #lead(): Promise<void> {
    const { signal } = this.#closed
    await navigator.locks.request(`signalbox ${this.#url}`, { signal }, () => {
      this.#connect()
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    })
  }

  #connect(): void {
    this.#source?.close()
    const source = new EventSource(this.#url)
    this.#source = source
    this.#loseSoon()
    source.addEventListener('ready', () => this.#ready())
    // What it says in its silences, `resync`, is no news: no commit goes untold, and each minute's new stream asks for all again.
    source.addEventListener('freshness', () => this.#spread())
    source.addEventListener('error', () => {
      this.#loseSoon()
      // A non-200 answer ends an EventSource for good; a dropped connection it retries by itself.
      if (source.readyState === EventSource.CLOSED) void this.#reconnect()
    })
  }

  /** Back in front: ask again, and if the session had ended it may have been renewed in another tab. */
  #woken(): void {
    if (document.visibilityState !== 'visible') return
    this.#changed()
    if (this.#state.get() === 'signed-out') this.retry()
  }

  #ready(): void {
    this.#failures = 0
    this.#trustedMs = performance.now()
    this.#lost = 'reconnecting'
    this.#become('live')
    this.#channel.postMessage({ state: 'live' } satisfies Tell)
    this.#spread()
  }

  /** Trying again does not begin the patience anew: only being connected ends it. */
  #loseSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const state = navigator.onLine ? this.#lost : 'offline'
      this.#become(state)
      this.#channel.postMessage({ state } satisfies Tell)
    }, patienceMs)
  }

  /** Asks the session why the stream was refused, then waits longer each time. */
  async #reconnect(): Promise<void> {
    const { signal } = this.#closed
    const status = await fetch(this.#sessionUrl, { signal }).then(
      (response) => response.status,
      () => 0,
    )
    if (signal.aborted) return
    if (status === 401) {
      this.#become('signed-out')
      this.#channel.postMessage({ state: 'signed-out' } satisfies Tell)
      return
    }
    this.#lost = status === 503 ? 'no-database' : 'reconnecting'
    const waitMs = Math.min(backoffMs.last, backoffMs.first * 2 ** this.#failures)
    this.#failures += 1
    clearTimeout(this.#next)
    this.#next = setTimeout(() => !signal.aborted && this.#connect(), waitMs)
  }

  #retryNow(): void {
    if (this.#state.get() === 'offline') this.#become('reconnecting')
    if (this.#source) this.#connect()
  }

  #hear(tell: Tell): void {
    if ('changed' in tell) this.#changed()
    else if ('state' in tell) this.#become(tell.state)
    else if (this.#source) {
      if (this.#state.get() === 'signed-out') this.#connect()
      this.#channel.postMessage({ state: this.#state.get() } satisfies Tell)
    }
  }

  #spread(): void {
    this.#channel.postMessage({ changed: true } satisfies Tell)
    this.#changed()
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }

  #become(state: LiveState): void {
    if (state === 'live' || state === 'signed-out') {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    this.#state.set(state)
  }
}
