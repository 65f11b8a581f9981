/**
 * The supervisor: a live machine that starts the loops in order, restarts one that fails, gives up when they keep failing,
 * and drains before it stops. Does not know what a loop does (actors/loop/supervisor.ts) and is never persisted.
 */
import { assign, fromPromise, setup } from 'xstate'

/** Five failures of one loop in thirty seconds are not bad luck: the process is to end, and whoever runs it starts a fresh one. */
const failuresLimit = 5
const failuresWindowMs = 30_000
const failuresRemembered = 50
const restartPauseMs = 500

/** Provided by whoever runs the machine: a loop ends only by failing or because `signal` aborts. */
export interface LoopInput {
  readonly name: string
}

export const loopNames = [
  'leases',
  'command',
  'subscription',
  'ownership',
  'reconciliation',
  'scopes',
  'push',
  'audit',
  'freshness',
  'housekeeping',
  'presence',
] as const
export type LoopName = (typeof loopNames)[number]

/** What a process does for itself; everything else it may leave to workers in processes of their own. */
const everywhere: ReadonlySet<LoopName> = new Set(['freshness', 'housekeeping', 'audit', 'presence'])
export const workersLoops: ReadonlySet<LoopName> = new Set(loopNames.filter((name) => !everywhere.has(name)))

const notProvided = (): Promise<never> => Promise.reject(new Error('The supervisor was started without its loops.'))

const config = setup({
  types: {
    context: {} as {
      /** Recent failures, oldest first; `at` in monotonic milliseconds. */
      failures: readonly { readonly name: string; readonly at: number; readonly message: string }[]
      restarts: number
      lastFailure: string | null
    },
    events: {} as { type: 'drain' } | { type: 'failed'; name: string; at: number; message: string },
  },
  actors: {
    loop: fromPromise<void, LoopInput>(notProvided),
    prepare: fromPromise<void>(notProvided),
    finish: fromPromise<void>(notProvided),
  },
  guards: {
    keepsFailing: ({ context, event }) =>
      event.type === 'failed' &&
      context.failures.filter(({ name, at }) => name === event.name && event.at - at < failuresWindowMs).length + 1 >=
        failuresLimit,
  },
  actions: {
    noteFailure: assign(({ context, event }) =>
      event.type === 'failed'
        ? {
            failures: [...context.failures, { name: event.name, at: event.at, message: event.message }].slice(
              -failuresRemembered,
            ),
            restarts: context.restarts + 1,
            lastFailure: `${event.name}: ${event.message}`,
          }
        : {},
    ),
  },
})

/** A loop's region. Its failure is told by `failed`, which also brings the time: a machine has no clock. */
const region = (name: LoopName, left: ReadonlySet<LoopName>) =>
  ({
    initial: left.has(name) ? ('leftToWorkers' as const) : ('up' as const),
    states: {
      up: {
        invoke: { id: name, src: 'loop' as const, input: { name }, onError: 'restarting' },
      },
      restarting: { tags: ['attention'], after: { [restartPauseMs]: 'up' } },
      leftToWorkers: { description: 'Workers in processes of their own do it.' },
    },
  }) as const

/** `left`: loops that this process does not run. */
export const supervisorFor = (left: ReadonlySet<LoopName>) =>
  config.createMachine({
    id: 'supervisor',
    version: '1',
    description: 'Starts the loops, restarts what fails, drains before it stops.',
    context: { failures: [], restarts: 0, lastFailure: null },
    initial: 'starting',
    states: {
      starting: { invoke: { src: 'prepare', onDone: 'running', onError: 'broken' }, on: { drain: 'draining' } },
      running: {
        type: 'parallel',
        on: {
          drain: 'draining',
          failed: [{ guard: 'keepsFailing', target: 'broken', actions: 'noteFailure' }, { actions: 'noteFailure' }],
        },
        states: {
          leases: region('leases', left),
          command: region('command', left),
          subscription: region('subscription', left),
          ownership: region('ownership', left),
          reconciliation: region('reconciliation', left),
          scopes: region('scopes', left),
          push: region('push', left),
          audit: region('audit', left),
          freshness: region('freshness', left),
          housekeeping: region('housekeeping', left),
          presence: region('presence', left),
        },
      },
      draining: {
        description: 'Takes no more work; what must not be repeated is waited for.',
        invoke: { src: 'finish', onDone: 'stopped', onError: 'broken' },
      },
      stopped: { type: 'final' },
      broken: { type: 'final', tags: ['attention'], description: 'The process ends and says so by its exit code.' },
    },
  })

/** As charts show it: every loop is run. */
export const supervisorMachine = supervisorFor(new Set())
