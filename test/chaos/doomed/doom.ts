/**
 * Where this process is to die, or to stand still: one named point, when it is reached next, or next on behalf of somebody.
 * SIGKILL, so that nothing is flushed, closed or caught; SIGSTOP, so that nothing is noticed. Owns the names; who reaches them is
 * driver.ts and sockets.ts.
 */

/** Every point at which a promise could break. `commit kind/side` for commits, `any` for each; the rest follow a request to the agent. */
export const crashPoints = [
  'accept/before-commit',
  'accept/after-commit',
  'claim/before-commit',
  'claim/after-commit',
  'begin/before-commit',
  'begin/after-commit',
  'send/before-first-byte',
  'send/after-head',
  'send/after-body',
  'answer/received',
  'artifact/stored',
  'result/before-commit',
  'result/after-commit',
  'observation/before-commit',
  'observation/after-commit',
  'look/before-commit',
  'look/after-commit',
  'callback/before-commit',
  'callback/after-commit',
  'register/before-commit',
  'register/after-commit',
  'push/before-commit',
  'push/after-commit',
  'remove/before-commit',
  'remove/after-commit',
  'settle/before-commit',
  'settle/after-commit',
  'replace/before-commit',
  'replace/after-commit',
  'any/before-commit',
  'any/after-commit',
] as const
export type CrashPoint = (typeof crashPoints)[number]
/**
 * What a commit of the loop writes: a command, the mark that its work has begun, its outcome, what an agent showed, what a look
 * for an uncertain command found, that an agent has taken a callback, what it delivered to one, that it has given it back, a command
 * in the place of another.
 */
export type CommitKind =
  | 'accept'
  | 'begin'
  | 'result'
  | 'observation'
  | 'look'
  | 'register'
  | 'push'
  | 'remove'
  | 'replace'
/**
 * What the pool commits: a claim, the callback that an agent is about to be told of, both one statement; and what a person decided of
 * a send, a transaction that ends with one.
 */
export type StatementKind = 'claim' | 'callback' | 'settle'

export const isCrashPoint = (name: string): name is CrashPoint => (crashPoints as readonly string[]).includes(name)

export class Doom {
  #point: CrashPoint | null = null
  #of: RegExp | null = null
  /** How often the point is still to be reached. */
  #times = 1
  #signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'

  /**
   * `of`: only where what is written there names this. Of the tasks that are followed at once any may be the next to reach a point of
   * an observation, and what such a death means for another command depends on how far that had come. `nth`: not the first time that it
   * is reached, but this one.
   */
  dieAt(point: CrashPoint, of: string | null = null, nth = 1): void {
    this.#point = point
    this.#times = nth
    // Names end in numbers: the third is not the thirtieth.
    this.#of = of === null ? null : new RegExp(`(?<![\\w-])${of}(?![\\w-])`)
    this.#signal = 'SIGKILL'
  }

  /** Once: whoever continues the process finds it unarmed. */
  stopAt(point: CrashPoint): void {
    this.#point = point
    this.#of = null
    this.#times = 1
    this.#signal = 'SIGSTOP'
  }

  awaits(point: CrashPoint): boolean {
    return this.#point === point
  }

  /** When this is the point, the process dies here, or stands still until somebody continues it. `said`: what is written there. */
  reach(point: CrashPoint, said = ''): void {
    if (this.#point !== point || this.#of?.test(said) === false) return
    this.#times -= 1
    if (this.#times > 0) return
    this.#point = null
    process.kill(process.pid, this.#signal)
    // The signal may take an instant; not one statement more may run before it.
    const instantMs = this.#signal === 'SIGKILL' ? Infinity : 50
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, instantMs)
  }
}
