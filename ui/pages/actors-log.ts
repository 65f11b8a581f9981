/**
 * Reads an actor's log: its newest steps first, then whatever is committed while somebody looks, and older ones on
 * request. Owns the steps that are in memory and their bound; drawing them is actors-replay.ts.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'
import { ActorLogPage } from '../../domain/actor.ts'
import type { ActorStep } from '../../domain/chart.ts'
import { type Api, type ApiFault, faultOf } from '../api.ts'
import { logPath } from './actors-questions.ts'

const pageLimit = 200
/** An actor further ahead than this is read anew from its end instead of being caught up with. */
const catchUpLimit = 1000
const keptLimit = 2000

interface Subject {
  readonly api: Api
  readonly kind: string
  readonly id: string
  readonly closed: AbortController
}

export class LogReader implements ReactiveController {
  readonly #host: ReactiveControllerHost
  #subject: Subject | undefined
  #steps: readonly ActorStep[] = []
  #wanted = 0
  /** The revision up to which the log was read, whatever was in it. */
  #readTo = 0
  #failedAt = -1
  #fault: ApiFault | undefined
  #reading = false

  constructor(host: ReactiveControllerHost) {
    this.#host = host
    host.addController(this)
  }

  /** Oldest first, without gaps. */
  get steps(): readonly ActorStep[] {
    return this.#steps
  }

  get fault(): ApiFault | undefined {
    return this.#fault
  }

  get reading(): boolean {
    return this.#reading
  }

  /** Everything that is kept up to the revision that it was last told of is in memory. */
  get isCaughtUp(): boolean {
    return Math.max(this.#last, this.#readTo) >= this.#wanted
  }

  /** There are steps before the first one in memory, and room for them. */
  get hasEarlier(): boolean {
    return (this.#steps[0]?.revision ?? 0) > 1 && this.#steps.length < keptLimit
  }

  hostDisconnected(): void {
    this.#forget()
  }

  /** Called on every update with the revision the actor is known to be at; reads what is missing. */
  follow(api: Api, kind: string, id: string, revision: number): void {
    if (this.#subject?.kind !== kind || this.#subject.id !== id || this.#subject.api !== api) {
      this.#forget()
      this.#subject = { api, kind, id, closed: new AbortController() }
    }
    this.#wanted = Math.max(this.#wanted, revision)
    if (!this.isCaughtUp && this.#wanted !== this.#failedAt) this.#catchUp()
  }

  retry(): void {
    this.#failedAt = -1
    this.#catchUp()
  }

  readEarlier(): void {
    const first = this.#steps[0]?.revision ?? 1
    const after = Math.max(0, first - 1 - pageLimit)
    void this.#read(async (subject) => {
      const page = await this.#page(subject, after, first - 1 - after)
      this.#steps = [...page.steps.filter((step) => step.revision < first), ...this.#steps]
    })
  }

  get #last(): number {
    return this.#steps.at(-1)?.revision ?? 0
  }

  #catchUp(): void {
    void this.#read(async (subject) => {
      if (this.#steps.length > 0 && this.#wanted - this.#last > catchUpLimit) this.#steps = []
      while (!this.isCaughtUp && !subject.closed.signal.aborted) {
        const wanted = this.#wanted
        const after = this.#steps.length === 0 ? Math.max(0, this.#wanted - pageLimit) : this.#last
        const { steps } = await this.#page(subject, after, pageLimit)
        const fresh = steps.filter((step) => step.revision > this.#last)
        // A row and its log are committed together: what is not there now was not kept (actors/routine.ts).
        if (fresh.length === 0) this.#readTo = wanted
        this.#steps = [...this.#steps, ...fresh].slice(-keptLimit)
        this.#host.requestUpdate()
      }
    })
  }

  #page({ api, kind, id, closed }: Subject, after: number, limit: number): Promise<ActorLogPage> {
    return api.get(logPath(kind, id, after, limit), ActorLogPage, closed.signal)
  }

  async #read(work: (subject: Subject) => Promise<void>): Promise<void> {
    const subject = this.#subject
    if (!subject || this.#reading) return
    this.#reading = true
    try {
      await work(subject)
      this.#fault = undefined
    } catch (error) {
      if (subject.closed.signal.aborted) return
      this.#fault = faultOf(error)
      this.#failedAt = this.#wanted
    } finally {
      if (subject === this.#subject) {
        this.#reading = false
        this.#host.requestUpdate()
      }
    }
  }

  #forget(): void {
    this.#subject?.closed.abort()
    this.#subject = undefined
    this.#steps = []
    this.#wanted = 0
    this.#readTo = 0
    this.#failedAt = -1
    this.#fault = undefined
    this.#reading = false
  }
}
