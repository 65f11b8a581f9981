/**
 * A subject in a process of its own, so that its threads and its garbage are not its neighbour's: calls in, answers out, over
 * Node's IPC. A child ends when its parent does. Does not know what is measured.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'

interface Call {
  readonly number: number
  readonly method: string
  readonly params: unknown
}
type Answer = { readonly number: number } & ({ readonly result: unknown } | { readonly fault: string })

/** What a child offers, by name; params and results travel as JSON. */
export type Methods = Readonly<Record<string, (params: never) => unknown>>
type Params<M> = M extends (params: infer P) => unknown ? P : never
type Result<M> = M extends (params: never) => infer R ? Awaited<R> : never

export interface Child<M extends Methods> {
  call<K extends keyof M & string>(method: K, params: Params<M[K]>): Promise<Result<M[K]>>
  /** User and system time so far, milliseconds: what a busy neighbour on the machine does not change. */
  cpuMs(): Promise<number>
  /** Asks the child to end and waits for it; kills it after 10 s. */
  end(): Promise<void>
}

const endMs = 10_000

export function startChild<M extends Methods>(file: URL): Child<M> {
  const child = fork(file, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (reason: Error) => void }>()
  let last = 0
  child.on('message', (message) => {
    const answer = message as Answer
    const call = waiting.get(answer.number)
    waiting.delete(answer.number)
    if ('fault' in answer) call?.reject(new Error(answer.fault))
    else call?.resolve(answer.result)
  })
  child.once('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file.pathname} ended with ${code}`))
  })
  const ask = (method: string, params: unknown): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    waiting.set(++last, { resolve, reject })
    child.send({ number: last, method, params } satisfies Call)
    return promise
  }
  return {
    call: <K extends keyof M & string>(method: K, params: Params<M[K]>) => ask(method, params) as Promise<Result<M[K]>>,
    cpuMs: () => ask('cpuMs', null) as Promise<number>,
    end: async () => {
      const gone = once(child, 'exit')
      child.disconnect()
      const late = setTimeout(() => child.kill('SIGKILL'), endMs)
      await gone
      clearTimeout(late)
    },
  }
}

/** In the child: answers calls until the parent is gone, then cleans up and ends. */
export function answerParent(methods: Methods, close: () => unknown): void {
  process.on('message', (message) => {
    const { number, method, params } = message as Call
    const answer = (rest: { result: unknown } | { fault: string }): void => void process.send?.({ number, ...rest })
    const run = async (): Promise<unknown> => (method === 'cpuMs' ? cpuMs() : methods[method]?.(params as never))
    run().then(
      (result) => answer({ result }),
      (error: unknown) => answer({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
  })
  process.once('disconnect', () => {
    void Promise.resolve(close()).finally(() => process.exit(0))
  })
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
