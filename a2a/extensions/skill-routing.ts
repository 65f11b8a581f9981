/**
 * The skill-routing extension: a send restricted to one skill names it in the request's metadata, so that a grant for a skill means
 * something. Owns the URI and the route's place. Does not own who may send (domain/access.ts).
 */
import type { AgentCard } from '../card.ts'
import { isObject } from '../proto-json.ts'

/** The URI of the extension for a deployment. Its `/v1` never changes meaning: an incompatible change is a new suffix. */
export const skillRoutingUri = (host: string): string => `https://${host}/console/skill-routing/v1`

/** Whether the agent promises to keep a send to the skill that it names; only then may a skill-scoped send be made. */
export const supportsSkillRouting = (card: Pick<AgentCard, 'capabilities'>, host: string): boolean =>
  card.capabilities.extensions.some((extension) => extension.uri === skillRoutingUri(host))

/**
 * The request metadata of a send. Only the console names a skill: a route that the caller supplied is dropped, whether or not
 * there is one to put in its place. Undefined when nothing is left to say.
 */
export function routeMetadata(
  host: string,
  metadata: Readonly<Record<string, unknown>> | undefined,
  skillId: string | null,
): Record<string, unknown> | undefined {
  const uri = skillRoutingUri(host)
  const { [uri]: _, ...rest } = metadata ?? {}
  if (skillId !== null) return { ...rest, [uri]: { skillId } }
  return Object.keys(rest).length > 0 ? rest : undefined
}

/** The message's extensions, with the URI exactly when the send is restricted to a skill. */
export function routeExtensions(host: string, extensions: readonly string[], skillId: string | null): string[] {
  const uri = skillRoutingUri(host)
  const others = extensions.filter((extension) => extension !== uri)
  return skillId === null ? others : [...others, uri]
}

/** The skill that a request, or an agent's answer, says it belongs to; null when it names none. */
export function routedSkill(host: string, metadata: Readonly<Record<string, unknown>> | undefined): string | null {
  const route = metadata?.[skillRoutingUri(host)]
  const skillId = isObject(route) ? route['skillId'] : undefined
  return typeof skillId === 'string' && skillId !== '' && skillId.length <= 255 ? skillId : null
}
