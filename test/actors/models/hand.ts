/**
 * A worker's hand on one actor, as a model sees it: who holds the lease, and the claims under which the test does the actor's
 * work. Owns the rules that hold for every kind alike: what is due is claimed, what a lapsed lease had begun is told as
 * interrupted, whoever was replaced is not heard. What the actor makes of it is the model's (push-and-reconciliation.test.ts).
 */
import { expect } from 'vitest'
import type { EventObject } from 'xstate'
import { LeaseLost } from '../../../actors/loop/lease.ts'
import type { ActorRef } from '../../../persistence/actors.ts'
import type { DueActor } from '../../../persistence/leases.ts'
import type { Stage } from './stage.ts'

export class Hand {
  /** `lapsed`: begun, and its holder is gone. */
  lease: 'none' | 'held' | 'lapsed' = 'none'
  readonly ref: ActorRef
  readonly stage: Stage
  readonly #claims: DueActor[] = []

  constructor(stage: Stage, ref: ActorRef) {
    this.stage = stage
    this.ref = ref
  }

  /** Takes what is due, which is `work` by the model. Says what the actor has to hear first. */
  async claim(work: string | null): Promise<'interrupted' | null> {
    const claimed = await this.stage.claim(this.ref)
    expect(claimed?.work ?? null).toBe(this.lease === 'held' ? null : work)
    if (!claimed) return null
    this.#claims.push(claimed)
    const begun = this.lease === 'lapsed'
    expect(claimed.begun).toBe(begun)
    this.lease = 'held'
    if (!begun) return null
    await this.stage.report(claimed, { type: 'interrupted' })
    return 'interrupted'
  }

  /** What became of the work, `none` where nobody holds it; a lease that ran out and was not taken over still counts. */
  async report(work: string, event: EventObject): Promise<'heard' | 'none'> {
    const claimed = this.#claims.at(-1)
    if (!claimed || this.lease === 'none') return 'none'
    await this.stage.report({ ...claimed, work }, event)
    return 'heard'
  }

  /** A state's next work goes on under the lease of the one before; where there is none, nobody holds anything. */
  moved(work: string | null): void {
    this.lease = work === null ? 'none' : 'held'
  }

  async reportLate(work: string | null): Promise<void> {
    const late = this.#claims.at(this.lease === 'none' ? -1 : -2)
    if (!late) return
    const said = { type: `xstate.done.actor.${work ?? late.work}`, output: { kind: 'ended' } }
    const asked = { ...late, work: work ?? late.work }
    await expect(this.stage.report(asked, said as EventObject)).rejects.toBeInstanceOf(LeaseLost)
  }

  async expire(): Promise<void> {
    await this.stage.expire(this.ref)
    if (this.lease === 'held') this.lease = 'lapsed'
  }
}
