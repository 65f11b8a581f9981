/**
 * What a reader of agents' tasks remembers of silence and of lists, in this process: a task about which its agent says nothing while it
 * answers for others must not hold one of two readers each time, and a scope of many tasks must not wait for its list until all
 * were asked for. Forgotten at a restart: then it is found out again. Does not read and decides no state.
 */
import { remember } from './remember.ts'

/** A pass is made every 15 s. Once is weather; a task that was silent twice is left out of the next pass, then of more, up to a minute. */
const restFromMs = 20_000
const restToMs = 60_000
/** A list about every 60 s. A little less, for those that fail are asked every 60 s: the list of the one before is old, then. */
const listOldMs = 55_000
/** A few dozen bytes each. */
const rememberedLimit = 10_000

interface Silence {
  readonly restMs: number
  readonly untilMs: number
}

export class Silences {
  /** Milliseconds that never jump. */
  readonly #monotonic: () => number
  readonly #silences = new Map<string, Silence>()
  /** Of a scope: the task about which its agent was silent when it had not answered for any other. */
  readonly #doubted = new Map<string, string>()
  readonly #listed = new Map<string, number>()

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /** Whether the task is passed over. */
  rests(taskId: string): boolean {
    return (this.#silences.get(taskId)?.untilMs ?? 0) > this.#monotonic()
  }

  /** Its agent said nothing about it; `answers`: it did so for another task, so that it is this one and not the agent. */
  silent(scope: string, taskId: string, answers: boolean): void {
    if (!answers) return remember(this.#doubted, scope, taskId, rememberedLimit)
    const before = this.#silences.get(taskId)
    const restMs = before ? Math.min(restToMs, Math.max(restFromMs, before.restMs * 2)) : 0
    remember(this.#silences, taskId, { restMs, untilMs: this.#monotonic() + restMs }, rememberedLimit)
  }

  /** The agent answered for this task: what it was silent about just before was that task's own. */
  answered(scope: string, taskId: string): void {
    this.#silences.delete(taskId)
    const doubted = this.#doubted.get(scope)
    if (doubted === undefined) return
    this.#doubted.delete(scope)
    if (doubted !== taskId) this.silent(scope, doubted, true)
  }

  /** Whether a scope's list was read, or its tasks first looked at, too long ago; `agoMs`: since any process asked for it, if known. */
  isListOld(scope: string, agoMs: number | null): boolean {
    const listedMs = this.#listed.get(scope)
    if (listedMs === undefined) this.listed(scope)
    return listedMs !== undefined && this.#monotonic() - listedMs >= listOldMs && (agoMs ?? Infinity) >= listOldMs
  }

  listed(scope: string): void {
    remember(this.#listed, scope, this.#monotonic(), rememberedLimit)
  }

  /** Nothing of it is unfinished any more. */
  rested(scope: string): void {
    this.#listed.delete(scope)
    this.#doubted.delete(scope)
  }
}
