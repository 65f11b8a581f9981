/** What agents say when they refuse or fail, in words that can stand in a row and on a page. Decides nothing. */
import type { AgentError } from '../a2a/client.ts'
import { tableError } from '../a2a/errors.ts'

const wordsLimit = 500

/** What an agent said, or what was wrong with it, fit for a row and a page: rows are jsonb, which refuses NUL. */
export const plainWords = (text: string, limit = wordsLimit): string =>
  text.replaceAll('\0', '\ufffd').slice(0, limit).toWellFormed().trim()

/** An agent's error in a sentence for people: its no, or that it failed, which is none. */
export function errorWords(error: AgentError): string {
  const { httpStatus } = error
  const said = plainWords(error.message)
  const did = isFailure(error) ? 'failed' : 'refused'
  if (httpStatus >= 500) return `The agent ${did} with HTTP status ${httpStatus}${said === '' ? '.' : `: ${said}`}`
  return said === '' ? `The agent ${did} with ${plainWords(error.reason)}.` : `The agent ${did}: ${said}`
}

/** JSON-RPC says with 200 what HTTP says with a status; one that says something else is believed. */
function isFailure(error: AgentError): boolean {
  const { httpStatus } = error.httpStatus >= 400 ? error : (tableError(error) ?? error)
  return httpStatus >= 500
}
