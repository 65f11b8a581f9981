/** What an error that wraps others comes from, in one sentence: the innermost says what to mend. Does not judge it. */
export const rootOf = (error: unknown): string =>
  error instanceof Error ? (error.cause instanceof Error ? rootOf(error.cause) : error.message) : String(error)
