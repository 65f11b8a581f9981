/**
 * How many of those that wait leave with one commit: as many as there are seats, and as much as its statements can carry. A
 * commit is one text on its way to the database: eight huge events in one were some 400 MB of it, and the event loop stood
 * still while they were written. Pure; does not own the queue (departures.ts).
 */
import type { Report } from '../../domain/fact.ts'
import type { Step } from './step.ts'

/**
 * Characters that one commit writes: agents' words and people's. A single report or send may be more: it then leaves alone. What is
 * written of an agent's words is up to twice as much where they are messages or many short values, and takes the main thread some 10 ms;
 * on the embedded database nobody reads meanwhile.
 */
export const charactersLimit = 2 * 1024 * 1024

/** What a message takes beside its words: it is looked for by its names. */
const charactersAMessage = 1024

/** Characters of the events that a report brings: the agent's, and with its reply to a send what was sent. */
export const weightOfReport = ({ command, observations }: Report): number =>
  observations.reduce(
    (characters, { event, messages }) => characters + event.length + messages.length * charactersAMessage,
    command?.sent?.event.length ?? 0,
  )

/** Of what a step has its commit write, what may be much: its actor's row and its own facts are some kilobytes. */
export function weightOf(step: Step | null): number {
  let characters = 0
  for (const fact of step?.told ?? []) if (fact.type === 'agent.reported') characters += weightOfReport(fact.report)
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
