/** When a task needs to be followed, when again, and when no longer: the reactions of a subscription. */
import { isSettled, isTerminal, isWaiting } from '../domain/task.ts'
import type { ActorRef } from '../persistence/actors.ts'
import type { SubscriptionEvent } from '../machines/subscription.ts'
import type { Spawn } from './loop/step.ts'
import type { Reaction } from './loop/reaction.ts'

/** A task that an agent works on is followed; a reply wakes a subscription that rests. The stream itself needs no telling. */
export const rearmSubscription: Reaction = (_batch, told) => {
  const spawns: Spawn[] = []
  const sends: { ref: ActorRef; event: SubscriptionEvent }[] = []
  for (const { organizationId, subjectId, fact } of told) {
    if (fact.type !== 'task.observed' || isTerminal(fact.state)) continue
    if (!fact.sources.includes('reply')) {
      // News by another way: an agent that was given up for away is there again, or goes on by itself.
      if (!fact.sources.some((source) => source === 'push' || source === 'poll')) continue
      // What began with a question had none to hear it yet.
      if (!isWaiting(fact.state)) spawns.push(followerOf(organizationId, subjectId, fact.agentId))
      sends.push(signOf('heard', subjectId, fact.state))
      continue
    }
    if (fact.created && isSettled(fact.state)) continue
    // A reply that is already the next question leaves nothing to follow: the next answer will wake it.
    if (fact.asksAnew) continue
    const follower = followerOf(organizationId, subjectId, fact.agentId)
    spawns.push({ ...follower, isNew: fact.created })
    if (fact.created) continue
    sends.push({ ref: follower.ref, event: { type: 'rearmed', ...(fact.wasAsking ? {} : { isUnasked: true }) } })
  }
  return Promise.resolve({ spawns, sends })
}

const followerOf = (organizationId: string, taskId: string, agentId: string): Spawn => ({
  ref: { kind: 'subscription', id: taskId },
  lane: agentId,
  isNew: false,
  organizationId,
  cause: 'reaction',
})

const signOf = (type: 'heard' | 'found', id: string, state: string): { ref: ActorRef; event: SubscriptionEvent } => ({
  ref: { kind: 'subscription', id },
  event: { type, ...(isWaiting(state) ? {} : { isAtWork: true }) },
})

/** What nobody follows is followed again, where it is still unfinished: how it stands by now is what following finds out. */
export const resumeSubscription: Reaction = (_batch, told) =>
  Promise.resolve({
    sends: told.flatMap(({ subjectId, fact }) =>
      fact.type === 'task.seen_again' && !isTerminal(fact.state) ? [signOf('found', subjectId, fact.state)] : [],
    ),
  })

/**
 * Whoever follows a task sees its end and says so; only an end that came another way is news to the subscription. It hears it
 * in the same commit: nobody asks for a finished task again, and so nobody would tell it later. Who is at its stream meanwhile goes
 * on (last-words.ts): the row knows of the end when they report. A task that only ever waited for
 * people had none: it gets one to see what the end left out, unless the very first answer was that end.
 */
export const endSubscription: Reaction = (batch, told) => {
  const spawns: Spawn[] = []
  const sends: { ref: ActorRef; event: SubscriptionEvent }[] = []
  for (const { organizationId, subjectId, fact } of told) {
    if (fact.type !== 'task.settled' || fact.byFollower) continue
    const follower = followerOf(organizationId, subjectId, fact.agentId)
    const { ref } = follower
    const isFollowed = batch.isAtWork(ref, 'follow')
    const isUnseen = fact.isPartial && !fact.created
    if (isUnseen) spawns.push(follower)
    sends.push({ ref, event: { type: 'settled', isPartial: fact.isPartial, ...(isFollowed && { isFollowed }) } })
  }
  return Promise.resolve({ spawns, sends })
}
