/**
 * How queues and loops stand, in words and a tone: what is said beside a number so that a colour never stands alone. Pure, by
 * times that are handed in. Does not own the numbers (domain/queue.ts), nor processes and the whole (domain/system-words.ts).
 */
import { shareOf } from './shares.ts'
import { stuckAfterMs } from './patience.ts'
import { isolated } from './isolation.ts'
import {
  queueCountLimit,
  type HeldLeases,
  type KindQueue,
  type LoopView,
  type OpenCommands,
  type OutageCause,
} from './queue.ts'

export interface Standing {
  readonly tone: 'ok' | 'quiet' | 'warn' | 'bad'
  readonly words: string
}

/** "12", or "10,000+" where counting stopped. */
export const countWords = (count: number, limit: number, format: (count: number) => string): string =>
  count > limit ? `${format(limit)}+` : format(count)

/** "12 s", in whole seconds as the page counts them: what has just come has waited, too, and not for nothing. */
export const agedWords = (ms: number, duration: (ms: number) => string): string =>
  ms < 1000 ? 'less than 1 s' : duration(Math.floor(ms / 1000) * 1000)

/** How long the oldest has been due, milliseconds; null where nothing is. */
export const oldestAgeMs = ({ oldestDueAt }: Pick<KindQueue, 'oldestDueAt'>, nowMs: number): number | null =>
  oldestDueAt === null ? null : Math.max(0, nowMs - Date.parse(oldestDueAt))

export type Places = NonNullable<LoopView['places']>

const kindTitles: Readonly<Record<string, string>> = {
  command: 'Delivering messages',
  subscription: 'Following tasks',
  ownership: 'Watching due times',
  reconciliation: 'Catching up with agents',
  push: 'Registering for push',
}

/** What actors of a kind do, as a person says it; the kind's own name where this build has no words for it. */
export const kindTitle = (kind: string): string => (Object.hasOwn(kindTitles, kind) ? (kindTitles[kind] ?? kind) : kind)

/** For the middle of a sentence. */
export const inside = (words: string): string => `${words.charAt(0).toLowerCase()}${words.slice(1)}`

/** What holds work now, and which of them are not heard of any more. */
export interface Holders {
  readonly leases: readonly HeldLeases[]
  readonly silent: ReadonlySet<string>
}

/** Of one kind, what is held by who is heard of, and what is not: leases that have not run out. */
export function heldOf(
  kind: string,
  { leases, silent }: Holders,
): { readonly underWay: number; readonly unheard: number } {
  const live = (isSilent: boolean): number =>
    leases
      .filter((each) => each.kind === kind && silent.has(each.owner) === isSilent)
      .reduce((sum, { held, expired }) => sum + held - expired, 0)
  return { underWay: live(false), unheard: live(true) }
}

interface QueueTrouble {
  readonly what: 'Stuck' | 'Waits for room' | 'Waits'
  readonly why: string
}

/** Every loop looks at least once a second, so what has been due for long waits for room or for a worker. Null: not for long. */
function queueTrouble(
  queue: KindQueue,
  { leases, silent }: Holders,
  places: Places | null,
  nowMs: number,
): QueueTrouble | null {
  if ((oldestAgeMs(queue, nowMs) ?? 0) < stuckAfterMs) return null
  const expired = leases.filter(({ kind }) => kind === queue.kind).reduce((sum, each) => sum + each.expired, 0)
  const ranOut = `${expired} ${expired === 1 ? 'lease' : 'leases'} ran out`
  const also = expired > 0 ? `, and ${ranOut} meanwhile` : ''
  // Before who works on it: leases here are one organization's, and places may all be taken for another.
  if (places !== null && places.taken >= places.limit)
    return { what: 'Waits for room', why: `${places.taken} of ${places.limit} places are taken${also}` }
  if (heldOf(queue.kind, { leases, silent }).underWay === 0)
    return { what: 'Stuck', why: expired > 0 ? `${ranOut} and nobody took over` : 'nobody works on it' }
  const { busiest } = queue
  if (places === null) return { what: 'Waits', why: `for room, or for an agent that has all its places taken${also}` }
  if (busiest !== null && busiest.held >= shareOf({ ...places, places: places.limit }))
    return { what: 'Waits', why: `for an agent that has all its places taken, as ${isolated(busiest.name)} has${also}` }
  // Who ended without a word holds its places for a while, and is heard of for a while longer than it takes anything up.
  return {
    what: 'Waits',
    why: `though ${places.limit - places.taken} of ${places.limit} places are free: for an agent that has all it may have, or a worker that ended or is slow${also}`,
  }
}

/** "A worker is silent and holds 2": what nobody does, although somebody holds it. Null: nothing is held so. */
function silentWords(kind: string, holders: Holders): string | null {
  const { unheard } = heldOf(kind, holders)
  if (unheard === 0) return null
  const owners = new Set(
    holders.leases
      .filter((each) => each.kind === kind && each.held > each.expired && holders.silent.has(each.owner))
      .map(({ owner }) => owner),
  )
  return owners.size === 1
    ? `A worker is silent and holds ${unheard}`
    : `${owners.size} workers are silent and hold ${unheard}`
}

export function queueStanding(queue: KindQueue, holders: Holders, places: Places | null, nowMs: number): Standing {
  const trouble = queueTrouble(queue, holders, places, nowMs)
  const silent = silentWords(queue.kind, holders)
  const troubled = [
    ...(trouble === null ? [] : [`${trouble.what}: ${trouble.why}`]),
    ...(silent === null ? [] : [silent]),
  ]
  if (troubled.length > 0) return { tone: 'warn', words: troubled.join('. ') }
  if (queue.oldestDueAt === null) return { tone: 'ok', words: 'Nothing is due' }
  // A moment is nothing to worry about; that somebody takes it is said only where somebody is there.
  const isSomebodyThere = places !== null || heldOf(queue.kind, holders).underWay > 0
  return { tone: 'quiet', words: isSomebodyThere ? 'Being taken' : 'Not taken yet' }
}

/**
 * How far commands are that have not ended: those that no agent was sent yet, and those whose request may be on the wire. What is pending
 * and not due is not forgotten, whoever holds it may be silent: that is said of the queue. `dueCount`: of commands.
 */
export function commandsWords(
  { pending, dispatching, oldestPendingAt }: OpenCommands,
  dueCount: number,
  nowMs: number,
  format: { count(count: number): string; duration(ms: number): string },
): string {
  const count = (n: number): string => countWords(n, queueCountLimit, (m) => format.count(m))
  const ageMs = oldestAgeMs({ oldestDueAt: oldestPendingAt }, nowMs)
  const oldest = ageMs === null ? '' : `, the oldest for ${agedWords(ageMs, (ms) => format.duration(ms))}`
  const isUnderWay = pending > 0 && dueCount === 0
  const notDue = isUnderWay ? ' (none of it is due: a worker holds it, or its next try has a time)' : ''
  return `Commands: ${count(pending)} pending${oldest}${notDue}; ${count(dispatching)} begun, no answer yet.`
}

/** "Following tasks is stuck: nobody works on it", where nothing else says which queue it is. Null: it waits for nothing long. */
export function queueSentence(queue: KindQueue, holders: Holders, places: Places | null, nowMs: number): string | null {
  const trouble = queueTrouble(queue, holders, places, nowMs)
  if (trouble === null) return null
  const { what, why } = trouble
  return `${kindTitle(queue.kind)} ${what === 'Stuck' ? 'is stuck' : inside(what)}: ${why}`
}

/** An outage is over when a loop has gone on for longer than it waited, and a person had time to read of it. */
const outageToldMs = 30_000

export type LoopTrouble = 'off' | 'restarting' | OutageCause

/** What keeps a loop from its work; null: nothing. */
export function loopTrouble({ state, lastOutage }: LoopView, nowMs: number): LoopTrouble | null {
  if (state === 'off' || state === 'restarting') return state
  if (state === 'left' || lastOutage === null) return null
  // Who tells its age tells again every few seconds; the instant is of another clock than `nowMs` is.
  const ageMs = lastOutage.agoMs ?? nowMs - Date.parse(lastOutage.at)
  return ageMs < lastOutage.pauseMs + outageToldMs ? (lastOutage.cause ?? 'database') : null
}

/** What is away, for a loop that met an outage. */
const awayWords: Readonly<Record<OutageCause, string>> = {
  database: 'Database away',
  artifacts: 'The files’ directory failed',
}
export const outageWords = ({ cause = 'database' }: NonNullable<LoopView['lastOutage']>): string => awayWords[cause]

const troubleStandings: Readonly<Record<LoopTrouble, Standing>> = {
  off: { tone: 'bad', words: 'Not running' },
  restarting: { tone: 'warn', words: 'Failed, starting again' },
  database: { tone: 'warn', words: 'Waiting for the database' },
  artifacts: { tone: 'warn', words: 'The files’ directory cannot be read or written' },
}

export function loopStanding(loop: LoopView, nowMs: number): Standing {
  const trouble = loopTrouble(loop, nowMs)
  if (trouble !== null) return troubleStandings[trouble]
  if (loop.state === 'left') return { tone: 'quiet', words: 'Left to workers' }
  return loop.lastFailure === null ? { tone: 'ok', words: 'Up' } : { tone: 'quiet', words: 'Up again' }
}

const purposes: Readonly<Record<string, string>> = {
  leases: 'renews what this process holds',
  command: 'finds agents and delivers',
  subscription: 'follows tasks',
  ownership: 'rings when a task is due',
  reconciliation: 'asks agents for what was missed',
  scopes: 'wakes whoever has something to ask for',
  push: 'asks agents to call',
  audit: 'links the audit trail and sees that it holds',
  freshness: 'sees what other processes committed',
  housekeeping: 'keeps the database small',
  presence: 'tells the other processes of this one',
}

/** What a loop is for; empty for one that this build has no words for. */
export const loopWords = (name: string): string => purposes[name] ?? ''
