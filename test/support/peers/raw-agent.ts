/**
 * A small A2A 1.0 agent of our own: tasks in memory and the turns of behaviours.ts. Owns what the agent knows and says.
 * Does not own HTTP (raw.ts), framing (raw-stream.ts) or faults. It shares no code with the product: a suspect is no
 * witness.
 */
import { randomUUID } from 'node:crypto'
import { perform, stateOf1_0, type PlotPart, type Stage } from './behaviours.ts'
import { recordOf } from './operations.ts'
import type { Stagehand } from './peer.ts'
import type { WireEvent } from './raw-stream.ts'

interface RawTask {
  readonly id: string
  readonly contextId: string
  status: { readonly state: string; readonly timestamp: string; readonly message?: unknown }
  readonly artifacts: { artifactId: string; name: string; parts: PlotPart[] }[]
  readonly history: unknown[]
}

/** Something that hears what happens to a task. */
export type Listener = (event: WireEvent) => void

export interface RawAgent {
  readonly tasks: ReadonlyMap<string, RawTask>
  /** Plays a turn. Resolves when it ended or waits; `listen` hears all of it from the first event on. */
  send(message: Record<string, unknown>, listen: Listener): Promise<WireEvent>
  /** The task, cancelled; undefined when unknown. A finished task stays as it is. */
  cancel(taskId: string): RawTask | undefined
  subscribe(taskId: string, listen: Listener): () => void
  /** Says something to all who listen to a task, true or not. */
  emit(taskId: string, event: WireEvent): void
}

export const isTerminal = (state: string): boolean => /COMPLETED|FAILED|CANCELED|REJECTED/.test(state)
export const isEnd = (state: string): boolean => isTerminal(state) || /REQUIRED/.test(state)

/** Tasks beyond this are forgotten, the oldest first: a load test must not grow the test process. */
const tasksLimit = 20_000

export function openRawAgent(script: Stagehand): RawAgent {
  const tasks = new Map<string, RawTask>()
  const listeners = new Map<string, Set<Listener>>()
  const turns = new Map<string, AbortController>()

  const emit = (taskId: string, event: WireEvent): void => {
    for (const listen of listeners.get(taskId) ?? []) listen(event)
  }
  const subscribe = (taskId: string, listen: Listener): (() => void) => {
    const all = listeners.get(taskId) ?? new Set()
    listeners.set(taskId, all.add(listen))
    return () => {
      all.delete(listen)
      if (all.size === 0) listeners.delete(taskId)
    }
  }
  const setStatus = (task: RawTask, state: string, text?: string): void => {
    if (isTerminal(task.status.state)) return
    const said = text === undefined ? {} : { message: agentMessage(text, task) }
    task.status = { state, timestamp: new Date().toISOString(), ...said }
    emit(task.id, { statusUpdate: { taskId: task.id, contextId: task.contextId, status: task.status } })
  }

  return {
    tasks,
    emit,
    subscribe,
    async send(message, listen) {
      const known = tasks.get(String(message['taskId'] ?? ''))
      const task = known ?? newTask(message)
      task.history.push(message)
      if (!known) remember(tasks, task)
      const cancelled = new AbortController()
      turns.set(task.id, cancelled)
      let direct: WireEvent | undefined
      const stage = stageOn(
        task,
        { known: known !== undefined, setStatus, emit },
        {
          hold: () => script.holdTurn(cancelled.signal),
          direct: (text) => {
            direct = { message: agentMessage(text, { contextId: task.contextId }) }
            tasks.delete(task.id)
            listen(direct)
          },
        },
      )
      const text = textOf(message)
      if (text.trim() !== 'direct') listen({ task: snapshot(task) })
      const unsubscribe = subscribe(task.id, listen)
      await perform(text, stage)
      unsubscribe()
      turns.delete(task.id)
      return direct ?? { task: snapshot(task) }
    },
    cancel(taskId) {
      const task = tasks.get(taskId)
      if (!task) return undefined
      setStatus(task, 'TASK_STATE_CANCELED')
      turns.get(taskId)?.abort()
      return task
    },
  }
}

interface Effects {
  readonly known: boolean
  setStatus(task: RawTask, state: string, text?: string): void
  emit(taskId: string, event: WireEvent): void
}

function stageOn(task: RawTask, effects: Effects, own: Pick<Stage, 'hold' | 'direct'>): Stage {
  return {
    isReply: effects.known,
    ...own,
    status: (state, text) => effects.setStatus(task, stateOf1_0(state), text),
    artifact({ artifactId, name, parts }, place) {
      const old = task.artifacts.find((a) => a.artifactId === artifactId)
      if (old && place?.append) old.parts.push(...parts)
      else task.artifacts.push({ artifactId, name, parts: [...parts] })
      const chunk = { append: place?.append ?? false, lastChunk: place?.last ?? true }
      const { id: taskId, contextId } = task
      effects.emit(taskId, { artifactUpdate: { taskId, contextId, artifact: { artifactId, name, parts }, ...chunk } })
    },
  }
}

function newTask(message: Record<string, unknown>): RawTask {
  const contextId = typeof message['contextId'] === 'string' ? message['contextId'] : randomUUID()
  const status = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() }
  return { id: randomUUID(), contextId, status, artifacts: [], history: [] }
}

function remember(tasks: Map<string, RawTask>, task: RawTask): void {
  tasks.set(task.id, task)
  const [oldest] = tasks.keys()
  if (tasks.size > tasksLimit && oldest !== undefined) tasks.delete(oldest)
}

const snapshot = (task: RawTask): RawTask => structuredClone(task)

const agentMessage = (text: string, place: { id?: string; contextId: string }) => ({
  messageId: randomUUID(),
  role: 'ROLE_AGENT',
  parts: [{ text }],
  contextId: place.contextId,
  ...(place.id === undefined ? {} : { taskId: place.id }),
})

function textOf(message: Record<string, unknown>): string {
  const parts: unknown = message['parts']
  if (!Array.isArray(parts)) return ''
  return parts.map((part: unknown) => String(recordOf(part)['text'] ?? '')).join('')
}
