/**
 * Readers that take nothing. What waits to be taken stays in memory together with what makes it, so whoever takes nothing of it for
 * some time is let go. Only bytes that wait count: a line may be silent for as long as its answer is not there, its stream has
 * nothing to say or its request is still arriving. Event streams have a limit of their own (event-stream.ts).
 */
import type { FastifyInstance } from 'fastify'

/**
 * Measured in what the kernel takes over, which holds some megabytes itself and asks for more once a third of them is gone: 1.5 MB on
 * loopback, so that a reader of 50 kB a second is kept there. Towards slower networks it holds less, and asks for less.
 */
const stallMs = 30_000

/** Node restarts a response's clock whenever bytes are written or taken, and after it has rung. */
export function letGoOfStalled(app: FastifyInstance, afterMs = stallMs): void {
  // From the beginning: a clock that rings for a response without a listener ends its connection, whatever it waits for.
  app.addHook('onRequest', (request, { raw }, next) => {
    raw.setTimeout(afterMs, () => {
      if (raw.writableLength === 0) return
      request.log.debug('a client took nothing of its answer')
      raw.destroy()
    })
    next()
  })
}
