/**
 * Why work that is due is not done, in words: whose places are taken, or that nobody works. What a place is, and who may have
 * how many of them, is shares.ts; the states an actor waits in are actor-explanation.ts.
 */
import type { ActorWait } from './actor.ts'
import { listOf, type Explanation, type Known } from './explanation.ts'
import { answerBy } from './lost-answer.ts'
import { silentAfterMs, stuckAfterMs } from './patience.ts'
import { leftSince, type Seen } from './seen-actor.ts'
import { shareOf } from './shares.ts'
import { leftWaiting, untakenWords } from './untaken.ts'

/** Due and held by nobody: for room, or for a worker. Whose places are taken is told to administrators alone. */
export function waiting(seen: Seen, nowMs: number): Explanation | null {
  const { wait } = seen
  if (wait === null) return untaken(seen) ?? left(seen)
  // That its holder is gone is said first, and this with it.
  if (seen.actor.lease !== null) return null
  const late = nowMs - Date.parse(wait.dueAt) > stuckAfterMs
  return {
    tone: late ? 'warn' : 'quiet',
    title: isFull(wait) ? 'Waits for a place' : 'Waits for a worker',
    sentences: waitSentences(wait, seen.at),
    known: [{ words: 'Due', at: wait.dueAt }, ...freeBy(wait)],
    remedies: ['see-queues'],
  }
}

/** Whose places are taken, and who goes before it: as it was at `at`. */
export const waitSentences = (wait: ActorWait, at: string): string[] =>
  listOf(placesTaken(wait), beginning(wait, Date.parse(at) - Date.parse(wait.dueAt)), othersBefore(wait))

/** Where it is not known, or not told, which of both: whose places are taken is read for one actor at a time, and for administrators. */
export const untakenTitle = 'Waits for a worker or a place'

const titleOf = (why: Seen['untaken']): string =>
  why === 'nobody' ? 'Waits for a worker' : why === 'full' ? 'Waits for a place' : untakenTitle

/** The same for those who are not told whose places are taken: what its state would do is not so while nobody does it. */
function untaken({ at, untaken: why, actor: { work, lease, updatedAt } }: Seen): Explanation | null {
  if (work === null || work.startedAt !== null || lease !== null) return null
  const late = Date.parse(at) - Date.parse(updatedAt) > stuckAfterMs
  return {
    tone: late ? 'warn' : 'quiet',
    title: titleOf(why),
    sentences: [
      why === null
        ? 'It is due, and no worker has taken it up: none runs, all places for its kind are taken, or the database is slow. It begins when its turn comes.'
        : untakenWords('It is due', why),
    ],
    known: [{ words: 'As it is since', at: updatedAt }],
    remedies: [],
  }
}

/** A timer that is over is not work yet, and waits for a worker like it. */
function left(seen: Seen): Explanation | null {
  const since = leftSince(seen)
  if (since === null || Date.parse(seen.at) - Date.parse(since) <= stuckAfterMs) return null
  return {
    tone: 'warn',
    title: seen.untaken === null ? 'Waits for a worker' : titleOf(seen.untaken),
    sentences: [leftWaiting(seen.untaken)],
    known: [{ words: 'Due', at: since }],
    remedies: [],
  }
}

type Held = ActorWait['taken'][number]

const isLaneFull = ({ taken, ofLane }: Held, { places, perAgent }: ActorWait): boolean =>
  ofLane >= shareOf({ places, perAgent, taken })
const isDoubtFull = ({ ofDoubted = 0 }: Held, { perDoubted }: ActorWait): boolean =>
  perDoubted !== undefined && ofDoubted >= perDoubted

const isFull = (wait: ActorWait): boolean =>
  wait.taken.length > 0 &&
  wait.taken.every((each) => each.taken >= wait.places || isLaneFull(each, wait) || isDoubtFull(each, wait))

/** Once one of its agent is over. */
const oneLess = (each: Held): Held => ({ ...each, taken: each.taken - 1, ofLane: each.ofLane - 1 })

/** An answer is not waited for longer than that, so neither is its place taken. */
const freeBy = (wait: ActorWait): Known[] =>
  wait.requestSince === null || !wait.taken.some((each) => isLaneFull(each, wait) && !isLaneFull(oneLess(each), wait))
    ? []
    : [{ words: 'The first place of its agent is free by about', at: answerBy(wait.requestSince) }]

/** Less than it may ever have: what others take is missing. */
const forNow = ({ ofLane }: Held, { perAgent }: ActorWait): string => (ofLane < perAgent ? ' at the moment' : '')

/** Those whose agents have all their places are passed over. */
const othersBefore = ({ ahead }: ActorWait): string | null =>
  ahead === 0
    ? null
    : `${ahead} of its kind ${ahead === 1 ? 'has' : 'have'} waited longer: ${ahead === 1 ? 'that one goes' : 'those go'} first where a place is free for ${ahead === 1 ? 'it' : 'them'}.`

/** Loops look for what is due several times a second: what has a place and was due for longer is kept from it by something else. */
const promptMs = 2_000
const untakenStill = `There is room for it, and nobody has taken it up: a process may have ended without a word, which shows ${silentAfterMs / 1000} seconds after it was last heard of, a loop may be down, or the database slow.`

/** How soon it begins, where no other goes before it: how long each of those takes nobody knows. */
function beginning(wait: ActorWait, dueForMs: number): string | null {
  if (wait.ahead > 0) return null
  if (wait.taken.length === 0)
    return wait.working ? 'It begins when one of them has.' : 'It is taken up within a second of one that starts.'
  if (!isFull(wait)) return dueForMs < promptMs ? 'It begins within a second.' : untakenStill
  const isShared = wait.taken.some(
    (each) => isLaneFull(each, wait) && each.taken < wait.places && each.ofLane < wait.perAgent,
  )
  return isShared ? 'It begins as soon as fewer are taken.' : 'It begins as soon as one is free.'
}

/** "8 of 8 places are taken by host/12, 4 of them for the same agent, which may have no more." */
function placesTaken(wait: ActorWait): string {
  const { taken, places, perAgent, working = 0 } = wait
  if (taken.length === 0 && working > 0)
    return `${working === 1 ? 'One process works' : `${working} processes work`}, with places for it, and none has taken it up. Each asks for what is due several times a second: where it stays so, the database is slow, or a loop is down.`
  if (taken.length === 0) return 'No process works on its kind at the moment.'
  const by = taken.map((each) => {
    const { owner, taken: held, ofLane, ofDoubted = 0 } = each
    const atAgent = ofLane === 0 ? '' : `, ${ofLane} of them for the same agent`
    const most =
      isLaneFull(each, wait) && perAgent < places && held < places
        ? `, which may have no more${forNow(each, wait)}`
        : ''
    const doubted = isDoubtFull(each, wait)
      ? `, ${ofDoubted} of them where the last try failed or was slow, too: those may have no more`
      : ''
    return `${held} of ${places} places are taken by ${owner}${atAgent}${most}${doubted}`
  })
  return `${by.join('; ')}.`
}
