/**
 * Where a skill ends. Who holds one skill sees its tasks and nothing else of the agent, so an agent's answer must stay with the
 * skill that it was asked for: one that claims another, or speaks of a task of another, is an error and nothing of it is kept.
 * Does not own who holds what (persistence/visibility.ts) or the route in a request (a2a/extensions/skill-routing.ts).
 */
import { routeMark, routedSkills, supportsSkillRouting } from '../a2a/extensions/skill-routing.ts'
import type { AgentCard } from '../a2a/card.ts'
import type { StreamResponse } from '../a2a/messages.ts'
import { contentOf, decodeText, type JsonText } from '../domain/json-text.ts'
import type { Observation } from '../domain/observation.ts'
import type { Database } from '../persistence/database.ts'
import { readTaskSkill } from '../persistence/tasks.ts'

/** What an answer is held against. */
export interface Asked {
  readonly agentId: string
  readonly tenant: string
  /** The skill that the command is restricted to, or the task's; null: none. */
  readonly skillId: string | null
  /** The agent's name of the task that was spoken of; null where the answer may make one. */
  readonly remoteTaskId: string | null
}

function mayHoldRoute(text: JsonText): boolean {
  const content = contentOf(text)
  return typeof content === 'string'
    ? content.includes(routeMark)
    : Buffer.from(content.buffer, content.byteOffset, content.length).includes(routeMark)
}

/** Whether what the agent says of something of this skill names another. What has no skill has no boundary to leave. */
export function claimsAnother({ event }: Pick<Observation, 'event'>, skillId: string | null): boolean {
  if (skillId === null || !mayHoldRoute(event)) return false
  // We wrote it from a checked event; only bytes were replaced by references.
  return routedSkills(JSON.parse(decodeText(event)) as StreamResponse).some((named) => named !== skillId)
}

/**
 * Whether a reply leaves its skill. A task that the command did not name is looked up: what is known under that name belongs to
 * a skill already. Agents that do not route skills have none, and are not asked about.
 */
export async function crossesSkill(
  tools: { readonly db: Database; readonly extensionHost: string },
  card: Pick<AgentCard, 'capabilities'>,
  { agentId, tenant, skillId, remoteTaskId }: Asked,
  reply: Observation,
): Promise<boolean> {
  if (skillId === null && !supportsSkillRouting(card, tools.extensionHost)) return false
  if (claimsAnother(reply, skillId)) return true
  if (reply.taskId === null || reply.taskId === remoteTaskId) return false
  const known = await readTaskSkill(tools.db.pool, { agentId, tenant, remoteId: reply.taskId })
  return known !== null && known.skillId !== skillId
}
