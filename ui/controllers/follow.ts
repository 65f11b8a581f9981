/**
 * Follows one task while it is on the page and its agent is at work: opens the task's stream, puts every snapshot into the
 * cache, and opens it again when its 50 seconds are over. Ends where nothing more can come. Without permission to follow it
 * falls back to what every query has: asking again when something changed.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'
import { isSettled, type TaskView } from '../../domain/task.ts'
import { faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { putTask, taskQuestion } from '../questions.ts'
import { readTaskStream } from '../task-stream.ts'

const backoffMs = { first: 1_000, last: 15_000 }

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

export interface Followed {
  readonly app: App
  readonly task: TaskView
  /** Somebody else reads this task's stream. */
  readonly elsewhere: boolean
}

export class Follow implements ReactiveController {
  readonly #ask: () => Followed | undefined
  #localId: string | undefined
  #cut: AbortController | undefined

  constructor(host: ReactiveControllerHost, ask: () => Followed | undefined) {
    this.#ask = ask
    host.addController(this)
  }

  hostUpdated(): void {
    const asked = this.#ask()
    const wanted = asked && worthFollowing(asked) ? asked.task.localId : undefined
    if (wanted === this.#localId) return
    this.#stop()
    if (!asked || wanted === undefined) return
    this.#localId = wanted
    this.#cut = new AbortController()
    void this.#run(asked.app, asked.task, this.#cut.signal)
  }

  hostDisconnected(): void {
    this.#stop()
  }

  #stop(): void {
    this.#cut?.abort()
    this.#cut = undefined
    this.#localId = undefined
  }

  async #run(app: App, task: TaskView, signal: AbortSignal): Promise<void> {
    const question = taskQuestion(task.localId)
    let waitMs: number = backoffMs.first
    // Bounded by the page: the signal is aborted when the task settles, another is shown, or the view goes.
    while (!signal.aborted) {
      const unfeed = app.queries.feed(question)
      try {
        const said = await this.#once(app, task, signal)
        if (said) waitMs = backoffMs.first
      } catch (error) {
        const fault = faultOf(error)
        if (fault.kind === 'refused' || fault.kind === 'signed-out') return
      } finally {
        unfeed()
      }
      await pause(waitMs, signal)
      waitMs = Math.min(backoffMs.last, waitMs * 2)
    }
  }

  /** One stream, to its end. Whether it said anything: one that is closed at once is not opened again at once. */
  async #once(app: App, task: TaskView, signal: AbortSignal): Promise<boolean> {
    const body = { resubscribe: true, taskId: task.taskId, tenant: task.tenant }
    let said = false
    for await (const event of readTaskStream(app.api, task.agentId, body, { signal })) {
      if (signal.aborted) return said
      said = true
      if (event.kind === 'snapshot') putTask(app.queries, event.task)
      if (event.kind === 'trace') app.traces.add(task.localId, event.event)
    }
    return said
  }
}

const worthFollowing = ({ task, elsewhere }: Followed): boolean =>
  task.kind === 'task' && task.taskId !== null && !isSettled(task.state) && !elsewhere
