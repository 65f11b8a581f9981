/**
 * What became of a command, in words for the person who sent it: what happened and what to do. Owns the table from the server's
 * sentences to plain explanations; a sentence it does not know is shown as it is.
 */
import { type Command, commandErrors } from '../domain/command.ts'

export interface Explanation {
  readonly tone: 'warn' | 'bad'
  readonly title: string
  readonly meaning: string
  readonly advice: string
}

const failures: Readonly<Record<string, { meaning: string; advice: string }>> = {
  [commandErrors.discovery]: {
    meaning: 'The agent did not show its card in three tries, so nothing was sent to it.',
    advice: 'Check on the Agents page that it answers, then send again.',
  },
  [commandErrors.unavailable]: {
    meaning: 'The agent is no longer registered, or the saved message is gone. Nothing was sent.',
    advice: 'Add the agent again, then send again.',
  },
  'Agent credentials are required.': {
    meaning: 'The agent wants to know who is asking, and this console has no credentials for it.',
    advice: 'An administrator can store them; then send again.',
  },
  'Agent network request failed.': {
    meaning: 'No connection to the agent could be opened, so nothing was sent.',
    advice: 'Check that the agent is running, then send again.',
  },
}

const wasWhat = (action: Command['action']): string => (action === 'cancelTask' ? 'the cancel' : 'your message')

/** Undefined while it is under way, and when it went well. */
export function explain(command: Pick<Command, 'status' | 'error' | 'action'>): Explanation | undefined {
  if (command.status === 'uncertain') return uncertain(command.action)
  if (command.status !== 'failed') return undefined
  const known = command.error === null ? undefined : failures[command.error]
  return {
    tone: 'bad',
    title: `Not delivered`,
    meaning: known?.meaning ?? command.error ?? 'The command failed.',
    advice: known?.advice ?? `The agent did not take ${wasWhat(command.action)}. Change it, or send it again.`,
  }
}

/** Never "failed": whether it took place is not known, and a second try might make it happen twice. */
export const uncertain = (action: Command['action']): Explanation => ({
  tone: 'warn',
  title: 'Outcome unknown',
  meaning: `The agent may or may not have received ${wasWhat(action)}: the connection ended before it answered. Nothing is sent again automatically.`,
  advice: 'Look at the task, or ask whoever runs the agent, before you send it again.',
})

/** The blocking routes answer 409 with the command's sentence; these two mean that the outcome is open. */
export const meansUncertain = (message: string): boolean =>
  message.includes(commandErrors.uncertain) || message.includes(commandErrors.leaseExpired)
