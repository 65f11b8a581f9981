/**
 * What the server answered last, by URL. Owns caching, refetching and "stale": a change signal refetches what somebody is
 * looking at and marks the rest. Never optimistic: only the server's own answers are put in.
 */
import { createAtom, type Atom, type ReadonlyAtom } from '@xstate/store'
import { type Api, type ApiFault, type Schema, faultOf } from './api.ts'
import { Sooner } from './sooner.ts'

export interface Answer<T> {
  /** The last good answer; kept while refreshing and after a failure. */
  readonly data: T | undefined
  /** Why the last attempt failed; undefined once one succeeds. */
  readonly fault: ApiFault | undefined
  readonly fetching: boolean
  /** When `data` came. */
  readonly at?: string
}

/**
 * `live`: a change signal refetches it. `steady`: only asked again by hand, for answers that cost the server an outbound request; and by a
 * signal where none was made, because of an outage that may be over.
 */
export type Freshness = 'live' | 'steady'

export interface Question<T> {
  readonly path: string
  readonly schema: Schema<T>
  readonly freshness: Freshness
  /** What is to be shown of what is known and what was fetched, which may have been asked for before the other came another way. */
  latest?(known: T, fetched: T): T
  /** Where the answer comes piece by piece, and may take seconds: asks for it, and puts in what is known `soFar`. Throws ApiFault. */
  ask?(api: Api, known: T | undefined, soFar: (data: T) => void, signal: AbortSignal): Promise<T>
  /** A question whose whole answer this one's is, too. */
  readonly sameAs?: Question<T>
}

const keptUnwatched = 60
/** Somebody who comes to a page again after this long gets steady answers anew. */
const steadyAgeMs = 30_000

/** Nobody else was asked: the console or its database did not answer. */
export const isOutage = (fault: ApiFault | undefined): boolean => fault?.kind === 'unreachable' || fault?.status === 503

/** The answer is not known for a reason that goes by: nobody need ask for it anew. */
const willPass = (fault: ApiFault | undefined): boolean => isOutage(fault) || fault?.status === 429

const now = (): string => new Date().toISOString()

const nothingYet: Answer<never> = { data: undefined, fault: undefined, fetching: false }

class Entry {
  readonly answer: Atom<Answer<unknown>> = createAtom<Answer<unknown>>(nothingYet)
  readonly question: Question<unknown>
  watchers = 0
  /** Fed by somebody else, who has something better than refetching: a task's own stream. */
  feeders = 0
  stale = true
  fetchedAt = -Infinity
  /** Grows when what was answered is forgotten: an answer that was asked for before must not come in after. */
  era = 0
  readonly next = new Sooner()
  cut = new AbortController()
  constructor(question: Question<unknown>) {
    this.question = question
  }

  latest(fetched: unknown): unknown {
    const { data } = this.answer.get()
    return data === undefined || !this.question.latest ? fetched : this.question.latest(data, fetched)
  }
}

export class Queries {
  readonly #api: Api
  readonly #entries = new Map<string, Entry>()
  #invalidating = false
  /** What the console last refused for too much. */
  #tooMuch: ApiFault | undefined

  constructor(api: Api) {
    this.#api = api
  }

  /** Keeps an answer current while somebody looks at it. Release it exactly once. */
  watch<T>(question: Question<T>): { answer: ReadonlyAtom<Answer<T>>; release(): void } {
    const entry = this.#entry(question)
    entry.watchers += 1
    const aged = entry.watchers === 1 && performance.now() - entry.fetchedAt > steadyAgeMs
    if (entry.stale || aged || entry.answer.get().fault) this.#fetchSoon(entry)
    return {
      // The entry was made by this question, so the atom holds answers of its schema; the map cannot say so.
      answer: entry.answer as ReadonlyAtom<Answer<T>>,
      release: () => {
        entry.watchers -= 1
        this.#forgetOldest()
      },
    }
  }

  peek<T>(question: Question<T>): Answer<T> {
    return this.#entry(question).answer.get() as Answer<T>
  }

  /** Puts in an answer that came another way; the caller vouches that it is the server's. */
  put<T>(question: Question<T>, data: T): void {
    const entry = this.#entry(question)
    entry.stale = false
    entry.answer.set({ ...entry.answer.get(), data, fault: undefined, at: now() })
  }

  /** While fed, change signals leave the entry alone. */
  feed<T>(question: Question<T>): () => void {
    const entry = this.#entry(question)
    entry.feeders += 1
    return () => {
      entry.feeders -= 1
      if (entry.feeders === 0 && entry.watchers > 0) this.#fetchSoon(entry)
    }
  }

  /** Asks again now, whoever is looking. What comes piece by piece is not read to its end for that: it is of before. */
  refresh(path: string): void {
    const entry = this.#entries.get(path)
    if (!entry) return
    entry.stale = true
    entry.cut.abort()
    if (entry.watchers > 0) this.#fetchSoon(entry)
  }

  forget(path: string): void {
    const entry = this.#entries.get(path)
    if (entry && entry.watchers === 0) this.#entries.delete(path)
  }

  /** The change signal. Many in one turn are one. A microtask, because hidden tabs run no animation frames. */
  invalidate(): void {
    if (this.#invalidating) return
    this.#invalidating = true
    queueMicrotask(() => {
      this.#invalidating = false
      for (const entry of this.#entries.values()) this.#wake(entry)
    })
  }

  /** What was answered is nobody's any more: another person is here, or none. */
  forgetAll(): void {
    for (const entry of this.#entries.values()) {
      entry.era += 1
      entry.stale = true
      entry.answer.set(nothingYet)
    }
  }

  /** Asks again for all that somebody looks at. */
  refetchAll(): void {
    for (const entry of this.#entries.values()) if (entry.watchers > 0) this.#fetchSoon(entry)
  }

  close(): void {
    for (const entry of this.#entries.values()) entry.next.clear()
    this.#entries.clear()
  }

  #wake(entry: Entry): void {
    const { fault } = entry.answer.get()
    if (entry.feeders > 0 || (entry.question.freshness === 'steady' && !willPass(fault))) return
    entry.stale = true
    if (entry.watchers > 0) this.#fetchSoon(entry, 'changed')
  }

  #entry<T>(question: Question<T>): Entry {
    const known = this.#entries.get(question.path)
    if (known) return known
    const entry = new Entry(question)
    this.#entries.set(question.path, entry)
    return entry
  }

  /** At a page's own pace, so that a busy console does not spend what a person may read a minute. */
  #fetchSoon(entry: Entry, why: 'asked' | 'changed' = 'asked'): void {
    if (entry.answer.get().fetching) return
    const { pace } = this.#api
    const waitMs = why === 'asked' ? pace.untilFreeMs(entry.fetchedAt) : pace.untilDueMs(entry.fetchedAt)
    this.#tellHeld(entry)
    // What is asked for does not wait for as long as what only changed, nor who looks again for as long as who did not.
    entry.next.within(waitMs, () => void this.#fetch(entry))
  }

  /** What is not asked for yet because too much was: nobody is to wait for a minute without a word. */
  #tellHeld(entry: Entry): void {
    const answer = entry.answer.get()
    if (!this.#api.pace.isHeld || !this.#tooMuch || answer.data !== undefined || answer.fault) return
    entry.answer.set({ ...answer, fault: this.#tooMuch })
  }

  async #fetch(entry: Entry): Promise<void> {
    const { question, era } = entry
    const { signal } = (entry.cut = new AbortController())
    const soFar = (data: unknown): void => {
      if (era === entry.era && !signal.aborted)
        entry.answer.set({ at: now(), ...entry.answer.get(), data, fault: undefined })
    }
    entry.stale = false
    entry.answer.set({ ...entry.answer.get(), fetching: true })
    try {
      const data = await (question.ask?.(this.#api, entry.answer.get().data, soFar, signal) ??
        this.#api.get(question.path, question.schema))
      if (era !== entry.era) return
      if (entry.feeders === 0 || entry.answer.get().data === undefined) {
        entry.answer.set({ data: entry.latest(data), fault: undefined, fetching: false, at: now() })
      } else entry.answer.set({ ...entry.answer.get(), fetching: false })
      if (question.sameAs) this.put(question.sameAs, data)
    } catch (error) {
      const fault = question.ask && signal.aborted ? undefined : faultOf(error)
      // Asked again by itself, once it may be.
      if (fault?.status === 429) {
        entry.stale = true
        this.#tooMuch = fault
      }
      if (era === entry.era) entry.answer.set({ ...entry.answer.get(), fault, fetching: false })
    } finally {
      entry.fetchedAt = performance.now()
      // A signal that came while we were asking may be newer than the answer.
      if (entry.stale && entry.watchers > 0) this.#fetchSoon(entry, 'changed')
    }
  }

  #forgetOldest(): void {
    const idle = [...this.#entries].filter(([, entry]) => entry.watchers === 0)
    for (const [path] of idle.slice(0, Math.max(0, idle.length - keptUnwatched))) this.#entries.delete(path)
  }
}
