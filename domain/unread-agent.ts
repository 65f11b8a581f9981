/**
 * What is said of an agent that cannot be read, and of tasks that are followed in vain, alike on the agent's page, on a task's and on
 * an actor's: what it is called, since when, how often it is tried, and when next. Owns these words; whose page says which of them is
 * actor-explanation.ts and agent-troubles.ts.
 */
import type { Known } from './explanation.ts'

export const unreadTitle = 'The agent cannot be read'

/** Why nothing is asked of an agent or for a task any more, as rows and logs hold it. */
export const agentRemoved = 'The agent was removed.'
export const taskForgotten = 'The agent no longer knows the task.'

/** On the page of a task, or of whoever follows it. */
export const unfollowedTitle = 'Following does not work'
/** The same where several tasks may be meant: "Following 3 tasks does not work". */
export const unfollowedTasks = (tasks: string): string => `Following ${tasks} does not work`

/** The way from a timer to its try, and a look at the clock: what is due for longer is not the next try any more. Milliseconds. */
export const dueGraceMs = 5_000
export const isOverdue = (dueAt: string, nowMs: number): boolean => Date.parse(dueAt) + dueGraceMs < nowMs

const tries: Readonly<Record<string, { readonly next: string; readonly due: string }>> = {
  subscription: { next: 'The next try to follow', due: 'It was to be followed again' },
  reconciliation: { next: 'The next look at its tasks', due: 'Its tasks were to be looked at again' },
}
const anyTry = { next: 'The next try', due: 'It was due to be tried again' }

/** By the kind of the actor that tries; nothing where it is being tried, or never is. */
export function nextTryOf(kind: string, dueAt: string | null, nowMs: number): Known[] {
  if (dueAt === null) return []
  const { next, due } = tries[kind] ?? anyTry
  return [{ words: isOverdue(dueAt, nowMs) ? due : next, at: dueAt }]
}

/** Nothing where the log does not go back so far. */
export const sinceKnown = (since: string | null): Known[] =>
  since === null ? [] : [{ words: 'Since about', at: since }]

export const nothingLost = 'What the agent did shows as soon as it can be read, and nothing is lost.'

/** What reconciliation does meanwhile: its own rhythm, and its pause after failures. */
export const askedMeanwhile = (tasks: 'the task is' | 'its unfinished tasks are'): string =>
  `Meanwhile ${tasks} asked for about every 15 seconds, up to a minute apart while that fails too. ${nothingLost}`
