/**
 * The order of a list that changes while somebody reads it: rows keep their places and change in them, new ones wait to be
 * shown. Pure, so that it can be reasoned about: what is kept is the keys in the order they were last laid out.
 */
import type { ActorSummary } from '../../domain/chart.ts'

export const keyOf = ({ kind, id }: { readonly kind: string; readonly id: string }): string => `${kind}/${id}`

/** What needs a person first, then what moved last. */
const sorted = (actors: readonly ActorSummary[]): readonly ActorSummary[] =>
  actors.toSorted((a, b) => Number(b.attention) - Number(a.attention) || b.movedAt.localeCompare(a.movedAt))

export interface Arranged {
  readonly rows: readonly ActorSummary[]
  /** How many actors wait to be shown. */
  readonly waiting: number
}

/** Each once. An actor that moved while pages were read is in two of them: it is shown as it is in the freshest. */
function unique(actors: readonly ActorSummary[]): ReadonlyMap<string, ActorSummary> {
  const byKey = new Map<string, ActorSummary>()
  for (const actor of actors) {
    const known = byKey.get(keyOf(actor))
    if (!known || known.revision < actor.revision) byKey.set(keyOf(actor), actor)
  }
  return byKey
}

/** `kept` is null when the list may be laid out anew. A row that left the answer leaves the list. */
export function arrange(kept: readonly string[] | null, actors: readonly ActorSummary[]): Arranged {
  const byKey = unique(actors)
  if (kept === null || kept.length === 0) return { rows: sorted([...byKey.values()]), waiting: 0 }
  const rows = kept.flatMap((key) => byKey.get(key) ?? [])
  return { rows, waiting: byKey.size - rows.length }
}

/** The keys with those of a page that follows, which is laid out in itself: nothing above it moves, and nothing is there twice. */
export function followedBy(kept: readonly string[], page: readonly ActorSummary[]): readonly string[] {
  const known = new Set(kept)
  return [
    ...kept,
    ...sorted(page)
      .map(keyOf)
      .filter((key) => !known.has(key)),
  ]
}

/**
 * Rows that the first page held and now does not, only because others that moved took their places: by the order of pages, which is
 * that of last steps, they come after its end. What left for another reason, such as that nothing is wrong with it any more, is not among them.
 */
export function pushedOut(
  before: readonly ActorSummary[],
  page: { readonly actors: readonly ActorSummary[]; readonly next: string | null },
): readonly ActorSummary[] {
  const last = page.actors.at(-1)
  if (page.next === null || !last) return []
  const inIt = new Set(page.actors.map(keyOf))
  const isAfter = (actor: ActorSummary): boolean =>
    actor.updatedAt < last.updatedAt || (actor.updatedAt === last.updatedAt && actor.id < last.id)
  return before.filter((actor) => !inIt.has(keyOf(actor)) && isAfter(actor))
}
