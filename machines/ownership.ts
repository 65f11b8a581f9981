/**
 * Who holds a task, and by when. Independent of what the agent does, except that a finished task cannot be claimed.
 * Who may do what is decided before the event is sent (domain/access.ts); the clock is outside too: a due time arrives
 * with the milliseconds that are left.
 */
import { assign, emit, setup } from 'xstate'
import type { MachineFact } from '../domain/fact.ts'

export type OwnershipEvent =
  | { readonly type: 'claim'; readonly membershipId: string; readonly at: string }
  | { readonly type: 'release' }
  | { readonly type: 'assign'; readonly membershipId: string; readonly claimedAt: string | null }
  | { readonly type: 'setDue'; readonly dueAt: string; readonly inMs: number }
  | { readonly type: 'clearDue' }
  /** `targetMembershipId` is null where no rule names an eligible person: the level rises, the owner stays. */
  | { readonly type: 'escalate'; readonly targetMembershipId: string | null; readonly at: string }
  | { readonly type: 'settle' }

export const ownershipMachine = setup({
  types: {
    context: {} as {
      assignee: string | null
      claimedAt: string | null
      dueAt: string | null
      dueInMs: number
      level: number
      escalatedAt: string | null
    },
    events: {} as OwnershipEvent,
    emitted: {} as MachineFact,
  },
  delays: { untilDue: ({ context }) => Math.max(0, context.dueInMs) },
  guards: {
    isOwner: ({ context, event }) => event.type === 'claim' && event.membershipId === context.assignee,
    isSameDue: ({ context, event }) => event.type === 'setDue' && event.dueAt === context.dueAt,
    hasTarget: ({ event }) => event.type === 'escalate' && event.targetMembershipId !== null,
  },
  actions: {
    // The runtime turns this action into a refusal: the transaction rolls back and nothing has happened.
    refuse: (_, _params: { code: 'event.ignored' }) => undefined,
    takeOver: assign(({ event }) => {
      if (event.type === 'claim') return { assignee: event.membershipId, claimedAt: event.at }
      if (event.type === 'assign') return { assignee: event.membershipId, claimedAt: event.claimedAt }
      if (event.type === 'escalate' && event.targetMembershipId !== null)
        return { assignee: event.targetMembershipId, claimedAt: null }
      return {}
    }),
    letGo: assign({ assignee: null, claimedAt: null }),
    setDeadline: assign(({ event }) => (event.type === 'setDue' ? { dueAt: event.dueAt, dueInMs: event.inMs } : {})),
    clearDeadline: assign({ dueAt: null, dueInMs: 0 }),
    raiseLevel: assign(({ context, event }) =>
      event.type === 'escalate' ? { level: context.level + 1, escalatedAt: event.at } : {},
    ),
  },
}).createMachine({
  id: 'ownership',
  version: '1',
  description: 'Who holds a task and when it is due.',
  context: { assignee: null, claimedAt: null, dueAt: null, dueInMs: 0, level: 0, escalatedAt: null },
  initial: 'open',
  states: {
    open: {
      type: 'parallel',
      on: { settle: 'finished' },
      states: {
        holder: {
          initial: 'unowned',
          states: {
            unowned: {
              on: {
                claim: {
                  target: 'owned',
                  actions: [
                    'takeOver',
                    emit(({ event }) => ({ type: 'task.claimed' as const, membershipId: event.membershipId })),
                  ],
                },
                assign: {
                  target: 'owned',
                  actions: [
                    'takeOver',
                    emit(({ event }) => ({ type: 'task.assigned' as const, membershipId: event.membershipId })),
                  ],
                },
                escalate: { guard: 'hasTarget', target: 'owned', actions: 'takeOver' },
              },
            },
            owned: {
              on: {
                claim: [{ guard: 'isOwner' }, { actions: { type: 'refuse', params: { code: 'event.ignored' } } }],
                assign: {
                  actions: [
                    'takeOver',
                    emit(({ event }) => ({ type: 'task.assigned' as const, membershipId: event.membershipId })),
                  ],
                },
                release: { target: 'unowned', actions: ['letGo', emit({ type: 'task.released' })] },
                escalate: { guard: 'hasTarget', actions: 'takeOver' },
              },
            },
          },
        },
        deadline: {
          initial: 'none',
          states: {
            none: { on: { setDue: { target: 'ticking', actions: 'setDeadline' } } },
            ticking: {
              entry: emit(({ context }) => ({ type: 'task.due_set' as const, dueAt: context.dueAt ?? '' })),
              after: { untilDue: 'overdue' },
              on: {
                setDue: [{ guard: 'isSameDue' }, { target: 'ticking', reenter: true, actions: 'setDeadline' }],
                clearDue: { target: 'none', actions: ['clearDeadline', emit({ type: 'task.due_cleared' })] },
              },
            },
            overdue: {
              tags: 'attention',
              description: 'Escalated once, to the person that a rule names.',
              entry: emit({ type: 'task.fell_due' }),
              on: {
                escalate: { target: 'escalated', actions: 'raiseLevel' },
                setDue: { target: 'ticking', actions: 'setDeadline' },
                clearDue: { target: 'none', actions: ['clearDeadline', emit({ type: 'task.due_cleared' })] },
              },
            },
            escalated: {
              tags: 'attention',
              on: {
                setDue: { target: 'ticking', actions: 'setDeadline' },
                clearDue: { target: 'none', actions: ['clearDeadline', emit({ type: 'task.due_cleared' })] },
              },
            },
          },
        },
      },
    },
    finished: { type: 'final' },
  },
})
