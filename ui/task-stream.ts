/**
 * One task's event stream, `POST /api/agents/{id}/stream`: eight events in words of our own. Owns reading it; what the events
 * mean to a page is sending.ts and controllers/follow.ts. A stream lasts about 50 s by design and is opened again.
 */
import * as z from 'zod/mini'
import { FrameSplitter, FrameTooLarge, parseFrame, type SseEvent } from '../a2a/sse.ts'
import { TaskView } from '../domain/task.ts'
import { type Api, ApiFault } from './api.ts'

/** What an agent told about its work beside the task itself. Optional fields differ between the two trace extensions. */
export const TraceEvent = z.object({
  id: z.string(),
  timestamp: z.string(),
  type: z.string(),
  title: z.string(),
  level: z.catch(z.enum(['debug', 'info', 'warning', 'error']), 'info'),
  parts: z.catch(z.array(z.unknown()), []),
})
export type TraceEvent = z.infer<typeof TraceEvent>

const Accepted = z.object({ commandId: z.string() })
const Persisted = z.object({ localId: z.string(), taskId: z.nullable(z.string()), tenant: z.string() })
const Meta = z.object({ position: z.number() })
const Failed = z.object({ message: z.string() })

export type StreamEvent =
  | { readonly kind: 'accepted'; readonly commandId: string }
  | { readonly kind: 'persisted'; readonly localId: string }
  | { readonly kind: 'snapshot'; readonly task: TaskView }
  /** Of the stored event that is told next. */
  | { readonly kind: 'position'; readonly position: number }
  | { readonly kind: 'trace'; readonly event: TraceEvent }
  | { readonly kind: 'error'; readonly message: string }
  | { readonly kind: 'end' }

/** The console caps an agent's answers at 25 MiB; a task view of several answers may be larger than one of them. */
const frameLimitBytes = 64 * 1024 * 1024

/** Ends with the response. Throws ApiFault, also when the connection breaks before an `end`. */
export async function* readTaskStream(
  api: Api,
  agentId: string,
  body: object,
  options: { readonly idempotencyKey?: string; readonly signal: AbortSignal },
): AsyncGenerator<StreamEvent> {
  const path = `/api/agents/${encodeURIComponent(agentId)}/stream`
  const response = await api.send(path, { method: 'POST', body, ...options }, 'text/event-stream')
  if (!response.body) return
  for await (const event of eventsOf(response.body, options.signal)) {
    const known = interpret(event)
    if (known) yield known
  }
}

/** Of a response's body; ends with it. Throws ApiFault. */
export async function* eventsOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<SseEvent> {
  const splitter = new FrameSplitter(frameLimitBytes)
  const reader = body.getReader()
  try {
    let open = true
    while (open) {
      const { done, value } = await reader.read()
      const frames = value ? splitter.push(value) : splitter.end()
      for (const frame of frames) {
        const event = parseFrame(frame)
        if (event) yield event
      }
      open = !done
    }
  } catch (cause) {
    if (signal.aborted) return
    if (cause instanceof FrameTooLarge)
      throw new ApiFault('malformed', 0, 'The task is larger than this page can hold.')
    if (cause instanceof TypeError) throw new ApiFault('unreachable', 0, 'The connection to the console was lost.')
    throw cause
  } finally {
    // Tells the server that nobody listens any more; its answer to that does not matter to us.
    reader.cancel().catch(() => undefined)
  }
}

/** Undefined for the events no page shows (`a2a`) and for what we cannot read: a snapshot follows every change. */
function interpret({ event, data }: SseEvent): StreamEvent | undefined {
  const read = <T extends z.ZodMiniType>(schema: T): z.output<T> | undefined => {
    const parsed = z.safeParse(schema, parseJson(data))
    return parsed.success ? parsed.data : undefined
  }
  if (event === 'accepted') {
    const accepted = read(Accepted)
    return accepted && { kind: 'accepted', commandId: accepted.commandId }
  }
  if (event === 'persisted') {
    const persisted = read(Persisted)
    return persisted && { kind: 'persisted', localId: persisted.localId }
  }
  if (event === 'snapshot') {
    const task = read(TaskView)
    return task && { kind: 'snapshot', task }
  }
  if (event === 'meta') {
    const meta = read(Meta)
    return meta && { kind: 'position', position: meta.position }
  }
  if (event === 'sideband') {
    const trace = read(TraceEvent)
    return trace && { kind: 'trace', event: trace }
  }
  if (event === 'error') return { kind: 'error', message: read(Failed)?.message ?? 'The stream failed.' }
  return event === 'end' ? { kind: 'end' } : undefined
}

/** Undefined for what is no JSON: a frame that was cut short. */
export function parseJson(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
