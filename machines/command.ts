/**
 * The life of a command: find the agent, deliver once, say honestly how it ended. At-most-once is visible here: the one
 * way back from an interrupted delivery is `uncertain`, never `pending`. Does not know HTTP, A2A or the database.
 */
import { assign, emit, setup } from 'xstate'
import { commandErrors, discoveryInterrupted } from '../domain/command.ts'
import type { MachineFact } from '../domain/fact.ts'
import { work, type Interrupted } from './work.ts'

/**
 * Discovery happens before dispatch, so it may be repeated. `unavailable`: the agent or the saved input is gone for good.
 * `refused`: the card or the policy rules the agent out, so asking again cannot help.
 */
export type DiscoverOutcome =
  | { readonly kind: 'found' }
  /** `message`: why, in a sentence that is safe to show. Rows from before it was told have none. */
  | { readonly kind: 'missed'; readonly message?: string }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'refused'; readonly message: string }

/**
 * `refused`: the agent answered that it did nothing. `unsent`: provably no byte of the request left this process.
 * `unknown`: anything else without an answer; the agent may or may not have it.
 */
export type DeliverOutcome =
  | { readonly kind: 'replied' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'unsent'; readonly message: string }
  /** It answered for another skill than it was asked: it has the message, and nothing of the answer is kept. */
  | { readonly kind: 'crossed'; readonly message: string }
  /** `cause`: what happened instead of an answer, in a sentence that is safe to show. The log keeps it. */
  | { readonly kind: 'unknown'; readonly cause: string }

const attemptsLimit = 3
/** Deaths of whoever looks say nothing of the agent, and take no try from it; but one that ends process after process is given up. */
const interruptionsLimit = 10

export const commandMachine = setup({
  types: {
    context: {} as {
      attempts: number
      error: string | null
      /** Of looks for the agent, by the end of whoever looked; absent where there was none. */
      interruptions?: number
    },
    events: {} as Interrupted,
    emitted: {} as MachineFact,
  },
  actors: { discover: work<DiscoverOutcome>(), deliver: work<DeliverOutcome>() },
  delays: { backoff: ({ context }) => 1000 * 2 ** (context.attempts - 1) },
  actions: {
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    /** The attempt that follows is the one that was cut short. */
    countInterruption: assign(({ context: { attempts, interruptions = 0 } }) => ({
      attempts: attempts - 1,
      interruptions: interruptions + 1,
    })),
    failDiscovery: assign({ error: commandErrors.discovery }),
    failInterrupted: assign({ error: discoveryInterrupted }),
    failUnavailable: assign({ error: commandErrors.unavailable }),
    doubt: assign({ error: commandErrors.uncertain }),
    doubtAfterLease: assign({ error: commandErrors.leaseExpired }),
  },
  guards: {
    triesLeft: ({ context }) => context.attempts < attemptsLimit,
    mayBeginAnew: ({ context: { interruptions = 0 } }) => interruptions < interruptionsLimit,
  },
}).createMachine({
  id: 'command',
  version: '1',
  description: 'One send or cancel: discovered, delivered at most once, finished for ever.',
  context: { attempts: 0, error: null },
  entry: emit({ type: 'command.accepted' }),
  initial: 'pending',
  states: {
    pending: {
      description: 'Nothing has been sent. Discovery may be repeated, three times at most.',
      initial: 'discovering',
      states: {
        discovering: {
          entry: 'countAttempt',
          invoke: {
            id: 'discover',
            src: 'discover',
            onDone: [
              {
                guard: function agentFound({ event }) {
                  return event.output.kind === 'found'
                },
                target: '#command.dispatching',
                actions: emit({ type: 'command.discovered' }),
              },
              {
                guard: function agentGone({ event }) {
                  return event.output.kind === 'unavailable'
                },
                target: '#command.failed',
                actions: 'failUnavailable',
              },
              {
                guard: function agentRuledOut({ event }) {
                  return event.output.kind === 'refused'
                },
                target: '#command.failed',
                actions: assign({ error: ({ event }) => ('message' in event.output ? event.output.message : null) }),
              },
              { guard: 'triesLeft', target: 'waiting' },
              { target: '#command.failed', actions: 'failDiscovery' },
            ],
            onError: [
              { guard: 'triesLeft', target: 'waiting' },
              { target: '#command.failed', actions: 'failDiscovery' },
            ],
          },
          // Reading a card twice harms nobody, so an interrupted discovery starts over.
          on: {
            interrupted: [
              { guard: 'mayBeginAnew', target: 'discovering', reenter: true, actions: 'countInterruption' },
              { target: '#command.failed', actions: 'failInterrupted' },
            ],
          },
        },
        waiting: { after: { backoff: 'discovering' } },
      },
    },
    dispatching: {
      description: 'The request may be on the wire. From here there is no way back to pending.',
      invoke: {
        id: 'deliver',
        src: 'deliver',
        onDone: [
          {
            guard: function agentReplied({ event }) {
              return event.output.kind === 'replied'
            },
            target: 'succeeded',
          },
          {
            guard: function nothingWasDone({ event }) {
              return event.output.kind === 'refused' || event.output.kind === 'unsent'
            },
            target: 'failed',
            actions: assign({ error: ({ event }) => ('message' in event.output ? event.output.message : null) }),
          },
          {
            guard: function answerWasForAnother({ event }) {
              return event.output.kind === 'crossed'
            },
            target: 'failed',
            actions: assign({ error: ({ event }) => ('message' in event.output ? event.output.message : null) }),
          },
          { target: 'uncertain', actions: 'doubt' },
        ],
        onError: { target: 'uncertain', actions: 'doubt' },
      },
      on: { interrupted: { target: 'uncertain', actions: 'doubtAfterLease' } },
    },
    succeeded: { type: 'final', entry: emit({ type: 'command.succeeded' }) },
    failed: { type: 'final', tags: 'attention', entry: emit({ type: 'command.failed' }) },
    uncertain: {
      type: 'final',
      tags: 'attention',
      description: 'The agent may have it. A person decides what follows; nothing is resent.',
      entry: emit({ type: 'command.uncertain' }),
    },
  },
})
