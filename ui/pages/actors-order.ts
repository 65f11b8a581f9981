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

/** `kept` is null when the list may be laid out anew. A row that left the answer leaves the list. */
export function arrange(kept: readonly string[] | null, actors: readonly ActorSummary[]): Arranged {
  // An actor that moved while pages were read is in two of them; the first page is the fresher one.
  const byKey = new Map<string, ActorSummary>()
  for (const actor of actors) if (!byKey.has(keyOf(actor))) byKey.set(keyOf(actor), actor)
  if (kept === null || kept.length === 0) return { rows: sorted([...byKey.values()]), waiting: 0 }
  const rows = kept.flatMap((key) => byKey.get(key) ?? [])
  return { rows, waiting: byKey.size - rows.length }
}
