/** Ending a connection that nobody needs any more, whether or not anybody is at its other end. */
import type pg from 'pg'

/** A server that is there says goodbye within milliseconds. */
const farewellMs = 2_000

/**
 * Says goodbye, and hangs up where no answer comes: node-postgres waits for the other side to close, and a peer that is gone
 * without a word never does. Never rejects.
 */
export async function hangUp(client: pg.Client): Promise<void> {
  const late = setTimeout(() => client.connection.stream.destroy(), farewellMs)
  try {
    await client.end()
  } finally {
    clearTimeout(late)
  }
}
