/**
 * Where an actor is and why, in words for a person: what happened, what the console will and will not do by itself, what is
 * known, what a person can do next. Owns the sentences for every state of every kind; which states need an eye is the
 * machines' own tag, and a test holds the two together. Commands' ends are command-explanation.ts.
 */
import { waiting, waitSentences } from './actor-wait.ts'
import { pathsOf, spaced, type ActorDetail } from './chart.ts'
import { explainCommand } from './command-explanation.ts'
import { listOf, withStop, type Explanation, type Known, type Remedy } from './explanation.ts'
import { answerBy, answerDeadlineMs } from './lost-answer.ts'
import { failedOften, isAbandoned, isHolderSilent, streamOpenAfterMs } from './patience.ts'
import { firstTimer, leftSince, type Seen } from './seen-actor.ts'
import {
  agentRemoved,
  askedMeanwhile,
  isOverdue,
  nextTryOf,
  nothingLost,
  sinceKnown,
  taskForgotten,
  unfollowedTitle,
  unreadTitle,
} from './unread-agent.ts'

const quiet = (title: string, ...sentences: readonly string[]): Explanation => ({
  tone: 'quiet',
  title,
  sentences,
  known: [],
  remedies: [],
})
const warn = (title: string, remedies: readonly Remedy[], ...sentences: readonly (string | null)[]): Explanation => ({
  tone: 'warn',
  title,
  sentences: sentences.filter((sentence) => sentence !== null),
  known: [],
  remedies,
})

/** "Reason: the agent was removed.", with one full stop; null where none is stored. */
function reason({ actor: { context } }: Seen): string | null {
  const said = context['reason']
  if (typeof said !== 'string' || said.trim() === '') return null
  return `Reason: ${withStop(said)}`
}

/** "This is try 2 of 3.", "4 tries in a row failed.", by a count that the machine keeps; null where it keeps none. */
function tries({ actor: { context } }: Seen, field: string, of: number | null): string | null {
  const count = context[field]
  if (typeof count !== 'number' || count < 1) return null
  return of === null ? `${count} ${count === 1 ? 'try' : 'tries'} in a row failed.` : `This is try ${count} of ${of}.`
}

/** A machine that keeps its reason only while it does not go well. */
const isTroubled = (seen: Seen): boolean => reason(seen) !== null && failedOften(seen.actor.context)

/** What failed before is over once a stream is open: its machine was told so, or opening it would have failed by now. */
const isStreaming = ({ at, actor: { context, work, lease } }: Seen): boolean =>
  typeof work?.startedAt === 'string' &&
  lease !== null &&
  Date.parse(lease.until) > Date.parse(at) &&
  (context['open'] === true || Date.parse(at) - Date.parse(work.startedAt) >= streamOpenAfterMs)

/** Due work is not done while nobody has taken it up. */
const isUnbegun = ({ wait, untaken, actor: { work, lease } }: Seen): boolean =>
  wait !== null || untaken !== null || (work !== null && lease === null)
const triedNow = (seen: Seen): string => {
  if (isUnbegun(seen)) return 'It is due to be tried again, and has not been begun.'
  return isHolderSilent(seen)
    ? 'It was being tried again when its worker was last heard of.'
    : 'It is tried again right now.'
}

/** Nobody takes it up, so who would ask for the task meanwhile is not promised either. */
const isLeft = (seen: Seen): boolean => {
  if (seen.wait !== null) return seen.wait.taken.length === 0
  return seen.untaken === 'nobody' || leftSince(seen) !== null
}

/** Who reads by itself is asked for by nobody else. */
const goesOn = (seen: Seen): string => (isLeft(seen) || readsItself(seen) ? nothingLost : askedMeanwhile('the task is'))

const readsItself = ({ actor: { kind, value } }: Seen): boolean =>
  kind === 'subscription' && typeof value !== 'string' && value['polling'] !== undefined && value['polling'] !== 'away'

const away = (seen: Seen): Explanation =>
  warn(
    unreadTitle,
    ['open-agent', 'open-task'],
    'Following the task has failed for minutes. It is tried again every 30 seconds, and as soon as anything is heard of the agent.',
    reason(seen),
    goesOn(seen),
  )

const troubled = (title: string, ...sentences: readonly string[]): Explanation =>
  warn(title, ['open-agent'], ...sentences)

function listTrouble({ actor: { context } }: Seen): string | null {
  const said = context['listReason']
  if (typeof said === 'string') return `Its list could not be read: ${withStop(said)}`
  const unread = context['listUnread']
  if (typeof unread !== 'number' || unread === 0) return null
  return unread === 1
    ? 'One entry of its list could not be read, and was passed over.'
    : `${unread} entries of its list could not be read, and were passed over.`
}

const askedForAll = (seen: Seen): string =>
  reason(seen) === null
    ? 'Everything unfinished was asked for.'
    : 'Everything unfinished was asked for, and not for everything there was an answer; that is asked for more rarely.'

/** Until when an answer is waited for: from the commit that marks the request begun, so a little sooner than to the last byte. */
const answerDue = ({ actor: { work } }: Seen): Known[] =>
  work?.startedAt ? [{ words: 'It has time until about', at: answerBy(work.startedAt) }] : []

/** A removed agent gets no reply and no look. Whatever else is known of why it stopped is that it was too large. */
function followedAgain(seen: Seen): string {
  const why = seen.actor.context['reason']
  if (why === agentRemoved) return 'Once the agent is added again, a look that shows the task starts following again.'
  const byReply = 'A reply that is delivered to the task starts following again.'
  const isTooLarge = reason(seen) !== null && why !== taskForgotten
  if (isTooLarge) return byReply
  return `${byReply} So does a look that shows the task again${why === taskForgotten ? '' : ', unless it was too large'}.`
}

/** How often and when it was asked in vain: the last try of them is not counted on, for none comes after it. */
function givenUp({ actor: { context, movedAt } }: Seen): Known[] {
  const { failures } = context
  const tries = typeof failures === 'number' && failures > 0 ? ` after ${failures + 1} tries` : ''
  return [{ words: `Given up${tries}`, at: movedAt }]
}

type Explain = (seen: Seen, nowMs: number) => Explanation

const ended =
  (status: 'failed' | 'uncertain'): Explain =>
  ({ actor, delivery, evidence, settlement }, nowMs) => {
    const error = typeof actor.context['error'] === 'string' ? actor.context['error'] : null
    const action = delivery?.action ?? 'send'
    return explainCommand({ status, error, action }, nowMs, delivery, evidence, settlement) ?? quiet(status)
  }

/** By kind and the path to the live state. What is missing here is told in the machine's own words, see `unknown`. */
const table: Readonly<Record<string, Explain>> = {
  'command pending.discovering': (seen) =>
    quiet(
      'Finding the agent',
      ...listOf('The agent’s card is read before anything is sent. Nothing has left yet.', tries(seen, 'attempts', 3)),
    ),
  'command pending.waiting': (seen) =>
    quiet(
      'Waiting to try again',
      ...listOf('The agent’s card could not be read. Nothing has left yet.', tries(seen, 'attempts', 3)),
    ),
  'command dispatching': (seen) => ({
    ...quiet(
      'Being delivered',
      'The request may be on the wire. It is sent once: if its process goes away now, the outcome is unknown and a person decides.',
      `The agent has ${answerDeadlineMs / 1000} s to answer; without an answer by then the outcome is unknown too.`,
    ),
    known: answerDue(seen),
  }),
  'command succeeded': ({ delivery }) =>
    quiet('Delivered', 'The agent answered, and its answer is stored.', ...(delivery?.cause ? [delivery.cause] : [])),
  'command failed': ended('failed'),
  'command uncertain': ended('uncertain'),
  'subscription following': (seen) =>
    isTroubled(seen) && !isStreaming(seen)
      ? warn(unfollowedTitle, ['open-agent'], reason(seen), tries(seen, 'failures', null), triedNow(seen), goesOn(seen))
      : quiet('Following', 'The agent’s stream is read, and what it brings is stored as it comes.'),
  'subscription backingOff': (seen) =>
    isTroubled(seen)
      ? warn(unfollowedTitle, ['open-agent'], reason(seen), tries(seen, 'failures', null), goesOn(seen))
      : quiet('Waiting to follow again', 'The stream is over and the agent still works, so it is followed again.'),
  'subscription away': (seen) => away(seen),
  'subscription polling.away': (seen) => away(seen),
  'subscription polling.pausing': (seen) =>
    isTroubled(seen)
      ? warn(unfollowedTitle, ['open-agent'], reason(seen), tries(seen, 'failures', null), goesOn(seen))
      : quiet(
          'Read at intervals',
          'The agent does not stream, so its task is read again and again, less often as it goes on.',
        ),
  'subscription polling.reading': (seen) =>
    isTroubled(seen)
      ? warn(unfollowedTitle, ['open-agent'], reason(seen), tries(seen, 'failures', null), triedNow(seen), goesOn(seen))
      : quiet('Reading the task', 'The agent does not stream; its task is read now.'),
  'subscription resting': () =>
    quiet(
      'At rest',
      'The agent waits for a person, so nothing should come by itself. A delivered reply wakes it, and so does a look that finds the task at work.',
    ),
  'subscription stopped': (seen) =>
    warn(
      'No longer followed',
      ['open-task', 'open-agent'],
      reason(seen) ?? 'The agent or its task is gone, or too large to be read.',
      'The task is not followed any more, and may be further than it shows.',
      followedAgain(seen),
    ),
  'subscription closing.trying': () =>
    quiet('Reading the end', 'The task is finished; it is read once more as a whole, so that nothing of it is missed.'),
  'subscription closing.pausing': () =>
    quiet(
      'Waiting to read the end',
      'The finished task could not be read as a whole. It is read again, eight times at most, for some two minutes.',
    ),
  'subscription finished': ({ actor: { context } }) =>
    typeof context['missing'] === 'string'
      ? warn(
          'Not all of it may be here',
          ['open-agent'],
          'The task is finished; nothing more can come.',
          context['missing'],
        )
      : quiet('Finished', 'The task is finished; nothing more can come.'),
  'ownership open.holder.unowned': () => quiet('Nobody’s', 'Nobody has claimed the task.'),
  'ownership open.holder.owned': () => quiet('Owned', 'One person holds the task.'),
  'ownership open.deadline.none': () => quiet('No due time', 'The task may take as long as it takes.'),
  'ownership open.deadline.ticking': () => quiet('Due', 'When the due time passes, the task is overdue.'),
  'ownership open.deadline.overdue': () =>
    warn('Overdue', ['open-task'], 'The due time has passed. Finish the task, or set a later time.'),
  'ownership open.deadline.escalated': () =>
    warn('Escalated', ['open-task'], 'The due time passed and the task was handed on by the escalation rule.'),
  'ownership finished': () => quiet('Finished', 'The task is finished; nobody holds it any more.'),
  'reconciliation resting': (seen) =>
    quiet(
      'At rest',
      ...listOf(
        reason(seen) === null
          ? 'Nothing of this agent is unfinished, so there is nothing to ask for.'
          : 'Nothing is asked for any more, whatever of this agent is unfinished.',
        reason(seen),
      ),
    ),
  'reconciliation checking': () =>
    quiet('Asking', 'The agent is asked for each unfinished task, so that what was missed heals.'),
  'reconciliation yielding': () => quiet('Taking turns', 'Others get their turn before it asks for more tasks.'),
  'reconciliation listing': () => quiet('Reading the list', 'The agent’s list of tasks is read, as far as a bound.'),
  'reconciliation pausing': (seen) =>
    quiet('Waiting to ask again', ...listOf(askedForAll(seen), reason(seen), listTrouble(seen))),
  'reconciliation backingOff': (seen) =>
    (failedOften(seen.actor.context) ? troubled : quiet)(
      unreadTitle,
      ...listOf(
        tries(seen, 'failures', null),
        reason(seen),
        isLeft(seen) ? nothingLost : askedMeanwhile('its unfinished tasks are'),
      ),
    ),
  'push registering': (seen) =>
    quiet(
      'Asking to be called',
      ...listOf('The agent is asked to call when the task changes.', tries(seen, 'failures', null)),
    ),
  'push waiting': (seen) =>
    quiet(
      'Waiting to ask again',
      ...listOf('The agent did not take the registration. Its task is followed all the same.', reason(seen)),
    ),
  'push registered': () => quiet('The agent calls', 'The agent calls when the task changes, so changes appear sooner.'),
  'push stopped': (seen) => ({
    ...warn(
      'The agent does not call',
      ['open-agent', 'open-task'],
      'It offers push and did not take the registration, so the task is followed without it: changes may appear later, none is lost.',
      reason(seen),
    ),
    known: givenUp(seen),
  }),
  'push removing.trying': () => quiet('Taking it back', 'The agent is told not to call any more.'),
  'push removing.pausing': () =>
    quiet('Waiting to take it back', 'The agent gave no answer; it is told again, three times at most.'),
  'push unsupported': () =>
    quiet(
      'No push',
      'The agent’s card offers no push, or the agent answered that it does not support it. Its task is followed without it.',
    ),
  'push ended': () => quiet('Finished', 'The agent does not call about this task any more.'),
}

/** A kind or state that this build has no words for, and so no machine: under the other machine's own name for it. */
const unknown = (path: readonly string[]): Explanation =>
  warn(
    path.map(spaced).join(', '),
    [],
    'Another release left it in a state that this one does not know. No process of this release can move it; one of that release can. Its log tells how it came here.',
  )

export const hasWords = (kind: string, path: readonly string[]): boolean =>
  Object.hasOwn(table, `${kind} ${path.join('.')}`)

/** Whoever takes over work that was begun. */
const takesOver = ({ kind, work }: ActorDetail): string[] =>
  kind === 'command' && work?.id === 'deliver'
    ? [
        'Whoever takes over cannot know whether the agent received it: its outcome is then unknown, and nothing is sent again.',
      ]
    : []

/** To who is not told whose places are taken. */
const takenOver = ({ untaken }: Seen): string => {
  if (untaken === 'nobody') return 'Another worker takes over as soon as one runs; none does now.'
  if (untaken === 'full')
    return 'Another worker takes over as soon as it has a place for it; all their places are taken now.'
  return 'Another worker takes over as soon as it has a place for it; if none does, no worker runs, or all places are taken.'
}

/** Of work that somebody holds who is not heard of. */
export const silentTitle = 'Its worker is silent'

/** Live work whose holder stopped renewing, or is not heard of any more while its lease still lasts. */
function silent(seen: Seen, nowMs: number): Explanation | null {
  const { work, lease } = seen.actor
  if (work === null || lease === null) return null
  const begun: Known[] = work.startedAt === null ? [] : [{ words: `"${work.id}" was begun`, at: work.startedAt }]
  const told = { tone: 'warn', title: silentTitle, remedies: ['see-queues'] } as const
  if (isAbandoned({ work, lease }, nowMs))
    return {
      ...told,
      sentences: [
        `${lease.owner} held "${work.id}" and stopped renewing its lease.`,
        ...(seen.wait === null ? [takenOver(seen)] : waitSentences(seen.wait, seen.at)),
        ...takesOver(seen.actor),
      ],
      known: [...begun, { words: 'The lease ran out', at: lease.until }],
    }
  if (!isHolderSilent(seen)) return null
  return {
    ...told,
    sentences: [
      `${lease.owner} holds "${work.id}" and does not tell of itself any more: it ended without a word, or does not reach the database.`,
      'When its lease is over, another worker takes over; if none does, no worker is running.',
      ...takesOver(seen.actor),
    ],
    known: [
      ...begun,
      { words: 'It was last heard of', at: seen.holderSeenAt },
      { words: Date.parse(lease.until) > nowMs ? 'The lease ends' : 'The lease ran out', at: lease.until },
    ],
  }
}

/** Waits, is held or is overdue: what becomes of it may commit nothing, and then no signal of a change tells of it. */
export const isUnheard = (seen: Seen, nowMs: number): boolean => {
  const dueAt = firstTimer(seen)
  return seen.wait !== null || seen.actor.lease !== null || (dueAt !== null && isOverdue(dueAt, nowMs))
}

const order = { bad: 0, warn: 1, quiet: 2 } as const

/** Everything that is to be said about an actor, what needs a person first. Never empty. */
export function explainActor(seen: Seen, nowMs: number): readonly Explanation[] {
  const { actor } = seen
  const above = [silent(seen, nowMs), waiting(seen, nowMs)].filter((each) => each !== null)
  const here = pathsOf(actor.value).map((path) => {
    const explain = table[`${actor.kind} ${path.join('.')}`]
    const said = explain ? explain(seen, nowMs) : unknown(path)
    if (said.tone === 'quiet' || said.known.length > 0) return said
    return { ...said, known: [...sinceKnown(seen.since), ...nextTryOf(actor.kind, firstTimer(seen), nowMs)] }
  })
  // What a state does is not so while its work waits for somebody to do it, or for somebody who is gone.
  const holds = above.length === 0 ? here : here.filter(({ tone }) => tone !== 'quiet')
  return [...above, ...holds].toSorted((a, b) => order[a.tone] - order[b.tone])
}
