/**
 * Taking turns at places that long work may keep: when all are taken and others wait, whoever had a turn gives up the place
 * and goes to the end of the queue. Owns who is asked, and when. Does not end anything itself: work hears `held.turn`, and
 * its machine puts it back in line.
 */
import type { Database } from '../../persistence/database.ts'
import { waitingLanes } from '../../persistence/leases.ts'
import type { Kinds } from './kinds.ts'
import type { HeldLease, Leases } from './lease.ts'

/** Work that had something to commit just now keeps its place so many turns. */
const busyTurns = 3
/** Whoever had no place for so long is new, and need not wait until a turn is over: for it a quiet one gives way after a fifth of its own. */
const newAfterMs = 300_000
const partOfTurn = 1 / 5

/** Places taken by a kind, by lane. */
export function lanesOf(leases: readonly HeldLease[], kind: string): ReadonlyMap<string, number> {
  const lanes = new Map<string, number>()
  for (const { ref, lane } of leases)
    if (ref.kind === kind && lane !== null) lanes.set(lane, (lanes.get(lane) ?? 0) + 1)
  return lanes
}

/** Lanes that wait for a place, once for each piece of work, and when which was served last (served.ts). */
export interface Queue {
  readonly waiting: readonly (string | null)[]
  readonly served: ReadonlyMap<string, number>
}

/**
 * Who gives up a place for those that wait, by their lanes: of the fullest lane first, in it the quiet before the busy, then the
 * oldest. Who is busy stays for more turns, but not where a lane that waits has fewer places by two: to it one goes after one turn. And
 * to each that is new one goes at once, of those that have been quiet for a while.
 */
export function whoYields(
  held: readonly HeldLease[],
  { waiting, served }: Queue,
  turnMs: number,
  now: number,
): readonly HeldLease[] {
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
  const isQuiet = (lease: HeldLease): boolean => now - Math.max(lease.since, lease.busyAt) >= turnMs * partOfTurn
  const quiet = held.filter((lease) => !yielding.has(lease) && isQuiet(lease))
  const fresh = [...new Set(waiting)].filter((lane) => lane !== null && isNew(lane, held, served, now))
  // What yields anyway goes to them first (room.ts, turnsOf).
  const unserved = fresh.length - yielding.size
  const early = quiet.toSorted((a, b) => places(b.lane) - places(a.lane) || a.since - b.since)
  return [...yielding, ...early.slice(0, Math.max(0, unserved))]
}

function isNew(lane: string, held: readonly HeldLease[], served: ReadonlyMap<string, number>, now: number): boolean {
  const last = served.get(lane)
  return (last === undefined || now - last >= newAfterMs) && !held.some((lease) => lease.lane === lane)
}

const none: ReadonlySet<string> = new Set()

/** One look at every kind that takes turns. Asks the database only where all places are taken, and none for a moment only. */
export async function endTurns(db: Database, kinds: Kinds, leases: Leases, now: number): Promise<void> {
  for (const [name, { turnMs, concurrency, unhurried = none }] of Object.entries(kinds)) {
    if (turnMs === undefined) continue
    const held = leases.list().filter(({ ref }) => ref.kind === name)
    if (held.length < concurrency || !held.some(({ since }) => now - since >= turnMs * partOfTurn)) continue
    const queue = { waiting: await waitingLanes(db.pool, name), served: leases.served.of(name) }
    const { yes: slow = [], no: quick = [] } = Object.groupBy(held, ({ work }) => (unhurried.has(work) ? 'yes' : 'no'))
    // What does not hear of its turn at once must not use up the turns of those that do.
    for (const lease of [...whoYields(quick, queue, turnMs, now), ...whoYields(slow, queue, turnMs, now)])
      lease.turn.abort()
  }
}
