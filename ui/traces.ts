/** Trace events of tasks, as long as this page lives: the server sends them once and the console shows them beside the task. */
import { createAtom, type Atom, type ReadonlyAtom } from '@xstate/store'
import type { TaskArtifact } from '../domain/task.ts'
import type { CardFacts } from './card.ts'
import type { TraceEvent } from './task-stream.ts'

/** The two sideband extensions this console understands. */
const traceUris: readonly string[] = ['urn:agent-observability:sideband-events:v1', 'urn:x-a2a:trace:v1']

export const tellsTrace = (card: CardFacts | undefined): boolean =>
  card?.extensions.some(({ uri }) => traceUris.includes(uri)) === true

/**
 * The trace extension carries its events as artifacts named after their type. Beside the trace they would be noise: one
 * answer of a chatty agent has dozens. One in which it says that something is not shown says so nowhere else.
 */
export const isTraceArtifact = ({ artifactId, name, parts }: TaskArtifact): boolean =>
  name !== undefined &&
  /^trace\.[\w.]+$/.test(name) &&
  artifactId.startsWith(name) &&
  !parts.some(({ kind }) => kind === 'unknown')

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

  clear(): void {
    this.#byTask.clear()
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
