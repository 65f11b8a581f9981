/** Starts the witness (witness.ts) and reads what it wrote down. Owns its process; the receipts' file belongs to the caller. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import * as z from 'zod/mini'
import { dialectNames, type DialectName } from './dialects.ts'

const dialect = z.enum(dialectNames)

/** One send whose body was read whole, or a cancel, on disk before its answer left. */
const Receipt = z.object({
  /** Of a cancel: `cancel-` and the task's id. */
  messageId: z.string(),
  /** Milliseconds since the epoch. */
  at: z.number(),
  dialect,
  /** The id of the message or task that was answered, or `refused`: the agent said that it did nothing. */
  answer: z.string(),
})
export type Receipt = z.infer<typeof Receipt>

const AgentTask = z.object({
  id: z.string(),
  messageId: z.string(),
  dialect,
  state: z.string(),
  chunks: z.array(z.string()),
})
export type AgentTask = z.infer<typeof AgentTask>
/** What an agent that calls did and was asked about its callbacks, each on disk before an answer left, or after one came. */
const Call = z.discriminatedUnion('what', [
  z.object({
    what: z.literal('configured'),
    taskId: z.string(),
    id: z.string(),
    url: z.string(),
    token: z.string(),
    credentials: z.string(),
    /** How many callbacks the task has with it. */
    live: z.number(),
  }),
  z.object({ what: z.literal('forgotten'), taskId: z.string(), id: z.string() }),
  z.object({
    what: z.literal('delivered'),
    taskId: z.string(),
    deliveryId: z.string(),
    /** Null: the connection broke before it was answered. */
    status: z.nullable(z.number()),
  }),
])
export type Call = z.infer<typeof Call>
/** Longer than the agent goes on trying at a console that is not there (callbacks.ts). */
const deliveredWithinMs = 90_000
const Delivered = z.object({ delivered: z.boolean() })

const Tasks = z.object({ tasks: z.array(AgentTask) })

export interface Agent {
  readonly origin: string
  cardUrl(name: DialectName): string
  receipts(): readonly Receipt[]
  /** Of an agent that calls. */
  calls(): readonly Call[]
  /** Moves a task that is called about by one event; resolves when that is delivered, and fails when it never was. */
  next(taskId: string): Promise<void>
  tasks(): Promise<readonly AgentTask[]>
  stop(): Promise<void>
}

/** `calls`: it calls about its tasks, and does not stream. */
export async function startAgent(directory: string, calls = false): Promise<Agent> {
  const file = join(directory, 'receipts.jsonl')
  const callFile = join(directory, 'calls.jsonl')
  const args = [join(import.meta.dirname, 'witness.ts'), file, ...(calls ? [callFile] : [])]
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, args)
  child.stderr.pipe(process.stderr)
  const [origin] = (await once(createInterface(child.stdout), 'line')) as [string]
  const ended = once(child, 'exit')
  return {
    origin,
    cardUrl: (name) => `${origin}/${name}/agent-card.json`,
    receipts: () => linesOf(file, Receipt),
    calls: () => linesOf(callFile, Call),
    async next(taskId) {
      const response = await fetch(`${origin}/next/${taskId}`, { signal: AbortSignal.timeout(deliveredWithinMs) })
      const { delivered } = Delivered.parse(await response.json())
      if (delivered) return
      const said = linesOf(callFile, Call).filter((call) => call.taskId === taskId)
      throw new Error(`An event of ${taskId} was never taken: ${JSON.stringify(said.slice(-5))}`)
    },
    tasks: async () => Tasks.parse(await (await fetch(`${origin}/tasks`)).json()).tasks,
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}

function linesOf<T>(file: string, shape: z.ZodMiniType<T>): T[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => shape.parse(JSON.parse(line)))
}
