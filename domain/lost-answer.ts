/**
 * What came instead of an agent's answer, in sentences of ours: how long one is waited for, and the closed set of what may be
 * shown of a delivery whose outcome is unknown. Owns the words; that it happened is actors/outbound.ts, what follows is a person's.
 */

/** From the call to the last byte of the answer. A large one that waits for room with us stops this clock (actors/large-answers.ts). */
export const answerDeadlineMs = 60_000

/** Until when a request is waited for which began then; until later only where a large answer has come and waits for room. */
export const answerBy = (begunAt: string): string => new Date(Date.parse(begunAt) + answerDeadlineMs).toISOString()

const inTime = `within ${answerDeadlineMs / 1000} s`

export const lostAnswers = {
  timeout: `No answer ${inTime}, so the console hung up.`,
  unfinished: `The answer had begun and was not whole ${inTime}, so the console hung up.`,
  unfinishedBesideWait: `The answer had begun and was not whole ${inTime} beside its wait for room here, so the console hung up.`,
  noRoom: 'The answer had begun, and the console had no room for so large a one and hung up.',
  announced: 'The agent announced an answer again and again, and gave none.',
  reset: 'The connection broke before the answer was whole.',
  malformed: 'Bytes that are no HTTP.',
  aborted: 'The console hung up before the answer was whole.',
  unread: 'The console was too busy to read what the agent said.',
  undecided: 'An answer that cannot be read, or does not say whether it was done.',
  another: 'The agent answered with another task.',
} as const

/** Of what did answer, only not so that anybody knows what it did: the numbers, which are no agent's words. */
export const answeredStatus = (status: number): string => `The agent answered with HTTP status ${status}.`
export const answeredError = (code: number): string => `The agent answered with the error code ${code}.`

/**
 * What came instead of an answer: where an error did, its number in a sentence that may be shown, and then what was written.
 * A redirect is not followed, and whether it was a no is the agent's secret.
 */
export function doubtOf(status: number, code: number | null, words: string): string {
  if (status >= 300 && status < 400) return 'Agent redirects are not permitted.'
  const number = status >= 400 ? answeredStatus(status) : code === null ? '' : answeredError(code)
  return `${number} ${words}`.trim()
}

/** It answered well, and that is lost with us: why, in the file system's own short word. */
export const unstoredAnswer = (code: string): string =>
  `The agent answered, and the console could not store the files of what was said (${code}).`
const unstored =
  /^The agent answered, and the console could not store the files of what was said \([A-Z][A-Z0-9_]{1,30}\)\.$/

export const isUnstored = (cause: string): boolean => unstored.test(cause)

export type LostAnswer = keyof typeof lostAnswers

const answered = /^The agent answered with (?:HTTP status \d{3}|the error code -?\d{1,12})\./

/** What logs hold besides: the network's own sentences, and those of before there were these. */
const known: ReadonlySet<string> = new Set([
  ...Object.values(lostAnswers),
  'Agent network request failed.',
  'Agent redirects are not permitted.',
  'Agent response exceeds the safety limit.',
  'It could not be read.',
])

/** A cause as a log holds it, as it may be shown: what an agent wrote, after a sentence of ours or instead of one, is not repeated. */
export const shownCause = (cause: string): string =>
  answered.exec(cause)?.[0] ?? (known.has(cause) || isUnstored(cause) ? cause : lostAnswers.undecided)
