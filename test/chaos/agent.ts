/** Starts the witness (witness.ts) and reads what it wrote down. Owns its process; the receipts' file belongs to the caller. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import * as z from 'zod/mini'
import { dialectNames, type DialectName } from './dialects.ts'

const dialect = z.enum(dialectNames)

/** One send whose body was read whole, on disk before its answer left. */
const Receipt = z.object({
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
const Tasks = z.object({ tasks: z.array(AgentTask) })

export interface Agent {
  readonly origin: string
  cardUrl(name: DialectName): string
  receipts(): readonly Receipt[]
  tasks(): Promise<readonly AgentTask[]>
  stop(): Promise<void>
}

export async function startAgent(directory: string): Promise<Agent> {
  const file = join(directory, 'receipts.jsonl')
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [join(import.meta.dirname, 'witness.ts'), file])
  child.stderr.pipe(process.stderr)
  const [origin] = (await once(createInterface(child.stdout), 'line')) as [string]
  const ended = once(child, 'exit')
  return {
    origin,
    cardUrl: (name) => `${origin}/${name}/agent-card.json`,
    receipts: () => readReceipts(file),
    tasks: async () => Tasks.parse(await (await fetch(`${origin}/tasks`)).json()).tasks,
    async stop() {
      child.stdin.end()
      await ended
    },
  }
}

function readReceipts(file: string): Receipt[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => Receipt.parse(JSON.parse(line)))
}
