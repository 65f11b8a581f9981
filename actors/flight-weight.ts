/**
 * How many of those that wait leave with one commit: as many as there are seats, and as much as its statements can carry. A
 * commit is one text on its way to the database: eight huge events in one were some 400 MB of it, and the event loop stood
 * still while they were written. Pure; does not own the queue (runtime.ts).
 */
import type { Step } from './step.ts'

/** Characters of agents' words in one commit. A single report may be more: it then leaves alone. */
export const charactersLimit = 8 * 1024 * 1024

/** Characters of the events that a step reports: what is written of them is some twice as much. */
export function weightOf(step: Step | null): number {
  let characters = 0
  for (const fact of step?.told ?? [])
    if (fact.type === 'agent.reported') for (const { event } of fact.report.observations) characters += event.length
  return characters
}

/** The first that waits always leaves. */
export function seated(waiting: readonly { readonly weight: number }[], seats: number): number {
  let characters = 0
  for (const [i, { weight }] of waiting.entries()) {
    characters += weight
    if (i === seats || (i > 0 && characters > charactersLimit)) return i
  }
  return waiting.length
}
