/** A port for a process that is told its port before it listens. Below those that a system hands out by itself. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port that the system gave, and that was given back, may be the next connection's of anybody before the process has it. These are
 * never given: Linux' own begin at 32768, those of others at 49152 [RFC 6335 §6].
 */
const [lowest, above] = [15_000, 30_000]
const triesLimit = 20

/** Free now, and kept by nobody; that another test asks for the same one meanwhile is one in some thousands. */
export async function freePort(): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = randomInt(lowest, above)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      server.close()
      await once(server, 'close')
      return port
    } catch (error) {
      if (tries === triesLimit) throw error
    }
  }
}
