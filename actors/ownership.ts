/**
 * Ownership as an actor: its kind, its projection, and what a finished task means for it. Who may claim or assign, and the
 * routes, come with the inbox; the states are here from the first day.
 */
import { ownershipMachine } from '../machines/ownership.ts'
import { projectOwnership } from '../persistence/ownership.ts'
import type { Kind } from './loop/kinds.ts'
import type { Reaction } from './loop/reaction.ts'

/** A finished task cannot be claimed any more. Tasks that nobody ever claimed have no such actor. */
export const finishOwnership: Reaction = (_batch, told) =>
  Promise.resolve({
    sends: told.map(({ subjectId }) => ({ ref: { kind: 'ownership', id: subjectId }, event: { type: 'settle' } })),
  })

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

export const ownershipKind: Kind = {
  machine: ownershipMachine,
  pollMs: 1000,
  leaseMs: 15_000,
  concurrency: 16,
  laneLimit: 16,
  claimLimit: 50,
  work: {},
  repeatable: new Set(),
  // A task ends whoever owns it.
  mayMiss: new Set(['settle']),
  byCalendar: true,
  project: (batch, moved) =>
    projectOwnership(
      batch.tx,
      moved.map(({ ref, snapshot: { context, status } }) => ({
        taskId: ref.id,
        assigneeMembershipId: text(context['assignee']),
        claimedAt: text(context['claimedAt']),
        dueAt: text(context['dueAt']),
        escalationLevel: typeof context['level'] === 'number' ? context['level'] : 0,
        escalatedAt: text(context['escalatedAt']),
        open: status === 'active',
      })),
      batch.at.toISOString(),
    ),
}
