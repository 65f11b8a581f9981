/**
 * How work ended, told to its machine under its lease. Whoever does the work is always heard: what cannot be stored is told as a failure,
 * for a machine that heard nothing would begin it anew for ever, without a pause and without a word. Does not do work or give it back
 * (worker.ts), and does not decide what an outcome means (machines/).
 */
import { actorKey } from '../../persistence/actors.ts'
import { isOutage } from '../../persistence/outage.ts'
import type { WorkEnded } from '../diagnostics.ts'
import type { Log } from '../log.ts'
import type { Done } from './kinds.ts'
import { LeaseLost, type HeldLease } from './lease.ts'
import { whileHeld } from './outlast.ts'
import { ActorGone, type Step } from './step.ts'

interface OutcomesOptions {
  readonly isOurs: (lease: HeldLease) => boolean
  /** A drain has given its work back. */
  readonly isGivenBack: (lease: HeldLease) => boolean
  readonly step: (step: Step) => Promise<unknown>
  readonly log: Log
}

/** Plain, and ours: what could not be stored of an outcome may be in the words of any error about it, too. */
const unstorable = 'The outcome could not be stored.'

export class Outcomes {
  readonly #o: OutcomesOptions

  constructor(options: OutcomesOptions) {
    this.#o = options
  }

  /** Never rejects. */
  async report(lease: HeldLease, done: Done | Error): Promise<WorkEnded['end']> {
    const fields = { actor: actorKey(lease.ref), work: lease.work }
    if (done instanceof Error) this.#o.log.error({ ...fields, err: done }, 'work failed')
    try {
      await this.#tell(lease, done)
      return done instanceof Error ? 'failed' : 'done'
    } catch (error) {
      return isOwn(error) ? this.#unheard(lease, error) : this.#tellAnyway(lease, error)
    }
  }

  /** Once: what fails then is not the outcome's fault. */
  async #tellAnyway(lease: HeldLease, cause: unknown): Promise<WorkEnded['end']> {
    const fields = { actor: actorKey(lease.ref), work: lease.work }
    this.#o.log.error({ ...fields, err: cause }, 'an outcome could not be recorded, and is told as a failure')
    try {
      await this.#tell(lease, new Error(unstorable))
      return 'failed'
    } catch (error) {
      return this.#unheard(lease, error)
    }
  }

  async #tell(lease: HeldLease, done: Done | Error): Promise<void> {
    const { ref, work, token } = lease
    const event =
      done instanceof Error
        ? { type: `xstate.error.actor.${work}`, error: done.message }
        : { type: `xstate.done.actor.${work}`, output: done.output }
    const told = done instanceof Error ? [] : (done.told ?? [])
    const step: Step = { ref, event, told, lease: { token, work }, cause: 'worker' }
    // What is known must not be forgotten because the database was away for a moment. After that the lease runs out, and the
    // machine hears `interrupted`, which is then the truth.
    const isHeld = (): boolean => this.#o.isOurs(lease)
    const waits = (err: unknown): void =>
      this.#o.log.warn({ actor: actorKey(ref), work, err }, 'an outage puts off an outcome')
    await whileHeld({ signal: lease.abort.signal, isHeld }, () => this.#o.step(step), { waits })
  }

  /** Nobody hears it, or nobody is to. */
  #unheard(lease: HeldLease, error: unknown): WorkEnded['end'] {
    const fields = { actor: actorKey(lease.ref), work: lease.work }
    // What a drain has given back is done again by whoever comes next, and told then.
    if (error instanceof LeaseLost && this.#o.isGivenBack(lease)) {
      this.#o.log.info(fields, 'a result came when its work had been given back')
      return 'given back'
    }
    if (error instanceof LeaseLost) {
      this.#o.log.warn(fields, 'a late result was discarded')
      return 'lost'
    }
    this.#o.log.error({ ...fields, err: error }, 'an outcome could not be recorded')
    return 'unrecorded'
  }
}

/** Says nothing of the outcome: the database's trouble, or its actor's end. */
const isOwn = (error: unknown): boolean => error instanceof LeaseLost || error instanceof ActorGone || isOutage(error)
