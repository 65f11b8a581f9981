/**
 * Where messages and artifacts stand in a task's view: as they were told, but for what was missed and is found between others in a
 * history, or among all that a task made. Owns the numbers alone; a rebuild, which folds the same events, comes to the same ones.
 */
import type { ObservedMessage } from './observation.ts'

/**
 * Between two rows of one event there is room for others, between two events for a million rows of the first. Exact up to eight million
 * events of a task; beyond that neighbours may share a place.
 */
const betweenRows = 2 ** 10
const betweenEvents = 2 ** 20 * betweenRows
/** How far before the next one something stands at most: no further than the end of the event before, however many rows that has. */
const aside = 2 ** 24

/** As it was told: the `index`th row of the event at that position. */
export const placed = (event: number, index: number): number => event * betweenEvents + index * betweenRows

/** Before whatever was told by that event and since, behind all that was known when it came. */
export const beforeEvent = (event: number): number => placed(event, 0) - aside

/**
 * The `event` that tells our own words, which left when `since` was the next to come: before that, in the order in which they were told. Also
 * the first of them, which may be that next event itself: others that left with it are told behind it.
 */
export const placedAsSent = (since: number, event: number): number =>
  event === 0 ? placed(0, 0) : beforeEvent(since) + aside / 2 + Math.min(event - since, aside / 2 - 1)

/** `place`: where it stands that is known already; null for one that is to be kept. */
type Told = Pick<ObservedMessage, 'fromStatus' | 'role'> & { readonly place: number | null }

/**
 * Places for the messages of one event that are kept. A history is in the order in which things were said: what was missed stands before
 * the next that is known, and what has none behind it, last. Where the same gap is filled one by one, a message before the last, it has room for some twenty.
 * `asks`: its status waits for a person.
 */
export function placesFor(event: number, messages: readonly Told[], asks: boolean): readonly number[] {
  const places = messages.map((_, index) => placed(event, index))
  // A status's own message is the present one, wherever its history has it.
  const known = messages.flatMap(({ fromStatus, place }) => (fromStatus ? [] : (place ?? [])))
  if (isNewestFirst(known)) return places
  let missed: number[] = []
  let before: number | null = null
  const stand = (next: number): void => {
    // Told before what the history has before it: no sign of where the missed ones stand, but the next one may be.
    if (before === null || next > before) {
      const step = stepBetween(before, next, missed.length)
      if (step !== null) missed.forEach((each, nth) => (places[each] = next - (missed.length - nth) * step))
      missed = []
    }
    before = next
  }
  messages.forEach(({ fromStatus, place }, index) => {
    if (fromStatus) return
    if (place === null) missed.push(index)
    else stand(place)
  })
  // It is the last word of the history, too, but for an answer to the question that it is, while that still stands.
  const present = messages.find(({ fromStatus }) => fromStatus)?.place ?? null
  if (present !== null && (!asks || missed.every((index) => messages[index]?.role === 'agent'))) stand(present)
  return places
}

/** The same for artifacts, of which one that is not known has no place. */
export const placesAmong = (event: number, artifacts: readonly (number | null)[]): readonly number[] =>
  placesFor(
    event,
    artifacts.map((place) => ({ fromStatus: false, role: 'agent', place })),
    false,
  )

/** Some agents tell it so. One that repeats an id does it in one place. */
function isNewestFirst(places: readonly number[]): boolean {
  const rising = places.filter((place, nth) => nth > 0 && place > (places[nth - 1] ?? place)).length
  return rising < places.length - 1 - rising
}

/**
 * How far apart so many stand between; null where there is no room. Without anything before them they stand behind the row before, and
 * never before the event that opened the task, which is what was asked.
 */
function stepBetween(before: number | null, next: number, count: number): number | null {
  if (before === null && next < betweenEvents - aside) return null
  const room = before === null ? Math.max(betweenRows, count + 1) : Math.min(aside, next - before)
  const step = Math.floor(room / (count + 1))
  return step >= 1 ? step : null
}
