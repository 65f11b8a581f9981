/**
 * Traces: what the agent does on the side, as artifacts of the trace extension. Owns their shape on the way out
 * [decided shapes, Wrapper]. Sends nothing to a client that did not ask.
 */
import { traceUri } from '../../a2a/extensions/trace.ts'
import type { Extension, Turn } from './turn.ts'

export const traceExtension: Extension = {
  uri: traceUri,
  description: 'Tells what the agent does while it works: tools, thoughts, decisions.',
}

export type TraceType = 'trace.lifecycle' | 'trace.mcp.start' | 'trace.mcp' | 'trace.thinking' | 'trace.decision'

/** Returns how to tell of something. All that one turn tells shares a trace id. */
export function openTrace(turn: Turn): (type: TraceType, data: Readonly<Record<string, unknown>>) => void {
  const traceId = turn.newId()
  const wanted = turn.extensions.has(traceUri)
  return (type, data) => {
    if (!wanted) return
    turn.artifact({
      artifactId: `${type}-${turn.newId()}`,
      name: type,
      extensions: [traceUri],
      metadata: { traceType: type, timestamp: new Date().toISOString() },
      parts: [
        {
          data: { agent_id: 'showcase', agent_name: 'Showcase', trace_id: traceId, ...data },
          mediaType: 'application/json',
        },
      ],
    })
  }
}
