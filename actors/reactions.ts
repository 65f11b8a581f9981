/**
 * What follows from what, in the same transaction: one table. A reaction may spawn anything, and may send only to actors that
 * were locked with the batch's own, all at once and by kind and id: those of a reported task (`foresee` in observe.ts).
 * Implementations live beside their nouns.
 */
import { observe } from './observe.ts'
import { finishOwnership } from './ownership.ts'
import { endPush } from './push-reactions.ts'
import type { Reactions } from './loop/reaction.ts'
import { keepLook, noteLostTasks, seekCommand } from './reconciliation-reactions.ts'
import { rearmSubscription, endSubscription, resumeSubscription } from './subscription-reactions.ts'

export const reactions: Reactions = [
  ['agent.reported', [observe]],
  ['task.observed', [rearmSubscription]],
  ['task.seen_again', [resumeSubscription]],
  ['task.settled', [finishOwnership, endSubscription, endPush]],
  ['command.uncertain', [seekCommand]],
  ['command.looked_for', [keepLook]],
  ['reconciliation.unanswered', [noteLostTasks]],
]
