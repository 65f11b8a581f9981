/** Opens the listener of http/metrics.ts where A2A_METRICS_PORT asks for one: on loopback, whatever HOST says. */
import type { FastifyInstance } from 'fastify'
import type { Running } from './composition.ts'
import type { Config } from './config.ts'

/** `watched`: the console's server, whose answers are counted; a worker has none. Returns how to close. */
export async function listenMetrics(
  { metrics: wanted }: Pick<Config, 'metrics'>,
  running: Running,
  drain: AbortSignal,
  watched: FastifyInstance | null,
): Promise<() => Promise<void>> {
  if (!wanted) return () => Promise.resolve()
  // Loaded only where it is wanted: a tenth of a second of the start.
  const { openMetrics } = await import('../http/metrics.ts')
  const metrics = openMetrics({ system: running.system, db: running.db, drain, log: running.log })
  if (watched) metrics.watch(watched)
  await metrics.server.listen({ host: '127.0.0.1', port: wanted.port })
  running.log.info({ port: wanted.port }, 'metrics ready')
  return () => metrics.server.close()
}
