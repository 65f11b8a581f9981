/**
 * Taking turns at places that long work may keep: when all are taken and others wait, whoever had a turn gives up the place
 * and goes to the end of the queue. Owns who is asked, and when. Does not end anything itself: work hears `held.turn`, and
 * its machine puts it back in line.
 */
import type { Database } from '../../persistence/database.ts'
import { countWaiting } from '../../persistence/leases.ts'
import type { Kinds } from './kinds.ts'
import type { HeldLease, Leases } from './lease.ts'

/** Work that had something to commit just now keeps its place so many turns. */
const busyTurns = 3

/** Places taken by a kind, by lane. */
export function lanesOf(leases: readonly HeldLease[], kind: string): ReadonlyMap<string, number> {
  const lanes = new Map<string, number>()
  for (const { ref, lane } of leases)
    if (ref.kind === kind && lane !== null) lanes.set(lane, (lanes.get(lane) ?? 0) + 1)
  return lanes
}

/** Who gives up a place for so many that wait: of the fullest lane first, in it the quiet before the busy, then the oldest. */
export function whoYields(
  held: readonly HeldLease[],
  waiting: number,
  turnMs: number,
  now: number,
): readonly HeldLease[] {
  const isBusy = (lease: HeldLease): boolean => now - lease.busyAt < turnMs / 2
  const lanes = Map.groupBy(held, ({ lane }) => lane)
  const fullness = ({ lane }: HeldLease): number => lanes.get(lane)?.length ?? 0
  return held
    .filter((lease) => now - lease.since >= (isBusy(lease) ? busyTurns * turnMs : turnMs))
    .toSorted((a, b) => fullness(b) - fullness(a) || Number(isBusy(a)) - Number(isBusy(b)) || a.since - b.since)
    .slice(0, waiting)
}

const none: ReadonlySet<string> = new Set()

/** One look at every kind that takes turns. Asks the database only where all places are taken and a turn is over. */
export async function endTurns(db: Database, kinds: Kinds, leases: Leases, now: number): Promise<void> {
  for (const [name, { turnMs, concurrency, unhurried = none }] of Object.entries(kinds)) {
    if (turnMs === undefined) continue
    const held = leases.list().filter(({ ref }) => ref.kind === name)
    if (held.length < concurrency || whoYields(held, held.length, turnMs, now).length === 0) continue
    const waiting = await countWaiting(db.pool, name)
    const { yes: slow = [], no: quick = [] } = Object.groupBy(held, ({ work }) => (unhurried.has(work) ? 'yes' : 'no'))
    // What does not hear of its turn at once must not use up the turns of those that do.
    for (const lease of [...whoYields(quick, waiting, turnMs, now), ...whoYields(slow, waiting, turnMs, now)])
      lease.turn.abort()
  }
}
