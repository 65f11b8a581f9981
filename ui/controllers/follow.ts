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

const tooManyRequests = 429
const backoffMs = { first: 1_000, last: 15_000 }
/** A stream that lasted so long ended by design, and the next one may follow at once. */
const fullStreamMs = 5_000
const betweenStreamsMs = 50

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
  /** The agent tells a trace and none is known here: a task at rest is then read once, for what was told before. */
  readonly recall: boolean
}

export class Follow implements ReactiveController {
  readonly #ask: () => Followed | undefined
  readonly #host: ReactiveControllerHost
  readonly #onVisibility = (): void => this.#host.requestUpdate()
  #localId: string | undefined
  #recalled: string | undefined
  /** Of the last task that was followed: the first of its stored events that was not heard whole. */
  #heard: { readonly localId: string; readonly position: number } | undefined
  #cut: AbortController | undefined

  constructor(host: ReactiveControllerHost, ask: () => Followed | undefined) {
    this.#ask = ask
    this.#host = host
    host.addController(this)
  }

  hostConnected(): void {
    document.addEventListener('visibilitychange', this.#onVisibility)
  }

  hostUpdated(): void {
    const asked = this.#ask()
    const wanted = asked && this.#isWorthReading(asked) ? asked.task.localId : undefined
    if (wanted === this.#localId) return
    this.#stop()
    if (!asked || wanted === undefined) return
    this.#localId = wanted
    if (isSettled(asked.task.state)) this.#recalled = wanted
    const cut = new AbortController()
    this.#cut = cut
    void this.#run(asked.app, asked.task, cut.signal).finally(() => {
      // A task at rest may move again; one that was refused is not asked for again.
      if (this.#cut === cut && isSettled(asked.task.state)) this.#stop()
    })
  }

  hostDisconnected(): void {
    document.removeEventListener('visibilitychange', this.#onVisibility)
    this.#stop()
  }

  #stop(): void {
    this.#cut?.abort()
    this.#cut = undefined
    this.#localId = undefined
  }

  #isWorthReading({ task, elsewhere, recall }: Followed): boolean {
    // A browser opens six connections to a server of HTTP/1.1 for all its tabs: one that nobody looks at must not hold a
    // stream. The shared signal of changes keeps it fresh enough, and it follows again as soon as it is seen.
    if (task.taskId === null || elsewhere || document.visibilityState !== 'visible') return false
    if (!isSettled(task.state)) return true
    // While it runs it is still wanted; once it is over it is not begun again.
    return this.#localId === task.localId || (recall && this.#recalled !== task.localId)
  }

  async #run(app: App, task: TaskView, signal: AbortSignal): Promise<void> {
    const question = taskQuestion(task.localId)
    let waitMs: number = backoffMs.first
    // Bounded by the page: the signal is aborted when the task settles, another is shown, or the view goes.
    while (!signal.aborted) {
      const unfeed = app.queries.feed(question)
      const openedMs = performance.now()
      try {
        await this.#once(app, task, signal)
        if (isSettled(task.state)) return
      } catch (error) {
        // Nobody looks any more, and the request was cut before its answer began.
        if (signal.aborted) return
        const fault = faultOf(error)
        if (isSettled(task.state) || fault.kind === 'signed-out') return
        if (fault.kind === 'refused' && fault.status !== tooManyRequests) return
      } finally {
        unfeed()
      }
      const lasted = performance.now() - openedMs > fullStreamMs
      await pause(lasted ? betweenStreamsMs : waitMs, signal)
      waitMs = lasted ? backoffMs.first : Math.min(backoffMs.last, waitMs * 2)
    }
  }

  /** One stream, to its end. What it tells of stored events, the next one of the task need not tell again. */
  async #once(app: App, task: TaskView, signal: AbortSignal): Promise<void> {
    const { localId, agentId, taskId, tenant } = task
    if (this.#heard?.localId !== localId) this.#heard = undefined
    const position = this.#heard?.position
    const body = { resubscribe: true, taskId, tenant, ...(position === undefined ? {} : { position }) }
    let told: number | undefined
    for await (const event of readTaskStream(app.api, agentId, body, { signal })) {
      if (signal.aborted) return
      if (event.kind === 'snapshot') putTask(app.queries, event.task)
      if (event.kind === 'position') told = event.position
      if (event.kind === 'trace') app.traces.add(localId, event.event)
      // The last one is known to be told whole once the stream says that it ends.
      if (event.kind === 'end' && told !== undefined) told++
      if (told !== undefined) this.#heard = { localId, position: told }
    }
  }
}
