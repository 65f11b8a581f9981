/**
 * Following one task: stream while the agent works, rest while it waits for a person, end when it is finished. Everything
 * here may be repeated (at-least-once): what arrives twice is folded once. Does not know streams, sockets or tasks' contents.
 */
import { assign, emit, setup } from 'xstate'
import type { MachineFact } from '../domain/fact.ts'
import { work, type Interrupted } from './work.ts'

/**
 * `waiting`: the agent waits for a person. `finished`: the task is terminal. `ended`: the stream closed while the agent
 * still works. `broken`: it could not be read. `unsupported`: the agent does not stream. `gone`: agent or task is no more.
 */
export type FollowOutcome =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'finished' }
  | { readonly kind: 'ended' }
  | { readonly kind: 'broken' }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'gone'; readonly reason: string }

/** A task was seen by somebody else: a reply, a push, a poll. `rearm`: a person has answered, so wake up even from rest. */
export type SubscriptionEvent = Interrupted | { readonly type: 'rearmed' } | { readonly type: 'settled' }

const backoffLimit = 5

export const subscriptionMachine = setup({
  types: {
    context: {} as {
      /** Failures in a row: the wait is 1 s doubled by each, 30 s at most. */
      failures: number
      /** Reads in a row that saw no end: the pause grows 2, 4, 8, 15 s. */
      reads: number
      reason: string | null
      /** A person answered since the agent last waited, so the old question is not a reason to stop. */
      answered: boolean
      /** A person answered while the stream was being followed, whose end may still tell of the question. */
      rearmed: boolean
    },
    events: {} as SubscriptionEvent,
    emitted: {} as MachineFact,
  },
  actors: { follow: work<FollowOutcome>(), read: work<FollowOutcome>() },
  delays: {
    backoff: ({ context }) => Math.min(30_000, 1000 * 2 ** Math.max(0, context.failures - 1)),
    readPause: ({ context }) => Math.min(15_000, 1000 * 2 ** context.reads),
  },
  actions: {
    countFailure: assign({ failures: ({ context }) => Math.min(context.failures + 1, backoffLimit + 1) }),
    forgetFailures: assign({ failures: 0 }),
    countRead: assign({ reads: ({ context }) => Math.min(context.reads + 1, 4) }),
    noteAnswer: assign({ answered: true, failures: 0, reads: 0 }),
    noteAnswerMeanwhile: assign({ answered: true, rearmed: true, failures: 0, reads: 0 }),
    forgetAnswer: assign({ answered: false, rearmed: false, failures: 0, reads: 0 }),
    beginAnew: assign({ rearmed: false }),
  },
}).createMachine({
  id: 'subscription',
  version: '1',
  description: 'Follows one task of an agent until nothing more can come by itself.',
  context: { failures: 0, reads: 0, reason: null, answered: false, rearmed: false },
  initial: 'following',
  on: { settled: '.finished' },
  states: {
    following: {
      entry: emit({ type: 'subscription.started' }),
      invoke: {
        id: 'follow',
        src: 'follow',
        onDone: [
          {
            guard: function taskFinished({ event }) {
              return event.output.kind === 'finished'
            },
            target: 'finished',
          },
          {
            guard: function answeredMeanwhile({ context, event }) {
              return event.output.kind === 'waiting' && context.rearmed
            },
            target: 'following',
            reenter: true,
            actions: 'beginAnew',
          },
          {
            guard: function agentWaits({ event }) {
              return event.output.kind === 'waiting'
            },
            target: 'resting',
          },
          {
            guard: function cannotStream({ event }) {
              return event.output.kind === 'unsupported'
            },
            target: 'polling',
          },
          {
            guard: function nobodyKnows({ event }) {
              return event.output.kind === 'gone'
            },
            target: 'stopped',
            actions: assign({
              reason: ({ event }) => (event.output.kind === 'gone' ? event.output.reason : null),
            }),
          },
          {
            guard: function streamEnded({ event }) {
              return event.output.kind === 'ended'
            },
            target: 'backingOff',
            actions: 'forgetFailures',
          },
          { target: 'backingOff', actions: 'countFailure' },
        ],
        onError: { target: 'backingOff', actions: 'countFailure' },
      },
      on: {
        interrupted: { target: 'following', reenter: true },
        rearmed: { actions: 'noteAnswerMeanwhile' },
      },
    },
    backingOff: {
      after: { backoff: 'following' },
      on: { rearmed: { target: 'following', actions: 'noteAnswer' } },
    },
    polling: {
      description: 'The agent does not stream: its task is read, at growing intervals.',
      initial: 'pausing',
      states: {
        pausing: { after: { readPause: 'reading' } },
        reading: {
          entry: 'countRead',
          invoke: {
            id: 'read',
            src: 'read',
            onDone: [
              {
                guard: function taskFinished({ event }) {
                  return event.output.kind === 'finished'
                },
                target: '#subscription.finished',
              },
              {
                guard: function agentWaits({ event }) {
                  return event.output.kind === 'waiting'
                },
                target: '#subscription.resting',
              },
              {
                guard: function nobodyKnows({ event }) {
                  return event.output.kind === 'gone'
                },
                target: '#subscription.stopped',
                actions: assign({
                  reason: ({ event }) => (event.output.kind === 'gone' ? event.output.reason : null),
                }),
              },
              { target: 'pausing' },
            ],
            onError: 'pausing',
          },
          on: { interrupted: { target: 'reading', reenter: true } },
        },
      },
      on: { rearmed: { target: 'polling', actions: 'noteAnswer', reenter: true } },
    },
    resting: {
      description: 'The agent waits for a person. A delivered reply wakes it.',
      entry: ['forgetAnswer', emit({ type: 'subscription.paused' })],
      on: { rearmed: { target: 'following', actions: 'noteAnswer' } },
    },
    stopped: {
      description: 'The agent or the task is gone. A later reply tries again.',
      tags: 'attention',
      entry: emit(({ context }) => ({ type: 'subscription.stopped' as const, reason: context.reason ?? 'unknown' })),
      on: { rearmed: { target: 'following', actions: 'noteAnswer' } },
    },
    finished: { type: 'final', entry: emit({ type: 'subscription.finished' }) },
  },
})
