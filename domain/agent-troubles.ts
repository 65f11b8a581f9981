/**
 * What stands in an agent's way here: that it cannot be read, which of its tasks cannot be followed, others' sends that it did
 * not get yet, and that all places it may have are taken. The shape that the browser checks with, and the words. Does not own the reading (persistence/agent-troubles.ts), one's
 * own sends (under-way.ts) or those that ended (unsettled-send.ts).
 */
import * as z from 'zod/mini'
import { answerBy } from './lost-answer.ts'
import { withStop, type Explanation, type Known } from './explanation.ts'
import {
  askedMeanwhile,
  isOverdue,
  nextTryOf,
  nothingLost,
  sinceKnown,
  unfollowedTasks,
  unreadTitle,
} from './unread-agent.ts'
import { leftWaiting, Untaken } from './untaken.ts'

const when = z.nullable(z.string())

/** The asking for what is unfinished in one of the agent's tenants, where it failed more than once. */
const FailedLooks = z.object({
  /** The actor of kind `reconciliation`. */
  id: z.string(),
  reason: z.nullable(z.string()),
  /** Since about when: the second failure is the first that is told. Null where the log does not go back so far. */
  since: when,
  /** Null while it is being tried. */
  nextTryAt: when,
})

const UnfollowedTask = z.object({
  localId: z.string(),
  title: z.string(),
  reason: z.nullable(z.string()),
  since: when,
  /** Null while it is being tried, and where nothing is tried by itself. */
  nextTryAt: when,
})
export type UnfollowedTask = z.infer<typeof UnfollowedTask>

/** One kind of what is done for it, of which it may have no more at once while some waits. */
const FullPlaces = z.object({
  kind: z.string(),
  /** For it, in all processes that work on it. */
  taken: z.number(),
  /** As many as it may have at the moment; more than `taken` where they are all places there are, and others have the rest. */
  places: z.number(),
  /** Among the first of what is due, whoever it is for. */
  waiting: z.number(),
  oldestDueAt: z.string(),
  /** Since when the oldest request to it is on its way; null where there is none. */
  requestSince: when,
})
type FullPlaces = z.infer<typeof FullPlaces>

/** Why nobody takes up what of them is due; null where nothing is for long, and absent from the release before. */
const untaken = z.optional(z.nullable(Untaken))

/** `GET /api/agents/{agentId}/troubles`: of what the viewer may see, by the database's clock `at`. */
export const AgentTroubles = z.object({
  at: z.string(),
  /** Those that failed most often; `count`: of all, among those that were searched; `isWhole`: and that those were all. */
  looks: z.object({ scopes: z.array(FailedLooks), count: z.number(), isWhole: z.boolean(), untaken }),
  /** The newest of them; `count`: of all, among those that were searched; `isWhole`: and that those were all. */
  unfollowed: z.object({ tasks: z.array(UnfollowedTask), count: z.number(), isWhole: z.boolean(), untaken }),
  /** Others' sends that wait, or are being delivered, for longer than a moment. */
  others: z.object({ count: z.number(), isWhole: z.boolean(), oldestAt: when }),
  /** Of sends to it and of its streams: where all places that it may have are taken, and something waits for one for longer than a moment. */
  full: z.array(FullPlaces),
  /** When its card was last read. */
  cardReadAt: when,
})
export type AgentTroubles = z.infer<typeof AgentTroubles>

/** Tenants of an agent are as many as its caller likes. */
export const looksShown = 20
export const looksSearched = 2_000
export const unfollowedShown = 3
/**
 * What people wait for, called as among the queues (queue-words.ts, whose other words an agent's page does without). Who asks it for
 * what was missed, or to call, has all the time there is.
 */
const waitedFor: Readonly<Record<string, string>> = { command: 'delivering messages', subscription: 'following tasks' }
export const kindsWithPlaces: readonly string[] = Object.keys(waitedFor)
/** Unfinished tasks of an agent that are looked at, the newest of a tenant first, whoever may see them. */
export const unfollowedSearched = 2_000

const earliest = (times: readonly (string | null)[]): string | null =>
  times.filter((time) => time !== null).toSorted()[0] ?? null

const at = (words: string, time: string | null): Known[] => (time === null ? [] : [{ words, at: time }])

const tasks = (count: number, isWhole: boolean): string =>
  count === 1 && isWhole ? '1 task' : `${count}${isWhole ? '' : '+'} tasks`

/** That it cannot be reached, and what that means for its tasks; null: it can, as far as is known. Its times are judged by `at`. */
export function unreachedWords({ at: seenAt, looks, unfollowed, cardReadAt }: AgentTroubles): Explanation | null {
  const { count, isWhole } = unfollowed
  const isUnread = looks.count > 0
  if (!isUnread && count === 0) return null
  const failing = [...looks.scopes, ...unfollowed.tasks]
  const reasons = new Set(failing.flatMap(({ reason }) => reason ?? []))
  const [reason] = reasons
  const nowMs = Date.parse(seenAt)
  const nextLook = earliest(looks.scopes.map(({ nextTryAt }) => nextTryAt))
  const nextFollow = earliest(unfollowed.tasks.map(({ nextTryAt }) => nextTryAt))
  const left = [
    // What the title tells of says why first.
    { next: nextLook, why: looks.untaken },
    { next: nextFollow, why: unfollowed.untaken },
  ].filter(({ next }) => next !== null && isOverdue(next, nowMs))
  const why = left.find((each) => each.why)?.why ?? null
  const inVain = unfollowedTasks(tasks(count, isWhole))
  return {
    tone: 'warn',
    title: isUnread ? unreadTitle : inVain,
    sentences: [
      ...(isUnread && count > 0 ? [`${inVain}.`] : []),
      ...(reason === undefined ? [] : [`Reason: ${withStop(reason)}`]),
      ...(left.length > 0
        ? [leftWaiting(why), nothingLost]
        : [askedMeanwhile(count === 1 && isWhole ? 'the task is' : 'its unfinished tasks are')]),
    ],
    known: [
      ...sinceKnown(earliest(failing.map(({ since }) => since))),
      // A card may still be shown by an agent of which nothing else can be read.
      ...at('It last showed its card', cardReadAt),
      ...nextTryOf('reconciliation', nextLook, nowMs),
      ...nextTryOf('subscription', nextFollow, nowMs),
    ],
    remedies: left.length > 0 ? ['see-queues'] : [],
  }
}

/** That no more can be done for it at once: what waits is not lost, and not stuck at a worker. */
export function fullWords({ kind, taken, places, waiting, oldestDueAt, requestSince }: FullPlaces): Explanation {
  const [isShared, isOne] = [taken < places, waiting === 1]
  const work = waitedFor[kind] ?? kind
  const held = isShared
    ? `It has ${taken} of ${places} places, and others have the rest.`
    : `${taken} of ${places} places are taken.`
  return {
    tone: 'warn',
    title: isShared ? `No place is left for ${work}` : `All its places for ${work} are taken`,
    sentences: [
      `${held} ${waiting} ${isOne ? 'waits' : 'wait'} for one, and ${isOne ? 'begins' : 'each begins'} ${isShared ? 'when its turn comes' : 'as soon as one is free'}.`,
    ],
    known: [
      ...at(isOne ? 'Due' : 'The oldest was due', oldestDueAt),
      ...at('The first place is free by about', requestSince === null ? null : answerBy(requestSince)),
    ],
    remedies: [],
  }
}

/** Of what others sent; null: nothing of it waits. */
export function othersWords({ others: { count, isWhole, oldestAt } }: AgentTroubles): Explanation | null {
  if (count === 0) return null
  const one = count === 1 && isWhole
  return {
    tone: 'quiet',
    title: one
      ? '1 send of others is not delivered yet'
      : `${count}${isWhole ? '' : '+'} sends of others are not delivered yet`,
    sentences: [],
    known: at(one ? 'Accepted' : 'The oldest was accepted', oldestAt),
    remedies: [],
  }
}
