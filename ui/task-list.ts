/**
 * The rows of the task list. Owns the promise that rows never move under a pointer: what is shown is updated in place, what is
 * new waits until a person asks for it, and what no longer fits the filter stays, in its new state, until the filter is left.
 */
import { createAtom, type ReadonlyAtom } from '@xstate/store'
import type { TaskFilter, TaskRow } from '../domain/task.ts'
import { type ApiFault, faultOf } from './api.ts'
import type { App } from './app.ts'
import { TaskPage, tasksPath } from './questions.ts'
import { Sooner } from './sooner.ts'

export interface TaskListState {
  readonly filter: TaskFilter
  /** In the order shown. Undefined until the first answer for this filter. */
  readonly rows: readonly TaskRow[] | undefined
  /** New rows that wait to be shown. */
  readonly arrived: number
  /** Older rows than these exist. */
  readonly more: boolean
  readonly fetching: boolean
  readonly fault: ApiFault | undefined
}

const pageSize = 50
/** The largest page the server gives. */
const requestSize = 100
/** Beyond this a list is no longer for reading: the filter is. */
export const rowLimit = 500
/** After a failure it is asked again by itself, later each time and not by every page at once. */
const backoffMs = { first: 1_000, last: 30_000 }

export class TaskList {
  readonly #app: App
  readonly #state = createAtom<TaskListState>(fresh('all'))
  readonly #stopLive: () => void
  #wanted = pageSize
  readonly #next = new Sooner()
  #retry: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #fetchedAtMs = -Infinity
  #again = false
  #closed = false
  #latest: readonly TaskRow[] = []

  constructor(app: App) {
    this.#app = app
    this.#stopLive = app.live.onChange(() => this.refresh())
  }

  get state(): ReadonlyAtom<TaskListState> {
    return this.#state
  }

  /** Called with every drawing of the list: what is asked for, there, or failed is not asked for again by it. */
  filter(filter: TaskFilter): void {
    const state = this.#state.get()
    if (state.filter === filter && (state.rows || state.fetching || state.fault)) return
    this.#wanted = pageSize
    this.#failures = 0
    this.#state.set(fresh(filter))
    void this.#fetch()
  }

  more(): void {
    this.#wanted = Math.min(rowLimit, this.#wanted + pageSize)
    void this.#fetch()
  }

  /** Puts everything where the server has it. */
  showArrived(): void {
    this.#state.set({ ...this.#state.get(), rows: this.#latest, arrived: 0 })
  }

  /** A person made or opened this task themselves, so its row may come in at once. */
  reveal(localId: string): void {
    const { rows } = this.#state.get()
    if (rows?.some((row) => row.localId === localId)) return
    if (this.#latest.some((row) => row.localId === localId)) this.showArrived()
  }

  /** Many calls in short order are one request. */
  refresh(): void {
    if (this.#closed) return
    this.#next.within(this.#app.api.pace.untilDueMs(this.#fetchedAtMs), () => void this.#fetch())
  }

  close(): void {
    this.#closed = true
    this.#next.clear()
    clearTimeout(this.#retry)
    this.#stopLive()
  }

  async #fetch(): Promise<void> {
    const { filter, fetching } = this.#state.get()
    if (fetching) {
      this.#again = true
      return
    }
    clearTimeout(this.#retry)
    this.#state.set({ ...this.#state.get(), fetching: true })
    try {
      const latest = await this.#rows(filter, this.#wanted)
      const strays = await this.#strays(filter, latest)
      this.#failures = 0
      if (this.#state.get().filter === filter) this.#merge(latest, strays)
    } catch (error) {
      this.#failed(filter, faultOf(error))
    }
    this.#fetchedAtMs = performance.now()
    const answered = this.#state.get()
    if (answered.filter !== filter || this.#again) {
      this.#again = false
      this.#state.set({ ...answered, fetching: false })
      this.refresh()
    }
  }

  #failed(filter: TaskFilter, fault: ApiFault): void {
    const state = this.#state.get()
    if (state.filter !== filter) return
    this.#state.set({ ...state, fetching: false, fault })
    if (this.#closed || fault.kind === 'signed-out') return
    const waitMs = Math.min(backoffMs.last, backoffMs.first * 2 ** this.#failures)
    this.#failures += 1
    // Nobody looks: coming back asks (live.ts).
    const again = (): void => void (document.visibilityState === 'visible' && this.refresh())
    this.#retry = setTimeout(again, waitMs * (0.75 + Math.random() / 2))
  }

  async #rows(filter: TaskFilter, wanted: number): Promise<TaskRow[]> {
    const rows = new Map<string, TaskRow>()
    for (let offset = 0; offset < wanted; offset += requestSize) {
      const limit = Math.min(requestSize, wanted - offset)
      const { tasks } = await this.#app.api.get(tasksPath(filter, limit, offset), TaskPage)
      // Rows shift between two pages when something new comes in at the top; the same row twice is one.
      for (const row of tasks) rows.set(row.localId, row)
      if (tasks.length < limit) break
    }
    return [...rows.values()]
  }

  /** Shown rows that the filter no longer gives: how they are now, so that "Working" is not left standing on a finished task. */
  async #strays(filter: TaskFilter, latest: readonly TaskRow[]): Promise<readonly TaskRow[]> {
    const { rows } = this.#state.get()
    if (!rows || filter === 'all') return []
    const known = new Set(latest.map(({ localId }) => localId))
    if (rows.every(({ localId }) => known.has(localId))) return []
    return this.#rows('all', requestSize)
  }

  #merge(latest: readonly TaskRow[], strays: readonly TaskRow[]): void {
    this.#latest = latest
    const state = this.#state.get()
    const settled = {
      fetching: false,
      fault: undefined,
      more: latest.length >= this.#wanted && this.#wanted < rowLimit,
    }
    if (!state.rows) {
      this.#state.set({ ...state, ...settled, rows: latest, arrived: 0 })
      return
    }
    const now = new Map([...strays, ...latest].map((row) => [row.localId, row]))
    const shown = new Set(state.rows.map(({ localId }) => localId))
    const lastShown = latest.findLastIndex(({ localId }) => shown.has(localId))
    const unseen = latest.filter(({ localId }) => !shown.has(localId))
    // Below the last shown row nothing moves, so older rows may come in by themselves.
    const below = unseen.filter((row) => latest.indexOf(row) > lastShown)
    const rows = [...state.rows.map((row) => now.get(row.localId) ?? row), ...below]
    const first = state.rows.length === 0
    this.#state.set({
      ...state,
      ...settled,
      rows: first ? latest : rows,
      arrived: first ? 0 : unseen.length - below.length,
    })
  }
}

const fresh = (filter: TaskFilter): TaskListState => ({
  filter,
  rows: undefined,
  arrived: 0,
  more: false,
  fetching: false,
  fault: undefined,
})
