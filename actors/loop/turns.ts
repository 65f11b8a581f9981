/**
 * Taking turns at places that long work may keep: when all are taken and others wait, whoever had a turn gives up the place
 * and goes to the end of the queue. Owns who is asked, and when. Does not end anything itself: work hears `held.turn`, and
 * its machine puts it back in line.
 */
import type { Database } from '../../persistence/database.ts'
import { waitingLanes } from '../../persistence/leases.ts'
import type { Kinds } from './kinds.ts'
import type { HeldLease, Leases } from './lease.ts'
import { leadMs, type PlaceTimes } from './place-time.ts'

/** Work that had something to commit just now keeps its place so many turns. */
const busyTurns = 3
/** For who had less by a turn than others, a quiet one of theirs gives way before its own turn is over, after this part of it. */
const partOfTurn = 1 / 5

export const turnTaking = (kinds: Kinds): ReadonlySet<string> =>
  new Set(Object.entries(kinds).flatMap(([name, { turnMs }]) => (turnMs === undefined ? [] : [name])))

/** Lanes that wait for a place, once for each piece of work, who has one, and how long which had places. */
export interface Queue {
  readonly waiting: readonly (string | null)[]
  /** Lanes that have a place, whatever it does. */
  readonly holding: ReadonlySet<string | null>
  readonly times: PlaceTimes
}

/**
 * Who gives up a place for those that wait, by their lanes: of the fullest lane first, in it the quiet before the busy, then the
 * oldest. Who is busy stays for more turns, but not where a lane that waits has fewer places by two: to it one goes after one turn. And
 * to a lane that has none and had little one goes at once, of those that have been quiet for a while.
 */
export function whoYields(held: readonly HeldLease[], queue: Queue, turnMs: number, now: number): readonly HeldLease[] {
  const { waiting } = queue
  const isBusy = (lease: HeldLease): boolean => now - lease.busyAt < turnMs / 2
  const lanes = new Map([...Map.groupBy(held, ({ lane }) => lane)].map(([lane, all]) => [lane, all.length]))
  const places = (lane: string | null): number => lanes.get(lane) ?? 0
  const ripe = held
    .filter((lease) => now - lease.since >= turnMs)
    .toSorted((a, b) => places(b.lane) - places(a.lane) || Number(isBusy(a)) - Number(isBusy(b)) || a.since - b.since)
  const usual = ripe.filter((lease) => !isBusy(lease) || now - lease.since >= busyTurns * turnMs)
  const yielding = new Set(usual.slice(0, waiting.length))
  for (const { lane } of yielding) lanes.set(lane, places(lane) - 1)
  // What yields anyway goes to the emptiest first; these are for those of them that it does not reach.
  const emptiest = waiting.toSorted((a, b) => places(a) - places(b)).slice(yielding.size)
  for (const lane of emptiest) {
    const from = ripe.find((lease) => !yielding.has(lease) && places(lease.lane) > places(lane) + 1)
    if (!from) continue
    yielding.add(from)
    lanes.set(from.lane, places(from.lane) - 1)
    lanes.set(lane, places(lane) + 1)
  }
  return [...yielding, ...whoGivesWay(held, yielding, queue, (lease) => now - lease.busyAt >= turnMs * partOfTurn)]
}

/** For lanes that have none, those whose places had so much more time that it would be theirs. What yields anyway goes to the first of them. */
function whoGivesWay(
  held: readonly HeldLease[],
  yielding: ReadonlySet<HeldLease>,
  { waiting, holding, times }: Queue,
  isQuiet: (lease: HeldLease) => boolean,
): readonly HeldLease[] {
  const without = [...new Set(waiting)].filter((lane) => lane !== null).filter((lane) => !holding.has(lane))
  const unserved = without.toSorted((a, b) => times(a) - times(b)).slice(yielding.size)
  const places = Map.groupBy(held, ({ lane }) => lane)
  const most = (lease: HeldLease): number => places.get(lease.lane)?.length ?? 0
  const timeOf = ({ lane }: HeldLease): number => (lane === null ? 0 : times(lane))
  const inOrder = held
    .filter((lease) => !yielding.has(lease) && isQuiet(lease))
    .toSorted((a, b) => most(b) - most(a) || timeOf(b) - timeOf(a) || a.since - b.since)
  const giving = new Set<HeldLease>()
  for (const lane of unserved) {
    const from = inOrder.find((lease) => !giving.has(lease) && timeOf(lease) >= times(lane) + leadMs)
    if (from) giving.add(from)
  }
  return [...giving]
}

const none: ReadonlySet<string> = new Set()

/** One look at every kind that takes turns. Asks the database only where all places are taken, and none for a moment only. */
export async function endTurns(db: Database, kinds: Kinds, leases: Leases, now: number): Promise<void> {
  for (const [name, { turnMs, concurrency, unhurried = none }] of Object.entries(kinds)) {
    if (turnMs === undefined) continue
    const mayEnd = leases.of(name)
    if (mayEnd.length < concurrency || !mayEnd.some(({ since }) => now - since >= turnMs * partOfTurn)) continue
    const waiting = await waitingLanes(db.direct, name)
    // Only now, for some may have ended meanwhile.
    const held = leases.of(name)
    const holding = new Set(held.map(({ lane }) => lane))
    const queue = { waiting, holding, times: leases.placeTime.of(name, held, now) }
    const { yes: slow = [], no: quick = [] } = Object.groupBy(held, ({ work }) => (unhurried.has(work) ? 'yes' : 'no'))
    // What does not hear of its turn at once must not use up the turns of those that do.
    for (const lease of [...whoYields(quick, queue, turnMs, now), ...whoYields(slow, queue, turnMs, now)])
      lease.turn.abort()
  }
}
