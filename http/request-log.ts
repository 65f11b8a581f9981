/**
 * A request's own log, with its id in each line, made when something is first said: pino reads its fields for secrets as it is
 * made, which is a hundredth of what a command costs, and hardly a request says anything. Does not decide what is logged.
 */
import type { FastifyBaseLogger } from 'fastify'

type Method = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export class RequestLog implements FastifyBaseLogger {
  readonly #make: () => FastifyBaseLogger
  #made: FastifyBaseLogger | null = null

  constructor(make: () => FastifyBaseLogger) {
    this.#make = make
  }

  get level(): FastifyBaseLogger['level'] {
    return this.#log.level
  }

  set level(level) {
    this.#log.level = level
  }

  trace(...said: unknown[]): void {
    this.#say('trace', said)
  }

  debug(...said: unknown[]): void {
    this.#say('debug', said)
  }

  info(...said: unknown[]): void {
    this.#say('info', said)
  }

  warn(...said: unknown[]): void {
    this.#say('warn', said)
  }

  error(...said: unknown[]): void {
    this.#say('error', said)
  }

  fatal(...said: unknown[]): void {
    this.#say('fatal', said)
  }

  silent(...said: unknown[]): void {
    this.#say('silent', said)
  }

  child(...of: Parameters<FastifyBaseLogger['child']>): FastifyBaseLogger {
    return this.#log.child(...of)
  }

  get #log(): FastifyBaseLogger {
    this.#made ??= this.#make()
    return this.#made
  }

  #say(method: Method, said: unknown[]): void {
    const log = this.#log
    const say = log[method] as (...said: unknown[]) => void
    say.apply(log, said)
  }
}
