/** The console's log in a test: kept, so that a test can say what must and must not stand in it; never printed. */
import { Writable } from 'node:stream'
import { pino, type Logger } from 'pino'

export interface TestLog {
  readonly logger: Logger
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
  /** Lines so far, as JSON texts. */
  lines(): readonly string[]
  /** Lines of level error. */
  errors(): readonly string[]
}

export function openTestLog(): TestLog {
  const lines: string[] = []
  const kept = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  const logger = pino({ level: 'debug' }, kept)
  return {
    logger,
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    lines: () => lines,
    errors: () => lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 50),
  }
}
