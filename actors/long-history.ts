/**
 * A long history is told a piece at a time, each in a commit of its own, before the answer that shows it: others have their turn in between,
 * and a process that dies there leaves messages of a task whose state is as it was, so that it is looked at again. Does not cut
 * (domain/long-history.ts).
 */
import { setImmediate } from 'node:timers/promises'
import type { Report } from '../domain/fact.ts'
import { decodeText } from '../domain/json-text.ts'
import { observationOf, type Observation } from '../domain/observation.ts'
import { textDigest } from '../persistence/text-digest.ts'
import type { SeenEvent } from './threads/messages.ts'

export type Piece = Pick<Report, 'observations' | 'ahead'>

/** What is told ahead of an event, read only as it is taken: all of it at once is a stall of its own. */
export function* aheadOf({ long }: SeenEvent): Generator<Observation> {
  for (const text of long?.ahead ?? []) yield observationOf(decodeText(text), textDigest)
}

/**
 * Tells it. `asked`: the version of its task that was known when the agent was asked; resolves with the one that the answer itself is to be held
 * against, for what was told here is nothing that was heard meanwhile.
 */
export async function tellAhead(
  event: SeenEvent,
  asked: number | undefined,
  record: (piece: Piece) => Promise<unknown>,
): Promise<number | undefined> {
  let known = asked
  for (const observation of aheadOf(event)) {
    let next = known
    // Once for each attempt to commit it: the last counts.
    const folded = (from: number, to: number): void => void (next = from === known ? to : known)
    await record({ observations: [observation], ahead: { of: event.observation.event, folded } })
    known = next
  }
  return known
}

/** Ids of all the messages that an event shows. */
export async function messageIds(event: SeenEvent): Promise<ReadonlySet<string>> {
  const ids = new Set(event.observation.messages.map(({ id }) => id))
  for (const { messages } of aheadOf(event)) {
    for (const { id } of messages) ids.add(id)
    await setImmediate()
  }
  return ids
}
