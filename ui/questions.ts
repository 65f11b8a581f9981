/** The answers the console shows, by path: one place where a URL meets its schema; of agents, agent-questions.ts. Owns no state. */
import * as z from 'zod/mini'
import { Command } from '../domain/command.ts'
import { TaskRow, TaskView, type TaskFilter } from '../domain/task.ts'
import type { Queries, Question } from './queries.ts'

/** Of the agents (agent-questions.ts): all in one answer, and as they answer. */
export const agentsPath = '/api/agents'
export const answeringPath = '/api/answering-agents'

/** There are others than are known. */
export function refreshAgents(queries: Queries): void {
  for (const path of [agentsPath, answeringPath]) queries.refresh(path)
}

export const TaskPage = z.object({ tasks: z.array(TaskRow) })
export type TaskPage = z.infer<typeof TaskPage>

export const tasksPath = (filter: TaskFilter, limit: number, offset: number): string =>
  `/api/tasks?filter=${filter}&limit=${limit}&offset=${offset}`

/** `commands`: what was said about it that is not delivered, or may not be. */
const TaskAnswer = z.object({
  task: TaskView,
  commands: z._default(z.array(Command), []),
  /** Whoever looks may answer and cancel it. */
  operable: z._default(z.boolean(), true),
})
export type TaskAnswer = z.infer<typeof TaskAnswer>

export const taskQuestion = (localId: string): Question<TaskAnswer> => ({
  path: `/api/tasks/${encodeURIComponent(localId)}`,
  schema: TaskAnswer,
  freshness: 'live',
  latest: (known, fetched) => (fetched.task.version < known.task.version ? { ...fetched, task: known.task } : fetched),
})

/** Puts in what a stream told, unless something newer is known: streams and refetches overtake each other. */
export function putTask(queries: Queries, task: TaskView): void {
  const question = taskQuestion(task.localId)
  const known = queries.peek(question).data
  if (task.version >= (known?.task.version ?? -1))
    queries.put(question, { commands: [], operable: true, ...known, task })
}

const CommandAnswer = z.object({ command: Command })
export type CommandAnswer = z.infer<typeof CommandAnswer>

export const commandQuestion = (id: string): Question<CommandAnswer> => ({
  path: `/api/commands/${encodeURIComponent(id)}`,
  schema: CommandAnswer,
  freshness: 'live',
})
