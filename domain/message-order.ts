/**
 * Where messages and artifacts stand in a task's view: as they were told, but for what was missed and is found between others in a
 * history. Owns the numbers alone; a rebuild, which folds the same events, comes to the same ones.
 */
import type { ObservedMessage } from './observation.ts'

/**
 * Between two rows of one event there is room for others, between two events for a million rows of the first. Exact up to eight million
 * events of a task; beyond that neighbours may share a place.
 */
const betweenRows = 2 ** 10
const betweenEvents = 2 ** 20 * betweenRows

/** As it was told: the `index`th row of the event at that position. */
export const placed = (event: number, index: number): number => event * betweenEvents + index * betweenRows

/**
 * Places for the messages of one event that are kept. `known`: where those stand that are known already, null for the others. A history
 * is in the order in which things were said: what was missed stands before the next that is known, and what has none behind it, last.
 */
export function placesFor(
  event: number,
  messages: readonly Pick<ObservedMessage, 'fromStatus'>[],
  known: readonly (number | null)[],
): readonly number[] {
  const places = messages.map((_, index) => placed(event, index))
  const anchors = known.filter((place) => place !== null)
  const [first = 0, last = first] = [anchors.at(0), anchors.at(-1)]
  // Some agents tell the newest first.
  if (first > last) return places
  let missed: number[] = []
  let before: number | null = null
  messages.forEach(({ fromStatus }, index) => {
    // A status's own message is the present one, wherever its history has it.
    if (fromStatus) return
    const place = known[index] ?? null
    if (place === null) return void missed.push(index)
    const step = stepBetween(before, place, missed.length)
    if (step !== null) missed.forEach((each, nth) => (places[each] = place - (missed.length - nth) * step))
    missed = []
    before = place
  })
  return places
}

/** How far apart so many stand between; null where there is no room, or where they stand the other way round. */
function stepBetween(before: number | null, place: number, count: number): number | null {
  if (before === null) return betweenRows
  const step = Math.min(betweenRows, Math.floor((place - before) / (count + 1)))
  return step >= 1 ? step : null
}
