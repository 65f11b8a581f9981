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
const catchUpPages = 5
const keptLimit = 2000
/** Above every revision. */
const newest = 999_999_999

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
  #begins = false
  #wanted = 0
  /** Up to here the log is known: a round that is not kept has a revision, and no step (actors/loop/routine.ts). */
  #readTo = 0
  #failedAt = -1
  #fault: ApiFault | undefined
  #reading = false

  constructor(host: ReactiveControllerHost) {
    this.#host = host
    host.addController(this)
  }

  /** Oldest first; between two of them are only steps that are not kept. */
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
    return this.#readTo >= this.#wanted
  }

  /** There are steps before the first one in memory, and room for them. */
  get hasEarlier(): boolean {
    return this.#steps.length > 0 && !this.#begins && this.#steps.length < keptLimit
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
    void this.#read(async (subject) => {
      const { steps, next } = await this.#page(subject, 'before', this.#steps[0]?.revision ?? newest)
      this.#steps = [...steps, ...this.#steps]
      this.#begins = next === null
    })
  }

  #catchUp(): void {
    void this.#read(async (subject) => {
      while (!this.isCaughtUp && !subject.closed.signal.aborted) {
        const wanted = this.#wanted
        if (this.#steps.length === 0 || !(await this.#readOn(subject))) await this.#readNewest(subject)
        this.#readTo = Math.max(wanted, this.#steps.at(-1)?.revision ?? 0)
        this.#host.requestUpdate()
      }
    })
  }

  /** False where the actor is too far ahead. */
  async #readOn(subject: Subject): Promise<boolean> {
    for (let page = 0; page < catchUpPages; page++) {
      const { steps, next } = await this.#page(subject, 'after', this.#steps.at(-1)?.revision ?? 0)
      const all = [...this.#steps, ...steps]
      if (all.length > keptLimit) this.#begins = false
      this.#steps = all.slice(-keptLimit)
      if (next === null) return true
    }
    return false
  }

  async #readNewest(subject: Subject): Promise<void> {
    const { steps, next } = await this.#page(subject, 'before', newest)
    this.#steps = steps
    this.#begins = next === null
  }

  #page({ api, kind, id, closed }: Subject, from: 'after' | 'before', revision: number): Promise<ActorLogPage> {
    return api.get(logPath(kind, id, from, revision, pageLimit), ActorLogPage, closed.signal)
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
    this.#begins = false
    this.#wanted = 0
    this.#readTo = 0
    this.#failedAt = -1
    this.#fault = undefined
    this.#reading = false
  }
}
