/**
 * Who did not hear what they were sent, for their row is in a state that this release does not know: told in the log, of each once in a
 * while, as the sweep that wakes them comes every few seconds. Owns no row.
 */
import type { EventObject } from 'xstate'
import { actorKey, type ActorRef } from '../../persistence/actors.ts'
import type { Log } from '../log.ts'
import { remember } from '../remember.ts'
import type { UnknownState } from './transition.ts'

const againMs = 10 * 60_000
const remembered = 1_000

export class Missed {
  readonly #log: Pick<Log, 'error'>
  readonly #monotonic: () => number
  readonly #told = new Map<string, number>()

  /** `monotonic`: milliseconds. */
  constructor(log: Pick<Log, 'error'>, monotonic: () => number) {
    this.#log = log
    this.#monotonic = monotonic
  }

  tell(ref: ActorRef, event: EventObject, err: UnknownState): void {
    const key = actorKey(ref)
    const now = this.#monotonic()
    if (now - (this.#told.get(key) ?? -Infinity) < againMs) return
    remember(this.#told, key, now, remembered)
    this.#log.error(
      { err, actor: key, event: event.type },
      'an actor cannot be moved, and did not hear what it was sent',
    )
  }
}
