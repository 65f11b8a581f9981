/**
 * Reconciling one scope, an agent's tenant: ask for each unfinished task, now and then for the agent's list, rest where
 * nothing is unfinished. Everything here may be repeated: what was known already changes nothing. Does not know which tasks
 * there are, what an agent says, or who wakes a scope that rests (actors/reconciliation.ts).
 */
import { assign, emit, enqueueActions, setup } from 'xstate'
import type { MachineFact } from '../domain/fact.ts'
import { work, type Interrupted } from './work.ts'

/**
 * `more`: there are tasks after the cursor. `busy`: all were asked for, and some are unfinished. `idle`: none is unfinished.
 * `gone`: the agent was removed. `failed`: the agent could not be read; the pass goes on after the cursor, so that one task
 * that cannot be read does not keep the others from being asked for, and `progressed` says whether any other was read. Progress
 * and no cursor: that was the end of the pass. `isListOld`: the list was read longer ago than four quick passes take.
 * `isSlow`: an answer took long, or was not waited for any longer by a reader that is for quick ones; absent where none was heard.
 */
export type CheckOutcome = (
  | { readonly kind: 'more'; readonly after: string | null }
  | { readonly kind: 'busy' }
  | { readonly kind: 'idle' }
  | { readonly kind: 'gone'; readonly reason: string }
  | {
      readonly kind: 'failed'
      readonly reason: string
      readonly after: string | null
      readonly progressed: boolean
    }
) & { readonly isListOld?: boolean; readonly isSlow?: boolean }

/**
 * `unsupported`: agents of A2A 0.3, and those that say so, have no list. `cut`: it was not waited for by a reader that is for quick
 * ones. `at`: when it was asked for, ISO 8601. `unread`: how many of its entries could not be read.
 */
export type ListOutcome = (
  | { readonly kind: 'listed'; readonly unread?: number }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'cut' }
  | { readonly kind: 'failed'; readonly reason: string }
) & { readonly at?: string; readonly isSlow?: boolean }

/** The scope has something to look at. Brings its name, for a machine is born without one. */
export interface Wanted {
  readonly type: 'wanted'
  readonly agentId: string
  readonly tenant: string
}

/** In these it hears that it is wanted: at work it looks anyway, and an agent that fails is not asked sooner. */
export const callableStates = ['resting', 'pausing'] as const

/** A list after every fourth pass of gets: 60 s to their 15 s. */
const passesPerList = 4
/** 1 s doubled six times is over the limit of 60 s. */
const failuresLimit = 7
/** Quick answers after which an agent is not called slow any more: two passes with a list each. */
const quickLooks = 10

const isListDue = (passes: number, { isListOld }: CheckOutcome): boolean =>
  passes + 1 >= passesPerList || isListOld === true
/** It answers, only not for one task. */
const isOfOneTask = (outcome: CheckOutcome): outcome is CheckOutcome & { kind: 'failed' } =>
  outcome.kind === 'failed' && outcome.progressed

const cursorIn = (outcome: CheckOutcome): { after?: string | null } =>
  outcome.kind === 'more' ? { after: outcome.after } : {}
const failureIn = (outcome: CheckOutcome): { after?: string | null; reason?: string } =>
  outcome.kind === 'failed' ? { after: outcome.after, reason: outcome.reason } : {}

const listIn = (outcome: ListOutcome): { listReason: string | null; listedAt?: string; listUnread?: number } => ({
  listReason: outcome.kind === 'failed' ? outcome.reason : null,
  ...(outcome.at === undefined ? {} : { listedAt: outcome.at }),
  ...(outcome.kind === 'listed' && outcome.unread !== undefined ? { listUnread: outcome.unread } : {}),
})

/** With what a look ended; one that was interrupted says nothing of the agent. */
type Ended = { readonly type: string; readonly output?: { readonly isSlow?: boolean } }
function paceAfter(slow: number, event: Ended): { slow?: number } {
  const isSlow = event.output?.isSlow
  if (isSlow === undefined) return {}
  if (isSlow) return { slow: quickLooks }
  return slow > 0 ? { slow: slow - 1 } : {}
}

export const reconciliationMachine = setup({
  types: {
    context: {} as {
      agentId: string | null
      tenant: string
      /** The last task that this pass asked for; null where a pass begins. */
      after: string | null
      /** Passes since the last list, those that failed included. */
      passes: number
      /** Failures in a row: the wait is 1 s doubled by each, 60 s at most. */
      failures: number
      /** Why the last look failed, for people; null once one succeeded. */
      reason: string | null
      /** The same of the last list. */
      listReason: string | null
      /** When the list was asked for last, ISO 8601; not there before the first time. */
      listedAt?: string
      /** How many quick answers it takes until the agent is not called slow any more; not there before it was slow. */
      slow?: number
      /** How many entries of the list that was read last could not be. */
      listUnread?: number
    },
    events: {} as Interrupted | Wanted,
    emitted: {} as MachineFact,
  },
  actors: { check: work<CheckOutcome>(), list: work<ListOutcome>() },
  delays: {
    checkPause: 15_000,
    breath: 1_000,
    backoff: ({ context }) => Math.min(60_000, 1000 * 2 ** Math.max(0, context.failures - 1)),
  },
  actions: {
    countFailure: assign({ failures: ({ context }) => Math.min(context.failures + 1, failuresLimit) }),
    tellTrouble: enqueueActions(({ context, enqueue }) => {
      // One failure is weather; the second in a row is told, once.
      if (context.failures !== 2) return
      enqueue.emit({ type: 'reconciliation.failing', reason: context.reason ?? 'unknown' })
    }),
    tellRecovery: enqueueActions(({ context, enqueue }) => {
      if (context.failures > 1) enqueue.emit({ type: 'reconciliation.recovered' })
    }),
    forgetFailures: assign({ failures: 0, reason: null }),
    beginAnew: assign({ after: null }),
    countPass: assign({ passes: ({ context }) => Math.min(context.passes + 1, passesPerList) }),
    forgetPasses: assign({ passes: 0 }),
    notePace: assign(({ context, event }) => paceAfter(context.slow ?? 0, event)),
    noteDefect: assign({ reason: 'The look could not be finished.' }),
    noteListDefect: assign({ listReason: 'The list could not be read.' }),
  },
}).createMachine({
  id: 'reconciliation',
  version: '1',
  description: 'Asks an agent for what is unfinished in one of its tenants, so that missed events heal.',
  context: { agentId: null, tenant: '', after: null, passes: 0, failures: 0, reason: null, listReason: null },
  initial: 'resting',
  states: {
    resting: {
      description: 'Nothing is unfinished: no timer, no work, no cost.',
      on: {
        wanted: {
          target: 'checking',
          actions: [
            assign({ agentId: ({ event }) => event.agentId, tenant: ({ event }) => event.tenant }),
            'beginAnew',
            emit({ type: 'reconciliation.woken' }),
          ],
        },
      },
    },
    checking: {
      tags: 'round of looks',
      description: 'Asks for each unfinished task.',
      exit: 'notePace',
      invoke: {
        id: 'check',
        src: 'check',
        onDone: [
          {
            guard: function listMayTellOfOneTask({ context, event }) {
              return isOfOneTask(event.output) && isListDue(context.passes, event.output)
            },
            target: 'listing',
            actions: ['tellRecovery', 'forgetFailures', assign(({ event }) => failureIn(event.output))],
          },
          {
            // Also of one that is silent: some hang where they are asked for a task, and list it.
            guard: function onlyItsListMayHelp({ context, event }) {
              return event.output.kind === 'failed' && isListDue(context.passes, event.output)
            },
            target: 'listing',
            actions: [assign(({ event }) => failureIn(event.output)), 'countFailure', 'tellTrouble'],
          },
          {
            guard: function allButOneWereRead({ event }) {
              return isOfOneTask(event.output) && event.output.after === null
            },
            target: 'pausing',
            actions: ['tellRecovery', 'forgetFailures', assign(({ event }) => failureIn(event.output)), 'countPass'],
          },
          {
            guard: function oneTaskFailed({ event }) {
              return isOfOneTask(event.output)
            },
            target: 'backingOff',
            actions: [
              'tellRecovery',
              'forgetFailures',
              assign(({ event }) => failureIn(event.output)),
              'countFailure',
              'countPass',
            ],
          },
          {
            guard: function agentFailed({ event }) {
              return event.output.kind === 'failed'
            },
            target: 'backingOff',
            actions: [assign(({ event }) => failureIn(event.output)), 'countFailure', 'countPass', 'tellTrouble'],
          },
          {
            guard: function agentGone({ event }) {
              return event.output.kind === 'gone'
            },
            target: 'resting',
            actions: [
              'beginAnew',
              assign({
                reason: ({ event }) => (event.output.kind === 'gone' ? event.output.reason : null),
                failures: 0,
              }),
              emit({ type: 'reconciliation.rested' }),
            ],
          },
          {
            guard: function moreTasksThanTime({ event }) {
              return event.output.kind === 'more' && event.output.isListOld === true
            },
            target: 'listing',
            actions: ['tellRecovery', 'forgetFailures', assign(({ event }) => cursorIn(event.output))],
          },
          {
            guard: function moreTasks({ event }) {
              return event.output.kind === 'more'
            },
            target: 'yielding',
            actions: ['tellRecovery', 'forgetFailures', assign(({ event }) => cursorIn(event.output))],
          },
          {
            guard: function nothingUnfinished({ event }) {
              return event.output.kind === 'idle'
            },
            target: 'resting',
            actions: ['tellRecovery', 'forgetFailures', 'beginAnew', emit({ type: 'reconciliation.rested' })],
          },
          {
            guard: function listIsDue({ context, event }) {
              return isListDue(context.passes, event.output)
            },
            target: 'listing',
            actions: ['tellRecovery', 'forgetFailures', 'beginAnew'],
          },
          { target: 'pausing', actions: ['tellRecovery', 'forgetFailures', 'beginAnew', 'countPass'] },
        ],
        onError: { target: 'backingOff', actions: ['noteDefect', 'countFailure', 'tellTrouble'] },
      },
      on: { interrupted: { target: 'checking', reenter: true } },
    },
    yielding: {
      tags: 'round of looks',
      description: 'Leaves its place to another scope before it goes on.',
      after: { breath: 'checking' },
    },
    listing: {
      tags: 'round of looks',
      description: "Reads the agent's list of tasks, as far as a bound.",
      exit: 'notePace',
      invoke: {
        id: 'list',
        src: 'list',
        onDone: [
          {
            // It comes again, to the reader that waits.
            guard: function listWasCutShort({ event }) {
              return event.output.kind === 'cut'
            },
            target: 'yielding',
          },
          {
            // Whatever the list told: its tasks are not asked for sooner.
            guard: function tasksStayUnread({ context }) {
              return context.failures > 0
            },
            target: 'backingOff',
            actions: ['forgetPasses', assign(({ event }) => listIn(event.output))],
          },
          {
            guard: function passGoesOn({ context, event }) {
              return context.after !== null && event.output.kind !== 'failed'
            },
            target: 'yielding',
            actions: ['forgetPasses', assign(({ event }) => listIn(event.output))],
          },
          { target: 'pausing', actions: ['forgetPasses', assign(({ event }) => listIn(event.output))] },
        ],
        onError: { target: 'pausing', actions: ['forgetPasses', 'noteListDefect'] },
      },
      on: { interrupted: { target: 'listing', reenter: true } },
    },
    pausing: {
      tags: 'round of looks',
      after: { checkPause: 'checking' },
      on: { wanted: { target: 'checking', actions: 'beginAnew' } },
    },
    backingOff: {
      tags: 'round of looks',
      description: 'The agent could not be read: 1 s, doubled to 60 s.',
      after: { backoff: 'checking' },
    },
  },
})
