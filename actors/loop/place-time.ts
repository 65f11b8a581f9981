/**
 * How long each lane has had places, in this process: where lanes take turns, whoever had less goes first, as in fair queueing by virtual
 * time. The oldest row of a lane that has just given up its place would otherwise go before the first of another, and a short task would
 * wait behind streams that say nothing. Does not give places (room.ts) and ends no turn (turns.ts).
 */
import { remember } from '../remember.ts'
import type { HeldLease } from './lease.ts'

/** Agents of a kind. Whoever is forgotten is new again. */
const remembered = 500
/** Whoever is new, or was away for long, is so much ahead of those that have places, and not more. */
export const leadMs = 10_000
/** Nor is anybody further behind, whatever it had while nobody else wanted it. */
const lagMs = 30_000

/** Milliseconds of places that a lane had, comparable with those of others. */
export type PlaceTimes = (lane: string) => number

interface Account {
  /** Without what is held now; whose last began longest ago comes first. */
  readonly lanes: Map<string, number>
  /** The least that a lane with a place ever had: it never falls, or each that is new would be ahead of the one before. */
  floor: number
}

type Place = Pick<HeldLease, 'ref' | 'lane' | 'since'>

export class PlaceTime {
  readonly #accounts = new Map<string, Account>()

  /** `held`: of its kind, before it. */
  begin({ ref: { kind }, lane }: Place, held: readonly Place[], now: number): void {
    if (lane === null) return
    const account = this.#accounts.get(kind) ?? { lanes: new Map<string, number>(), floor: 0 }
    this.#accounts.set(kind, account)
    const { times, floor } = counted(account, held, now)
    account.floor = floor
    // Of what it holds is counted how long it does; only what begins anew is set right.
    const isHeld = held.some((each) => each.lane === lane)
    const had = isHeld ? (account.lanes.get(lane) ?? 0) : bounded(times.get(lane), floor)
    remember(account.lanes, lane, had, remembered)
  }

  end({ ref: { kind }, lane, since }: Place, now: number): void {
    const lanes = this.#accounts.get(kind)?.lanes
    const had = lane === null ? undefined : lanes?.get(lane)
    if (lane !== null && had !== undefined) lanes?.set(lane, had + now - since)
  }

  lanes(kind: string): readonly string[] {
    return [...(this.#accounts.get(kind)?.lanes.keys() ?? [])]
  }

  /** `held`: of that kind. */
  of(kind: string, held: readonly Place[], now: number): PlaceTimes {
    const account = this.#accounts.get(kind)
    if (!account) return () => 0
    const { times, floor } = counted(account, held, now)
    return (lane) => bounded(times.get(lane), floor)
  }
}

/** With what is held now. */
function counted(account: Account, held: readonly Place[], now: number) {
  const times = new Map(account.lanes)
  for (const { lane, since } of held) if (lane !== null) times.set(lane, (times.get(lane) ?? 0) + now - since)
  const holding = held.flatMap(({ lane }) => (lane === null ? [] : (times.get(lane) ?? 0)))
  return { times, floor: holding.length > 0 ? Math.max(account.floor, Math.min(...holding)) : account.floor }
}

const bounded = (had: number | undefined, floor: number): number =>
  Math.min(Math.max(had ?? -Infinity, floor - leadMs), floor + lagMs)
