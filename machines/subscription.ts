/**
 * Following one task: stream while the agent works, rest while it waits for a person, end when it is finished and was seen
 * whole. Everything here may be repeated (at-least-once): what arrives twice is folded once. Does not know streams, sockets or
 * tasks' contents.
 */
import { assign, emit, enqueueActions, setup } from 'xstate'
import type { MachineFact } from '../domain/fact.ts'
import { work, type Interrupted } from './work.ts'

/**
 * `waiting`: the agent waits for a person. `finished`: the task is terminal, and was seen whole or never can be, for the reason
 * `missing`. `leftOut`: what could not be read of the stream, where the whole task was looked at instead. `unseen`: it is terminal, and the look at the whole of it failed: something may be missing. `ended`: the agent was
 * heard and still works; `news` says whether following brought anything. `yielded`: a good stream made room for who had waited. `broken`: it
 * could not be read; `heard` says whether the agent gave any sign of life. `unsupported`: the agent does not stream.
 * `unreadable`: it is over a limit, and will be the next time. `gone`: agent or task is no more. Reasons are safe to show.
 */
export type FollowOutcome =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'finished'; readonly missing?: string; readonly leftOut?: string }
  | { readonly kind: 'unseen'; readonly leftOut?: string }
  | { readonly kind: 'ended'; readonly news: boolean; readonly leftOut?: string }
  | { readonly kind: 'yielded' }
  | { readonly kind: 'broken'; readonly reason: string; readonly heard: boolean }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'gone'; readonly reason: string }

/** A read has no stream to give up or to do without, and is itself a look at the whole task. */
export type ReadOutcome = Exclude<FollowOutcome, { kind: 'yielded' | 'unsupported' | 'unseen' }>

export type CloseOutcome = Extract<FollowOutcome, { kind: 'finished' | 'unseen' }>

/**
 * `rearmed`: a person has written and was heard, so wake up even from rest; `isUnasked`: the agent had asked nothing, so that no question of
 * before is to be passed over. `heard`: somebody else (a push, a poll) had news of the task. `found`: a look
 * shows it, which nobody follows. `isAtWork`: in a state in which the agent waits for nobody. `opened`: the agent gives the stream that was
 * asked for, and `closed`: that is over, or never was under this lease; told where streams had failed before, for people: whether it did well is
 * known only when following ends.
 * `settled`: the task ended in another's sight; `isPartial`: in an answer that does not show it whole; `isFollowed`: somebody is at its
 * stream, whose last words may still be on their way.
 */
export type SubscriptionEvent =
  | Interrupted
  | { readonly type: 'opened' | 'closed' }
  | { readonly type: 'rearmed'; readonly isUnasked?: true }
  | { readonly type: 'heard' | 'found'; readonly isAtWork?: true }
  | { readonly type: 'settled'; readonly isPartial: boolean; readonly isFollowed?: true }

/** Failures of an agent that answers do not count on: the pause stays at the specification's 30 s. */
const failuresHeard = 6
/**
 * Failures in a row without a sign of life, some three minutes of them, after which a person should know: the agent is away. It
 * is tried as before, every 30 s [specification: "Background loops"], and at once when somebody hears it.
 */
const failuresUntilAway = 10
/** Beyond the tenth, which is told once. */
const failuresCounted = 14
/** Nobody asks for a finished task once it is closed, so its looks outlast an agent that is started anew: some two minutes. */
const closingTriesLimit = 8

const failuresAfter = (failures: number, outcome: FollowOutcome): number => {
  if (outcome.kind === 'yielded' || (outcome.kind === 'ended' && outcome.news)) return 0
  const heard = outcome.kind === 'ended' || (outcome.kind === 'broken' && outcome.heard)
  return Math.min(failures + 1, heard ? failuresHeard : failuresCounted)
}

const longestBackoffMs = 30_000
const backoffMs = (failures: number): number => Math.min(longestBackoffMs, 1000 * 2 ** Math.max(0, failures - 1))

/** A defect of our own work: it is in the log, and people are told no more than that. */
const defect: FollowOutcome = { kind: 'broken', reason: 'Following the task failed.', heard: false }

const unseenWhole = 'The finished task could not be read as a whole.'

const reasonOf = (outcome: FollowOutcome): string | null => ('reason' in outcome ? outcome.reason : null)
const leftOutOf = (outcome: FollowOutcome): string | null => ('leftOut' in outcome ? (outcome.leftOut ?? null) : null)

/** Another has seen all of the task: of this outcome only what the stream left out is left to tell. */
const seenWhole = (outcome: FollowOutcome): FollowOutcome => {
  const leftOut = leftOutOf(outcome)
  return { kind: 'finished', ...(leftOut === null ? {} : { leftOut }) }
}

/** In these it reads the task itself, every 15 s at the least, once it has a place: whoever else reads would only repeat it. */
export const readingStates = [{ polling: 'pausing' }, { polling: 'reading' }] as const

export const subscriptionMachine = setup({
  types: {
    context: {} as {
      /** Attempts in a row that brought nothing: the wait is 1 s doubled by each, 30 s at most while the agent is there. */
      failures: number
      /** Reads in a row that saw no end: the pause grows 1, 2, 4, 8, 15 s. */
      reads: number
      /** Why it does not go well at the moment, in words for people; null while it does. */
      reason: string | null
      /** A person answered since the agent last waited, so the old question is not a reason to stop. */
      answered: boolean
      /** A person answered while the stream was being followed, whose end may still tell of the question. */
      rearmed: boolean
      /** Why it may not all have been seen, once it is finished; absent where it was, and in rows from before this was kept. */
      missing?: string
      /** The end was told while it was followed, in part or whole: nothing but that is to come of it. Absent where it was not. */
      ended?: 'part' | 'whole'
      /** The stream that is followed now is open, whatever failed before. Absent where nobody had to be told. */
      open?: true | undefined
      /** It was stopped over a limit of ours, which whatever else is heard does not change. Absent where it was not. */
      tooLarge?: boolean
    },
    events: {} as SubscriptionEvent,
    emitted: {} as MachineFact,
  },
  actors: { follow: work<FollowOutcome>(), read: work<ReadOutcome>(), close: work<CloseOutcome>() },
  delays: {
    backoff: ({ context }) => backoffMs(context.failures),
    absence: longestBackoffMs,
    readPause: ({ context }) =>
      Math.max(Math.min(15_000, 1000 * 2 ** context.reads), context.failures === 0 ? 0 : backoffMs(context.failures)),
  },
  actions: {
    countRead: assign({ reads: ({ context }) => Math.min(context.reads + 1, 4) }),
    noteAnswer: assign({
      answered: ({ context, event }) => context.answered || !('isUnasked' in event),
      failures: 0,
      reads: 0,
      reason: null,
    }),
    noteAnswerMeanwhile: assign({ answered: true, rearmed: true, failures: 0, reads: 0, reason: null }),
    forgetAnswer: assign({ answered: false, rearmed: false, failures: 0, reads: 0, reason: null }),
    forgetSilence: assign({ failures: 0, reason: null }),
    noteStop: assign(({ context }, { outcome }: { outcome: FollowOutcome }) => {
      const tooLarge = outcome.kind === 'unreadable'
      return { reason: reasonOf(outcome), ...((tooLarge || context.tooLarge !== undefined) && { tooLarge }) }
    }),
    beginAnew: assign({ rearmed: false, open: undefined }),
    noteOpen: assign({ open: true }),
    noteClosed: assign({ open: undefined }),
    /** 1 s, doubled to 30 s, apart after a look that failed; at once, then 2 s and so on where none was made. */
    beginClosing: assign({ failures: 1, reason: null }),
    countTry: assign({ failures: ({ context }) => context.failures + 1 }),
    noteEnd: assign(({ context, event }) =>
      event.type !== 'settled' ? {} : { ended: event.isPartial ? (context.ended ?? 'part') : ('whole' as const) },
    ),
    /** The last word of it: nobody will look again. */
    tellUnseen: enqueueActions(({ enqueue }) => {
      enqueue.assign({ missing: unseenWhole })
      enqueue.emit({ type: 'subscription.failing', reason: unseenWhole })
    }),
    tellMissing: enqueueActions(({ context, enqueue }, { outcome }: { outcome: FollowOutcome }) => {
      if (outcome.kind !== 'finished') return
      const unseen = outcome.missing === undefined ? null : `${unseenWhole} ${outcome.missing}`
      const missing = unseen ?? leftOutOf(outcome) ?? context.missing
      if (missing === undefined) return
      enqueue.assign({ missing })
      enqueue.emit({ type: 'subscription.failing', reason: missing })
    }),
    noteLeftOut: assign(({ context }, { outcome }: { outcome: FollowOutcome }) => {
      const missing = leftOutOf(outcome) ?? context.missing
      return missing === undefined ? {} : { missing }
    }),
    /** What is told is told once: when the reason changes, and when the agent has been silent for long. */
    judge: enqueueActions(({ context, enqueue }, { outcome }: { outcome: FollowOutcome }) => {
      const failures = failuresAfter(context.failures, outcome)
      const reason = reasonOf(outcome)
      enqueue.assign({ failures, reason })
      const missing = leftOutOf(outcome)
      if (missing !== null) enqueue.assign({ missing })
      if (reason !== null && (reason !== context.reason || failures === failuresUntilAway))
        enqueue.emit({ type: 'subscription.failing', reason })
      if (reason === null && context.reason !== null) enqueue.emit({ type: 'subscription.recovered' })
    }),
  },
  guards: {
    isUnasked: ({ event }) => event.type === 'rearmed' && event.isUnasked === true,
    isAtWork: ({ event }) => (event.type === 'heard' || event.type === 'found') && event.isAtWork === true,
    mayBeRead: ({ context }) => context.tooLarge !== true,
    isFollowed: ({ event }) => event.type === 'settled' && event.isFollowed === true,
    endedWhole: ({ context }) => context.ended === 'whole',
    endedInPart: ({ context }) => context.ended === 'part',
    toldInPart: ({ event }) => event.type === 'settled' && event.isPartial,
    closingTriesLeft: ({ context }) => context.failures < closingTriesLimit,
  },
}).createMachine({
  id: 'subscription',
  version: '1',
  description: 'Follows one task of an agent until nothing more can come by itself.',
  context: { failures: 0, reads: 0, reason: null, answered: false, rearmed: false },
  entry: emit({ type: 'subscription.started' }),
  initial: 'following',
  on: { settled: [{ guard: 'toldInPart', target: '.closing' }, { target: '.finished' }] },
  states: {
    following: {
      tags: 'round of streams',
      exit: 'beginAnew',
      invoke: {
        id: 'follow',
        src: 'follow',
        onDone: [
          {
            guard: function taskFinished({ context, event }) {
              return event.output.kind === 'finished' || context.ended === 'whole'
            },
            target: 'finished',
            actions: {
              type: 'tellMissing',
              params: ({ context, event }) => ({
                outcome: context.ended === 'whole' ? seenWhole(event.output) : event.output,
              }),
            },
          },
          {
            guard: function wholeNotSeen({ event }) {
              return event.output.kind === 'unseen'
            },
            target: 'closing.pausing',
            actions: { type: 'noteLeftOut', params: ({ event }) => ({ outcome: event.output }) },
          },
          {
            guard: 'endedInPart',
            target: 'closing',
            actions: { type: 'noteLeftOut', params: ({ event }) => ({ outcome: event.output }) },
          },
          {
            guard: function answeredMeanwhile({ context, event }) {
              return event.output.kind === 'waiting' && context.rearmed
            },
            target: 'following',
            reenter: true,
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
              return event.output.kind === 'gone' || event.output.kind === 'unreadable'
            },
            target: 'stopped',
            actions: { type: 'noteStop', params: ({ event }) => ({ outcome: event.output }) },
          },
          {
            guard: function silentForLong({ context, event }) {
              return failuresAfter(context.failures, event.output) >= failuresUntilAway
            },
            target: 'away',
            actions: { type: 'judge', params: ({ event }) => ({ outcome: event.output }) },
          },
          { target: 'backingOff', actions: { type: 'judge', params: ({ event }) => ({ outcome: event.output }) } },
        ],
        onError: [
          { guard: 'endedWhole', target: 'finished' },
          { guard: 'endedInPart', target: 'closing' },
          { target: 'backingOff', actions: { type: 'judge', params: { outcome: defect } } },
        ],
      },
      on: {
        opened: { actions: 'noteOpen' },
        closed: { actions: 'noteClosed' },
        settled: { guard: 'isFollowed', actions: 'noteEnd' },
        interrupted: { target: 'following', reenter: true },
        rearmed: [{ guard: 'isUnasked', actions: 'forgetSilence' }, { actions: 'noteAnswerMeanwhile' }],
      },
    },
    backingOff: {
      tags: 'round of streams',
      after: { backoff: 'following' },
      on: { rearmed: { target: 'following', actions: 'noteAnswer' } },
    },
    away: {
      tags: ['attention', 'round of streams'],
      description: 'The agent has given no sign of life for minutes. It is tried every 30 s.',
      after: { absence: 'following' },
      on: {
        rearmed: { target: 'following', actions: 'noteAnswer' },
        heard: { target: 'following', actions: 'forgetSilence' },
      },
    },
    polling: {
      description:
        'The agent does not stream: its task is read, at growing intervals. A delivered reply tries the stream again.',
      tags: 'round of reads',
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
                  return event.output.kind === 'gone' || event.output.kind === 'unreadable'
                },
                target: '#subscription.stopped',
                actions: { type: 'noteStop', params: ({ event }) => ({ outcome: event.output }) },
              },
              {
                guard: function silentForLong({ context, event }) {
                  return failuresAfter(context.failures, event.output) >= failuresUntilAway
                },
                target: 'away',
                actions: { type: 'judge', params: ({ event }) => ({ outcome: event.output }) },
              },
              { target: 'pausing', actions: { type: 'judge', params: ({ event }) => ({ outcome: event.output }) } },
            ],
            onError: { target: 'pausing', actions: { type: 'judge', params: { outcome: defect } } },
          },
          on: { interrupted: { target: 'reading', reenter: true } },
        },
        away: {
          tags: 'attention',
          description: 'The agent has given no sign of life for minutes. It is asked every 30 s.',
          after: { absence: 'reading' },
          on: { heard: { target: 'reading', actions: 'forgetSilence' } },
        },
      },
      // It may have learned to stream, and one that never offered it is not asked: following finds that out by the card.
      on: { rearmed: { target: 'following', actions: 'noteAnswer' } },
    },
    resting: {
      description:
        'The agent waits for a person. A delivered reply wakes it, and so does a task that goes on without one.',
      entry: ['forgetAnswer', emit({ type: 'subscription.paused' })],
      on: {
        rearmed: { target: 'following', actions: ['noteAnswer', emit({ type: 'subscription.started' })] },
        heard: { guard: 'isAtWork', target: 'following', actions: emit({ type: 'subscription.started' }) },
        found: { guard: 'isAtWork', target: 'following', actions: emit({ type: 'subscription.started' }) },
      },
    },
    stopped: {
      description:
        'The agent or the task is gone, or too large to be read. A later reply tries again, and what is gone once a look shows it again.',
      tags: 'attention',
      entry: emit(({ context }) => ({ type: 'subscription.stopped' as const, reason: context.reason ?? 'unknown' })),
      on: {
        rearmed: { target: 'following', actions: ['noteAnswer', emit({ type: 'subscription.started' })] },
        found: {
          guard: 'mayBeRead',
          target: 'following',
          actions: ['forgetSilence', emit({ type: 'subscription.started' })],
        },
      },
    },
    closing: {
      description:
        'The task is finished, and what it made may not all have been seen. It is read as a whole, eight times at most.',
      entry: 'beginClosing',
      initial: 'trying',
      states: {
        trying: {
          invoke: {
            id: 'close',
            src: 'close',
            onDone: [
              {
                guard: function lookedFor({ event }) {
                  return event.output.kind === 'finished'
                },
                target: '#subscription.finished',
                actions: { type: 'tellMissing', params: ({ event }) => ({ outcome: event.output }) },
              },
              { guard: 'closingTriesLeft', target: 'pausing', actions: 'countTry' },
              { target: '#subscription.finished', actions: 'tellUnseen' },
            ],
            onError: [
              { guard: 'closingTriesLeft', target: 'pausing', actions: 'countTry' },
              { target: '#subscription.finished', actions: 'tellUnseen' },
            ],
          },
          on: { interrupted: { target: 'trying', reenter: true } },
        },
        pausing: { after: { backoff: 'trying' } },
      },
    },
    finished: { type: 'final', entry: emit({ type: 'subscription.finished' }) },
  },
})
