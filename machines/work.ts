/**
 * Work: what a durable state wants done outside. In a machine it is an invoked actor with a name and a typed outcome;
 * it never runs here. The runtime turns the invocation into data in the actor's row, and whoever holds the lease does it.
 */
import { fromPromise } from 'xstate'

/** Declares work whose outcome arrives as `onDone`. `Outcome` is a union: work does not throw for control flow. */
export const work = <Outcome>() =>
  fromPromise<Outcome, undefined>(() => Promise.reject(new Error('Durable work runs only under a lease.')))

/** Sent to an actor whose work had started and whose lease then ran out: nobody knows how far it came. */
export interface Interrupted {
  readonly type: 'interrupted'
}
