/**
 * The tasks of one demo agent, in memory and bounded: 1,000 tasks and 10 MB, the least recently used go first. Owns the
 * life of a task: one writer at a time, work that goes on when the client leaves, listeners that all hear the same
 * events in the same order. Does not own HTTP (serve.ts) or what is said in a turn (the agents).
 */
import { randomUUID } from 'node:crypto'
import { Declined } from '../../a2a/server-errors.ts'
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../../a2a/messages.ts'
import { isTerminal, isWaiting } from '../../domain/task.ts'
import type { DemoAgent, Question, Turn } from './turn.ts'

const limits = { tasks: 1_000, bytes: 10 * 1024 * 1024, running: 100 } as const

interface Kept {
  readonly task: Task & { contextId: string; history: Message[]; artifacts: Artifact[] }
  readonly listeners: Set<(event: StreamResponse) => void>
  /** Present while a turn is played. */
  turn: { readonly cancelled: AbortController; readonly played: Promise<void> } | undefined
  bytes: number
}

export interface Asked {
  readonly message: Message
  readonly extensions: ReadonlySet<string>
}

interface Playing extends Asked {
  readonly answers: Question | null
  readonly signal: AbortSignal
}

export class TaskBook {
  /** Insertion order is the order of use, the least recent first. */
  readonly #kept = new Map<string, Kept>()
  readonly #agent: DemoAgent
  #bytes = 0
  #running = 0

  constructor(agent: DemoAgent) {
    this.#agent = agent
  }

  /**
   * Starts a turn, of a new task or of one that waits, and returns its task; `played` resolves when the turn has
   * settled.
   */
  send(asked: Asked, listen?: (event: StreamResponse) => void): { task: Task; played: Promise<void> } {
    if (this.#running >= limits.running)
      throw new Declined('UNSUPPORTED_OPERATION', 'Too many tasks are being worked on; try again later.')
    const kept = this.#taskFor(asked.message)
    if (kept.turn) throw new Declined('UNSUPPORTED_OPERATION', 'The task is being worked on; it takes no message now.')
    const { id: taskId, contextId, history, status } = kept.task
    const answers = questionIn(status.state)
    replaceStatus(kept.task, { state: answers ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED', timestamp: now() })
    history.push({ ...asked.message, taskId, contextId })
    this.#grow(kept, asked.message)
    if (listen) {
      kept.listeners.add(listen)
      listen({ task: snapshot(kept.task) })
    }
    const cancelled = new AbortController()
    const played = this.#play(kept, { ...asked, answers, signal: cancelled.signal })
    kept.turn = { cancelled, played }
    return { task: snapshot(kept.task), played }
  }

  /** A copy of the task. Throws Declined when it is unknown or already forgotten. */
  get(id: string): Task {
    return snapshot(this.#find(id).task)
  }

  /** All tasks, unordered. The caller copies what it keeps. */
  all(): readonly Task[] {
    return [...this.#kept.values()].map((kept) => kept.task)
  }

  /** Cancels; the second cancel of a task returns it as it is. Throws Declined when it has ended otherwise. */
  cancel(id: string): Task {
    const kept = this.#find(id)
    const { state } = kept.task.status
    if (isTerminal(state) && state !== 'TASK_STATE_CANCELED')
      throw new Declined('TASK_NOT_CANCELABLE', 'The task has already ended.')
    if (state !== 'TASK_STATE_CANCELED') {
      kept.turn?.cancelled.abort()
      this.#setStatus(kept, 'TASK_STATE_CANCELED')
    }
    return snapshot(kept.task)
  }

  /** Hears the task from a full copy on. Throws Declined when it has ended. */
  subscribe(id: string, listen: (event: StreamResponse) => void): void {
    const kept = this.#find(id)
    if (isTerminal(kept.task.status.state))
      throw new Declined('UNSUPPORTED_OPERATION', 'The task has ended; there is nothing to subscribe to.')
    kept.listeners.add(listen)
    listen({ task: snapshot(kept.task) })
  }

  unsubscribe(id: string, listen: (event: StreamResponse) => void): void {
    this.#kept.get(id)?.listeners.delete(listen)
  }

  /** Cancels all work and resolves when it has ended. */
  async close(): Promise<void> {
    const turns = [...this.#kept.values()].flatMap((kept) => kept.turn ?? [])
    for (const turn of turns) turn.cancelled.abort()
    await Promise.all(turns.map((turn) => turn.played))
  }

  #find(id: string): Kept {
    const kept = this.#kept.get(id)
    if (!kept) throw new Declined('TASK_NOT_FOUND', 'There is no such task.')
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    return kept
  }

  #taskFor({ taskId, contextId }: Message): Kept {
    if (taskId === undefined) return this.#open(contextId ?? randomUUID())
    const kept = this.#find(taskId)
    if (contextId !== undefined && contextId !== kept.task.contextId)
      throw new Declined('INVALID_PARAMS', 'message.contextId is not the context of the task.')
    if (isTerminal(kept.task.status.state))
      throw new Declined('UNSUPPORTED_OPERATION', 'The task has ended; send a new message without its id.')
    return kept
  }

  #open(contextId: string): Kept {
    const task = {
      id: randomUUID(),
      contextId,
      status: { state: 'TASK_STATE_SUBMITTED', timestamp: now() },
      history: [],
      artifacts: [],
    }
    const kept: Kept = { task, listeners: new Set(), turn: undefined, bytes: 0 }
    this.#kept.set(task.id, kept)
    return kept
  }

  async #play(kept: Kept, asked: Playing): Promise<void> {
    this.#running += 1
    try {
      // Nothing is said before `send` has returned, so that its answer is the task as it was accepted.
      await Promise.resolve()
      await this.#agent.play(this.#turnOf(kept, asked))
      if (!isTerminal(kept.task.status.state) && !isWaiting(kept.task.status.state))
        throw new Error(`${this.#agent.name} ended its turn without a word.`)
    } catch (error) {
      if (!asked.signal.aborted) {
        this.#setStatus(kept, 'TASK_STATE_FAILED', [{ text: 'The demo agent has a defect; see its log.' }])
        process.stderr.write(`demo agent: ${error instanceof Error ? error.stack : String(error)}\n`)
      }
    } finally {
      this.#running -= 1
      kept.turn = undefined
    }
  }

  #turnOf(kept: Kept, asked: Playing): Turn {
    const { signal } = asked
    return {
      message: asked.message,
      taskId: kept.task.id,
      answers: asked.answers,
      extensions: asked.extensions,
      newId: () => randomUUID(),
      working: (text) => {
        signal.throwIfAborted()
        this.#setStatus(kept, 'TASK_STATE_WORKING', text === undefined ? undefined : [{ text }])
      },
      settle: (state, parts, extensions) => {
        signal.throwIfAborted()
        this.#setStatus(kept, `TASK_STATE_${state}`, parts, extensions)
      },
      artifact: (artifact, chunk) => {
        signal.throwIfAborted()
        this.#addArtifact(kept, artifact, chunk)
      },
      pause: (ms) => pause(ms, signal),
    }
  }

  #setStatus(kept: Kept, state: string, parts?: readonly Part[], extensions?: readonly string[]): void {
    const { task } = kept
    const place = { taskId: task.id, contextId: task.contextId }
    const message: Message | undefined = parts && {
      messageId: randomUUID(),
      role: 'ROLE_AGENT',
      ...place,
      parts: [...parts],
      ...(extensions ? { extensions: [...extensions] } : {}),
    }
    replaceStatus(task, { state, timestamp: now(), ...(message ? { message } : {}) })
    this.#grow(kept, task.status)
    this.#tell(kept, { statusUpdate: { ...place, status: task.status } })
  }

  #addArtifact(kept: Kept, artifact: Artifact, chunk = { append: false, last: true }): void {
    const { task } = kept
    const at = task.artifacts.findIndex((known) => known.artifactId === artifact.artifactId)
    const known = task.artifacts[at]
    if (known && chunk.append) known.parts = merged(known.parts, artifact.parts)
    else if (known) task.artifacts[at] = structuredClone(artifact)
    else task.artifacts.push(structuredClone(artifact))
    this.#grow(kept, artifact)
    const { append, last: lastChunk } = chunk
    this.#tell(kept, { artifactUpdate: { taskId: task.id, contextId: task.contextId, artifact, append, lastChunk } })
  }

  #tell(kept: Kept, event: StreamResponse): void {
    for (const listen of kept.listeners) listen(event)
  }

  /**
   * Counts what was added, and forgets what has not been used for longest, but nothing that is worked on or listened
   * to.
   */
  #grow(kept: Kept, added: unknown): void {
    const bytes = Buffer.byteLength(JSON.stringify(added))
    kept.bytes += bytes
    this.#bytes += bytes
    for (const [id, old] of this.#kept) {
      if (this.#kept.size <= limits.tasks && this.#bytes <= limits.bytes) return
      if (old.turn || old.listeners.size > 0 || old === kept) continue
      this.#kept.delete(id)
      this.#bytes -= old.bytes
    }
  }
}

/** Text that continues text becomes one part, or an answer in a hundred chunks would be a hundred parts for ever. */
function merged(old: readonly Part[], added: readonly Part[]): Part[] {
  const last = old.at(-1)
  const [first, ...rest] = added
  if (last?.text === undefined || first?.text === undefined) return [...old, ...added]
  return [...old.slice(0, -1), { ...last, text: last.text + first.text }, ...rest]
}

/** What the old status said moves into the history, or the new one would erase it. */
function replaceStatus(task: Kept['task'], status: TaskStatus): void {
  if (task.status.message) task.history.push(task.status.message)
  task.status = status
}

function questionIn(state: string): Question | null {
  if (state === 'TASK_STATE_INPUT_REQUIRED') return 'INPUT_REQUIRED'
  return state === 'TASK_STATE_AUTH_REQUIRED' ? 'AUTH_REQUIRED' : null
}

const snapshot = (task: Task): Task => structuredClone(task)
const now = (): string => new Date().toISOString()

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const abort = (): void => {
      clearTimeout(timer)
      reject(new Error('The turn was cancelled.'))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal.addEventListener('abort', abort, { once: true })
  })
}
