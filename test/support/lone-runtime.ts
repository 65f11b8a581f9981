/** A runtime by itself, with nothing that works beside it, for tests of commits. Owns no expectation. */
import { v7 as newToken } from 'uuid'
import type { AnyStateMachine } from 'xstate'
import { Changes } from '../../actors/loop/changes.ts'
import type { Kind } from '../../actors/loop/kinds.ts'
import { Runtime, type RuntimeOptions } from '../../actors/loop/runtime.ts'
import { capturedLog } from './system.ts'

/** A kind that is nobody's to work at. */
export const kindOf = (machine: AnyStateMachine): Kind => ({
  machine,
  pollMs: 1000,
  leaseMs: 60_000,
  concurrency: 10,
  laneLimit: 10,
  claimLimit: 10,
  work: {},
  repeatable: new Set(),
})

export const loneRuntime = (parts: Pick<RuntimeOptions, 'db' | 'kinds'> & Partial<RuntimeOptions>): Runtime =>
  new Runtime({
    reactions: [],
    changes: new Changes(),
    instruments: { now: () => new Date(), monotonic: () => performance.now(), newToken: () => newToken() },
    intake: { owner: 'test', takeRoom: () => true, giveBack: () => undefined, newToken: () => newToken() },
    log: capturedLog().log,
    launch: () => undefined,
    ...parts,
  })
