/**
 * The skill-routing extension: a send restricted to one skill names it in the request's metadata, so that a grant for a skill means
 * something. Owns the URI and the route's place. Does not own who may send (domain/access.ts).
 */
import type { AgentCard } from '../card.ts'
import type { StreamResponse } from '../messages.ts'
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

/** How every deployment's URI of this extension ends, so that what an agent says can be read without knowing for which it says it. */
const path = '/console/skill-routing/v1'

/**
 * Every skill that an agent's event says it belongs to, of the task, of a message or of an artifact, under whichever host: an agent
 * that serves two deployments names both.
 */
export const routedSkills = (event: StreamResponse): string[] =>
  metadataOf(event).flatMap((metadata = {}) =>
    Object.entries(metadata).flatMap(([key, route]) =>
      key.endsWith(path) && isObject(route) && typeof route['skillId'] === 'string' ? route['skillId'] : [],
    ),
  )

/** What a text must hold to hold a route: most events hold none, and need not be parsed to know it. */
export const routeMark = path

function metadataOf(event: StreamResponse): readonly (Readonly<Record<string, unknown>> | undefined)[] {
  if ('task' in event) return [event.task.metadata, event.task.status.message?.metadata]
  if ('message' in event) return [event.message.metadata]
  if ('statusUpdate' in event) return [event.statusUpdate.metadata, event.statusUpdate.status.message?.metadata]
  return [event.artifactUpdate.metadata, event.artifactUpdate.artifact.metadata]
}
