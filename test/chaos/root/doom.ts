/**
 * Where this process is to die: one named point, the n-th time that it is reached. SIGKILL, so that nothing is flushed, closed
 * or caught. Owns the names; who reaches them is driver.ts and sockets.ts.
 */

/** Every point at which a promise could break. `commit kind/side` for commits; the rest follow a request to the agent. */
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
  'result/before-commit',
  'result/after-commit',
  'observation/before-commit',
  'observation/after-commit',
] as const
export type CrashPoint = (typeof crashPoints)[number]
/** What a commit of the loop writes: a command, a claim, the mark that its work has begun, its outcome, what an agent showed. */
export type CommitKind = 'accept' | 'claim' | 'begin' | 'result' | 'observation'

export const isCrashPoint = (name: string): name is CrashPoint => (crashPoints as readonly string[]).includes(name)

export class Doom {
  #point: CrashPoint | null = null

  dieAt(point: CrashPoint): void {
    this.#point = point
  }

  awaits(point: CrashPoint): boolean {
    return this.#point === point
  }

  /** Does not return when this is the point. */
  reach(point: CrashPoint): void {
    if (this.#point !== point) return
    process.kill(process.pid, 'SIGKILL')
    // The signal may take an instant; not one statement more may run.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }
}
