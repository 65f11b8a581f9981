/** Bringing an actor to life from outside any noun, for tests of the loop. Owns no expectation. */
import type { Operation } from '../../actors/loop/operation.ts'
import type { ActorRef } from '../../persistence/actors.ts'

/** An operation that spawns what it is asked for, and answers with its id. */
export const spawning = (organizationId: string): Operation<ActorRef, string> => ({
  name: 'spawn',
  run: (_batch, refs) =>
    Promise.resolve(
      refs.map((ref) => {
        const spawns = [{ ref, lane: null, isNew: true, organizationId, cause: 'test' }]
        return { kind: 'done' as const, result: ref.id, effects: { spawns } }
      }),
    ),
})
