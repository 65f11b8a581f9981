/**
 * Push of one task: tell the agent where to call, until it has heard; take that back when the task is finished. Everything
 * here may be repeated (the registration carries its own id), and everything may fail: push only makes changes appear
 * sooner. Does not know URLs, credentials or what an agent calls with (actors/push.ts, actors/push-receipts.ts).
 */
import { assign, emit, setup } from 'xstate'
import type { MachineFact } from '../domain/fact.ts'
import { work, type Interrupted } from './work.ts'

/**
 * `unsupported`: the agent does not offer push, or says so now. `gone`: agent or task is no more. `over`: the task has ended. `refused`: it answered
 * no, for a reason that may pass. `missed`: it gave no answer.
 */
export type RegisterOutcome =
  | { readonly kind: 'registered' }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'over' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'missed'; readonly reason: string }

/** `ended`: there is nothing more to do for this work, whatever came of it. `missed`: the agent gave no answer. */
export type RemoveOutcome = { readonly kind: 'ended' } | { readonly kind: 'missed' }

/** The task is finished, whoever told so. What it made is its subscription's to see (machines/subscription.ts). */
export interface TaskSettled {
  readonly type: 'settled'
}

const registerTriesLimit = 8
const removeTriesLimit = 3

const config = setup({
  types: {
    context: {} as {
      /** Failed tries of the present work in a row: the wait is 1 s doubled by each, 60 s at most. */
      failures: number
      reason: string | null
      /** The task ended while its registration was under way. */
      settled: boolean
    },
    events: {} as Interrupted | TaskSettled,
    emitted: {} as MachineFact,
  },
  actors: { register: work<RegisterOutcome>(), remove: work<RemoveOutcome>() },
  delays: { backoff: ({ context }) => Math.min(60_000, 1000 * 2 ** Math.max(0, context.failures - 1)) },
  actions: {
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    forgetFailures: assign({ failures: 0, reason: null }),
    noteSettled: assign({ settled: true }),
    noteDefect: assign({ reason: 'The console failed to register.' }),
  },
  guards: {
    settledMeanwhile: ({ context }) => context.settled,
    registerTriesLeft: ({ context }) => context.failures + 1 < registerTriesLimit,
    removeTriesLeft: ({ context }) => context.failures + 1 < removeTriesLimit,
  },
})

const whenSettled = { target: '#push.removing', actions: 'forgetFailures' } as const
/** Also after a failure: an answer may have been lost, and taking back what is not there harms nobody. */
const removeIfSettled = { guard: 'settledMeanwhile', target: '#push.removing', actions: 'forgetFailures' } as const

export const pushMachine = config.createMachine({
  id: 'push',
  version: '1',
  description: 'Asks an agent to call when a task changes, and takes that back when the task is finished.',
  context: { failures: 0, reason: null, settled: false },
  initial: 'registering',
  states: {
    registering: {
      invoke: {
        id: 'register',
        src: 'register',
        onDone: [
          {
            guard: function agentHasNoPush({ event }) {
              return event.output.kind === 'unsupported'
            },
            target: 'unsupported',
          },
          {
            guard: function nobodyKnows({ event }) {
              return event.output.kind === 'gone'
            },
            target: 'ended',
          },
          {
            guard: function taskIsOver({ event }) {
              return event.output.kind === 'over'
            },
            ...whenSettled,
          },
          removeIfSettled,
          {
            guard: function agentRegistered({ event }) {
              return event.output.kind === 'registered'
            },
            target: 'registered',
            actions: 'forgetFailures',
          },
          {
            guard: 'registerTriesLeft',
            target: 'waiting',
            actions: [
              'countFailure',
              assign({ reason: ({ event }) => ('reason' in event.output ? event.output.reason : null) }),
            ],
          },
          {
            target: 'stopped',
            actions: assign({ reason: ({ event }) => ('reason' in event.output ? event.output.reason : null) }),
          },
        ],
        onError: [
          removeIfSettled,
          { guard: 'registerTriesLeft', target: 'waiting', actions: ['countFailure', 'noteDefect'] },
          { target: 'stopped', actions: 'noteDefect' },
        ],
      },
      on: {
        settled: { actions: 'noteSettled' },
        interrupted: [removeIfSettled, { target: 'registering', reenter: true }],
      },
    },
    waiting: {
      description: 'The agent did not take the registration and is asked again. Its task is followed all the same.',
      after: { backoff: 'registering' },
      on: { settled: whenSettled },
    },
    registered: {
      description: 'The agent calls when the task changes.',
      entry: emit({ type: 'push.registered' }),
      on: { settled: whenSettled },
    },
    stopped: {
      description: 'The agent offers push and does not take the registration. Its task is followed without it.',
      tags: 'attention',
      entry: emit(({ context }) => ({ type: 'push.stopped' as const, reason: context.reason ?? 'unknown' })),
      on: { settled: whenSettled },
    },
    removing: {
      description: 'The agent is told to forget the registration, three times at most. Late calls are still answered.',
      initial: 'trying',
      states: {
        trying: {
          invoke: {
            id: 'remove',
            src: 'remove',
            onDone: [
              {
                guard: function agentHeard({ event }) {
                  return event.output.kind === 'ended'
                },
                target: '#push.ended',
              },
              { guard: 'removeTriesLeft', target: 'pausing', actions: 'countFailure' },
              { target: '#push.ended' },
            ],
            onError: [
              { guard: 'removeTriesLeft', target: 'pausing', actions: 'countFailure' },
              { target: '#push.ended' },
            ],
          },
          on: { interrupted: { target: 'trying', reenter: true } },
        },
        pausing: { after: { backoff: 'trying' } },
      },
    },
    unsupported: { type: 'final', description: 'The agent does not offer push.' },
    ended: { type: 'final' },
  },
})
