/**
 * Where troubles are, for lists that lead to them: which agents have any and of which sort, and which tasks are not followed. The
 * shapes that the browser checks with, and the words. What stands in the way of one agent is agent-troubles.ts; of one task,
 * actor-explanation.ts.
 */
import * as z from 'zod/mini'

/** In the order in which they are said. */
const troubles = ['unread', 'unfollowed', 'unsettled', 'undelivered'] as const

const TroubledAgent = z.object({ agentId: z.string(), troubles: z.array(z.enum(troubles)) })

/** `GET /api/troubled-agents`: those that have any, by what the viewer may see and as far as it was looked for. */
export const TroubledAgentsAnswer = z.object({ agents: z.array(TroubledAgent) })
export type TroubledAgentsAnswer = z.infer<typeof TroubledAgentsAnswer>
export type Trouble = (typeof troubles)[number]

/** Agents that are looked at for a list, the first registered. */
export const troubledSearched = 500
/** Of each of them its tenants' looks, and its newest unfinished tasks: where an agent cannot be read, the newest show it as well. */
export const looksOfEach = 50
export const tasksOfEach = 50
/** Sends that need a person, the newest of the organization, are looked at for which agents they went to. */
export const unsettledSearched = 2_000

const words: Readonly<Record<Trouble, string>> = {
  unread: 'Cannot be read',
  unfollowed: 'Tasks not followed',
  unsettled: 'Sends need you',
  undelivered: 'Sends not delivered',
}

/** "Cannot be read, tasks not followed": what a list says of an agent, whose page has the rest. */
export const troubleWords = (of: readonly Trouble[]): string => {
  const said = of.map((trouble) => words[trouble]).join(', ')
  return said.charAt(0) + said.slice(1).toLowerCase()
}

/** `GET /api/unfollowed-tasks`: the newest whose following fails for long, or has stopped. `more`: there are others. */
export const UnfollowedTasksAnswer = z.object({
  tasks: z.array(z.object({ localId: z.string(), title: z.string() })),
  more: z.boolean(),
})
export type UnfollowedTasksAnswer = z.infer<typeof UnfollowedTasksAnswer>

export const unfollowedListed = 20
/** Tasks under way that are looked at, the newest of the organization. */
export const followedSearched = 2_000

/** "3 tasks are not followed"; empty where none is known to be. */
export function unfollowedWords({ tasks, more }: UnfollowedTasksAnswer): string {
  if (tasks.length === 0) return ''
  return tasks.length === 1 && !more
    ? '1 task is not followed'
    : `${tasks.length}${more ? '+' : ''} tasks are not followed`
}
