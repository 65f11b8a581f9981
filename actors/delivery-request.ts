/**
 * What a command says to its agent: the request, in the version and binding that its card names, and our own words as the transcript
 * shows them. What is sent is what was accepted. Does not send (delivery.ts) or write frames (a2a/client.ts).
 */
import { encodeRequest, type WireRequest } from '../a2a/client.ts'
import type { Endpoint } from '../a2a/operations.ts'
import { negotiatedSideband } from '../a2a/extensions/sideband.ts'
import { routeExtensions, routeMetadata } from '../a2a/extensions/skill-routing.ts'
import { WireError } from '../a2a/wire.ts'
import type { Message, Part } from '../a2a/messages.ts'
import type { CommandBody } from '../domain/command-body.ts'
import type { Observation } from '../domain/observation.ts'
import type { Delivery } from '../persistence/commands.ts'
import type { FoundAgent } from './discovery.ts'
import type { Blob } from './threads/messages.ts'
import { observed } from './threads/stream-parser.ts'

/** Names of ours. */
export interface OwnUris {
  /** Names our own extensions; an identifier, never fetched. */
  readonly extensionHost: string
  /** Sideband URIs that the deployment understands besides the built-in ones. */
  readonly sidebandUris: readonly string[]
}

export interface Encoded {
  readonly wire: WireRequest
  readonly endpoint: Endpoint
}

export function encodeDelivery(
  uris: OwnUris,
  card: FoundAgent,
  delivery: Delivery,
  commandId: string,
): Encoded | WireError {
  const { body, messageId } = delivery
  const endpoint = body.tenant === '' ? card.endpoint : { ...card.endpoint, tenant: body.tenant }
  const extensions = extensionsOf(uris, card, delivery)
  const options = { requestId: commandId, extensions }
  try {
    if (body.action === 'cancelTask')
      return { endpoint, wire: encodeRequest(endpoint, 'cancel', { id: body.taskId ?? '' }, options) }
    const { historyLength, acceptedOutputModes, requestMetadata } = body.config ?? {}
    const metadata = routeMetadata(uris.extensionHost, requestMetadata, delivery.skillId)
    const configuration = {
      // Always: what the agent does afterwards is followed by the subscription, not by this request.
      returnImmediately: true,
      ...(historyLength === undefined ? {} : { historyLength }),
      ...(acceptedOutputModes === undefined ? {} : { acceptedOutputModes }),
    }
    const params = {
      message: unrouted(uris, messageOf(body, messageId, extensions)),
      configuration,
      ...(metadata === undefined ? {} : { metadata }),
    }
    return { endpoint, wire: encodeRequest(endpoint, 'send', params, options) }
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
}

/** A route that the caller put into the message itself is none of ours, wherever an agent may look for it. */
function unrouted({ extensionHost }: OwnUris, { metadata, ...message }: Message): Message {
  const kept = routeMetadata(extensionHost, metadata, null)
  return kept === undefined ? message : { ...message, metadata: kept }
}

/** What the caller asked for, what the agent offers and we understand, and the route of a skill-scoped send. */
function extensionsOf(uris: OwnUris, card: FoundAgent, { body, skillId }: Delivery): string[] {
  const offered = negotiatedSideband(card.card, uris.sidebandUris)
  const wanted = [...new Set([...(body.config?.extensions ?? []), ...offered])]
  return routeExtensions(uris.extensionHost, wanted, skillId)
}

/** Our own words, as the transcript shows them: in the task that the agent's reply names. */
export function sentWords(delivery: Delivery, reply: Observation): { observation: Observation; blobs: Blob[] } {
  const message: Message = {
    ...messageOf(delivery.body, delivery.messageId, []),
    ...(reply.taskId === null ? {} : { taskId: reply.taskId }),
    ...(reply.contextId === null ? {} : { contextId: reply.contextId }),
  }
  const { observation, blobs } = observed({ message })
  const messages = observation.messages.map((said) => ({ ...said, timestamp: delivery.createdAt }))
  return { observation: { ...observation, messages }, blobs }
}

function messageOf(body: CommandBody, messageId: string, extensions: readonly string[]): Message {
  const text: Part[] = body.text ? [{ text: body.text, mediaType: 'text/plain' }] : []
  const { metadata, referenceTaskIds } = body.config ?? {}
  return {
    messageId,
    role: 'ROLE_USER',
    parts: [...text, ...((body.parts ?? []) as Part[])],
    ...(body.taskId === undefined ? {} : { taskId: body.taskId }),
    ...(body.contextId === undefined ? {} : { contextId: body.contextId }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(extensions.length === 0 ? {} : { extensions: [...extensions] }),
    ...(referenceTaskIds === undefined ? {} : { referenceTaskIds }),
  }
}
