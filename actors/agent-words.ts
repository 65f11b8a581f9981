/** What agents say when they refuse or fail, in words that can stand in a row and on a page. Decides nothing. */
import type { AgentError } from '../a2a/client.ts'

const wordsLimit = 500

/** What an agent said, or what was wrong with it, fit for a row and a page: rows are jsonb, which refuses NUL. */
export const plainWords = (text: string, limit = wordsLimit): string =>
  text.replaceAll('\0', '\ufffd').slice(0, limit).toWellFormed().trim()

/** An agent's no in a sentence for people. */
export function refusalWords({ reason, message }: AgentError): string {
  const said = plainWords(message)
  return said === '' ? `The agent refused with ${plainWords(reason)}.` : `The agent refused: ${said}`
}
