/** Trace events of tasks, as long as this page lives: the server sends them once and the console shows them beside the task. */
import { createAtom, type Atom, type ReadonlyAtom } from '@xstate/store'
import type { TraceEvent } from './task-stream.ts'

const keptEvents = 1_000
const keptTasks = 20

export class Traces {
  readonly #byTask = new Map<string, Atom<readonly TraceEvent[]>>()

  of(localId: string): ReadonlyAtom<readonly TraceEvent[]> {
    return this.#atom(localId)
  }

  /** In order of time; an event that is told twice is one. */
  add(localId: string, event: TraceEvent): void {
    const atom = this.#atom(localId)
    const known = atom.get()
    if (known.some(({ id }) => id === event.id)) return
    const ordered = [...known, event].toSorted((a, b) => a.timestamp.localeCompare(b.timestamp))
    atom.set(ordered.slice(-keptEvents))
  }

  #atom(localId: string): Atom<readonly TraceEvent[]> {
    const known = this.#byTask.get(localId)
    if (known) return known
    const atom = createAtom<readonly TraceEvent[]>([])
    this.#byTask.set(localId, atom)
    const oldest = this.#byTask.keys().next()
    if (this.#byTask.size > keptTasks && !oldest.done) this.#byTask.delete(oldest.value)
    return atom
  }
}
