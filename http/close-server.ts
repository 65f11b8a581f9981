/** Ending a server: whoever is half way through a request may end it, and nobody keeps it from ending. */
import type { FastifyInstance } from 'fastify'

/** A client that is half way through a request may end it; then its line is cut. */
const farewellMs = 2_000

/** Also a line on which nothing was ever asked, as browsers keep them in store, is waited for by Node for a minute. */
export async function closeServer(server: FastifyInstance): Promise<void> {
  const late = setTimeout(() => server.server.closeAllConnections(), farewellMs)
  try {
    await server.close()
  } finally {
    clearTimeout(late)
  }
}
