/** What the HTTP floor logs, kept for a test to look at and never printed. */
import { Writable } from 'node:stream'
import { pino, type Logger } from 'pino'
import { logOptions } from '../../bin/log.ts'

export interface TestLog {
  readonly logger: Logger
  /** Lines so far, JSON texts as they would be written. */
  lines(): readonly string[]
  /** Lines of level error: defects. */
  errors(): readonly string[]
}

const errorLevel = 50

export function openTestLog(): TestLog {
  const lines: string[] = []
  const kept = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  return {
    logger: pino(logOptions('debug'), kept),
    lines: () => lines,
    errors: () => lines.filter((line) => (JSON.parse(line) as { level: number }).level >= errorLevel),
  }
}
