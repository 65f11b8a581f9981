/**
 * Reading what an agent delivers to a push callback [A2A 1.0, 4.3.3]: a stream response, or one of the bare objects that
 * agents of either version really send. Owns the envelope; the messages in it are wire.ts's.
 */
import { WireError, field, isObject, label } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { parseStreamResponse } from './wire.ts'
import type { StreamResponse } from './messages.ts'

export interface PushBody {
  readonly event: StreamResponse
  /** Events have no tenant in either version; one that is named all the same, beside the event or in it, is heard. */
  readonly tenant: string | null
}

/**
 * Reads the text of a body. Throws WireError: with an empty path where it is no event at all (no JSON, none or several of
 * task, message, statusUpdate and artifactUpdate), with the place of the fault where the event cannot be read.
 */
export function parsePushBody(text: string): PushBody {
  const json = parseJson(text)
  return { event: parseStreamResponse(json), tenant: tenantIn(json) }
}

function parseJson(text: string): JsonObject {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new WireError('', 'must be JSON')
    throw error
  }
  if (!isObject(json)) throw new WireError('', 'must be an object')
  return json
}

function tenantIn(json: JsonObject): string | null {
  for (const name of ['task', 'message', 'statusUpdate', 'artifactUpdate']) {
    const event = field(json, name)
    const tenant = isObject(event) ? label(event, 'tenant', name) : undefined
    if (tenant !== undefined) return tenant
  }
  return label(json, 'tenant', '') ?? null
}
