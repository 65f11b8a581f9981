/**
 * Sending a message, from the press of a button to the console's word that it is durable, and on to the task it made. Owns the
 * phases and the key that makes a retry safe. Never optimistic: a phase is what the server said, or that it said nothing.
 */
import { createAtom, type ReadonlyAtom } from '@xstate/store'
import { type Api, type ApiFault, faultOf } from './api.ts'
import { type Attempt, type Drafts, newAttempt } from './drafts.ts'
import type { Queries } from './queries.ts'
import { commandQuestion, putTask, refreshAgents } from './questions.ts'
import { readTaskStream, type StreamEvent } from './task-stream.ts'
import type { Traces } from './traces.ts'

/** What a sending needs of its app. */
interface Parts {
  readonly api: Api
  readonly queries: Queries
  readonly traces: Traces
  readonly drafts: Drafts
}

export interface Target {
  readonly agentId: string
  readonly tenant: string
  /** The agent's own task id, to continue that task. */
  readonly taskId?: string
  readonly contextId?: string
  /** The one skill that it is for. */
  readonly skillId?: string
}

/**
 * `idle`; `sending`: the request is under way; `unknown`: nobody answered, a retry under the same key is safe; `refused`: the
 * console said no and nothing was accepted; `accepted`: durable, its command tells the rest.
 */
export type Phase =
  | { readonly at: 'idle' }
  | { readonly at: 'sending'; readonly attempt: Attempt }
  | { readonly at: 'unknown'; readonly attempt: Attempt; readonly message: string }
  | { readonly at: 'refused'; readonly attempt: Attempt; readonly fault: ApiFault }
  | { readonly at: 'accepted'; readonly attempt: Attempt; readonly commandId: string; readonly localId?: string }

const reloaded = 'This page was reloaded before the console confirmed it.'

/** One composer's sending. Lives on when its composer is taken off the page, so that moving away loses nothing. */
export class Sending {
  readonly #api: Api
  readonly #queries: Queries
  readonly #traces: Traces
  readonly #drafts: Drafts
  readonly #phase = createAtom<Phase>({ at: 'idle' })
  /** Reading the stream of its own send: a second stream of the same task is not needed. */
  readonly streaming = createAtom(false)
  #scope: string
  #target: Target | undefined
  #cut: AbortController | undefined

  constructor(scope: string, parts: Parts) {
    this.#scope = scope
    this.#api = parts.api
    this.#queries = parts.queries
    this.#traces = parts.traces
    this.#drafts = parts.drafts
    this.restore()
  }

  /** Takes up what was under way before the page was loaded, unless something is already. */
  restore(): void {
    const attempt = this.#phase.get().at === 'idle' ? this.#drafts.readAttempt(this.#scope) : undefined
    if (!attempt) return
    const { commandId } = attempt
    this.#phase.set(
      commandId === undefined ? { at: 'unknown', attempt, message: reloaded } : { at: 'accepted', attempt, commandId },
    )
  }

  get phase(): ReadonlyAtom<Phase> {
    return this.#phase
  }

  /** `replaces`: id of an earlier send in whose place it goes. */
  send(target: Target, text: string, replaces?: string): void {
    const attempt = newAttempt(text, replaces)
    this.#drafts.keepAttempt(this.#scope, attempt)
    this.#target = target
    void this.#run(target, attempt)
  }

  /** The same attempt again: same key, same message id, same words. */
  retry(target: Target): void {
    const phase = this.#phase.get()
    if (phase.at !== 'unknown' && phase.at !== 'refused') return
    this.#target ??= target
    void this.#run(this.#target, phase.attempt)
  }

  /** The person has seen how it ended. */
  dismiss(): void {
    this.#drafts.keepAttempt(this.#scope, undefined)
    this.#phase.set({ at: 'idle' })
  }

  /** A send without a task gave one birth: from now on it belongs to that task's composer. */
  rename(scope: string): void {
    const phase = this.#phase.get()
    this.#drafts.keepAttempt(this.#scope, undefined)
    this.#scope = scope
    if (phase.at === 'accepted') this.#drafts.keepAttempt(scope, phase.attempt)
  }

  close(): void {
    this.#cut?.abort()
  }

  async #run(target: Target, attempt: Attempt): Promise<void> {
    this.#cut?.abort()
    const cut = new AbortController()
    this.#cut = cut
    this.#phase.set({ at: 'sending', attempt })
    this.streaming.set(true)
    const { agentId, ...rest } = target
    const { text, messageId, replaces } = attempt
    const body = { text, messageId, ...rest, ...(replaces === undefined ? {} : { replaces }) }
    const options = { idempotencyKey: attempt.idempotencyKey, signal: cut.signal }
    let localId: string | undefined
    try {
      for await (const event of readTaskStream(this.#api, agentId, body, options)) {
        this.#take(event, attempt)
        if (event.kind === 'persisted') localId = event.localId
        // The stream goes on telling about the task after its command has succeeded and the phase is idle again.
        if (event.kind === 'trace' && localId !== undefined) this.#traces.add(localId, event.event)
      }
      if (!cut.signal.aborted) this.#lost(attempt, 'The console closed the connection before it confirmed anything.')
    } catch (error) {
      if (cut.signal.aborted) return
      this.#fail(attempt, faultOf(error))
    } finally {
      if (this.#cut === cut) this.streaming.set(false)
    }
  }

  #take(event: StreamEvent, attempt: Attempt): void {
    const phase = this.#phase.get()
    if (event.kind === 'accepted') {
      const accepted = { ...attempt, commandId: event.commandId }
      this.#drafts.keepAttempt(this.#scope, accepted)
      // The words are the console's now; what a person types from here on is the next message.
      this.#drafts.keep(this.#scope, '')
      this.#phase.set({ at: 'accepted', attempt: accepted, commandId: event.commandId })
    } else if (event.kind === 'persisted' && phase.at === 'accepted') {
      this.#phase.set({ ...phase, localId: event.localId })
    } else if (event.kind === 'snapshot') {
      putTask(this.#queries, event.task)
    } else if (event.kind === 'error' && phase.at === 'accepted') {
      this.#queries.refresh(commandQuestion(phase.commandId).path)
    }
  }

  /** The stream ended. Before `accepted` nothing is known; after it the command tells. */
  #lost(attempt: Attempt, message: string): void {
    const phase = this.#phase.get()
    if (phase.at === 'sending') this.#phase.set({ at: 'unknown', attempt, message })
    else if (phase.at === 'accepted') this.#queries.refresh(commandQuestion(phase.commandId).path)
  }

  #fail(attempt: Attempt, fault: ApiFault): void {
    if (this.#phase.get().at !== 'sending' || fault.kind === 'unreachable' || fault.kind === 'malformed') {
      this.#lost(attempt, fault.message)
    } else {
      // Told as it is, it is over: after a reload only the words are left, which the field has.
      this.#drafts.keepAttempt(this.#scope, undefined)
      this.#phase.set({ at: 'refused', attempt, fault })
      // It was asked of a page that is old: somebody else was quicker.
      if (fault.status === 409) this.#queries.invalidate()
      if (fault.status === 404) refreshAgents(this.#queries)
    }
  }
}

/** The sendings of one console, by scope: `task:<local id>` or `new:<agent id>`. */
export class Sendings {
  readonly #parts: Parts
  readonly #byScope = new Map<string, Sending>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  of(scope: string): Sending {
    const known = this.#byScope.get(scope)
    if (known) return known
    this.#forgetIdle()
    const sending = new Sending(scope, this.#parts)
    this.#byScope.set(scope, sending)
    return sending
  }

  /** Moves a sending to the task it made, unless that task is being written to already. */
  rename(from: string, to: string): void {
    const sending = this.#byScope.get(from)
    if (!sending || this.#byScope.get(to)?.phase.get().at === 'sending') return
    sending.rename(to)
    this.#byScope.delete(from)
    this.#byScope.set(to, sending)
  }

  /** Drafts can be read from now on. */
  restore(): void {
    for (const sending of this.#byScope.values()) sending.restore()
  }

  close(): void {
    for (const sending of this.#byScope.values()) sending.close()
    this.#byScope.clear()
  }

  /** Idle ones hold nothing that storage does not. */
  #forgetIdle(): void {
    for (const [scope, sending] of this.#byScope) {
      if (this.#byScope.size < 50) return
      if (sending.phase.get().at === 'idle') this.#byScope.delete(scope)
    }
  }
}
