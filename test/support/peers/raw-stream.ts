/**
 * A stream of events as peers in the wild frame it, and as networks break it. Owns framing and the faults inside a
 * stream. Does not own which events there are (raw-agent.ts).
 */
import type { ServerResponse } from 'node:http'

/**
 * How events are framed. `lf` is the JS SDK; `crlf` with comments the Python one; `pretty` spreads one event over data
 * lines; `noted` adds ids, names, retry and comments as a2a-go and a2a-rs do; `sliced` flushes a few bytes at a time,
 * so that chunks end inside line ends and characters; `unterminated` leaves out the last blank line; `bom` starts with
 * a BOM.
 */
export type Framing = 'lf' | 'crlf' | 'cr' | 'pretty' | 'noted' | 'sliced' | 'unterminated' | 'bom'

export type StreamFault =
  | { readonly fault: 'framing'; readonly framing: Framing }
  /**
   * After so many events: reset the connection, end it properly, close our half without the last chunk, or fall silent.
   */
  | { readonly fault: 'cut'; readonly afterEvents: number; readonly how: 'reset' | 'end' | 'half-close' | 'hang' }
  /** Before the event of this number (0 = the first) these bytes stand in the stream. */
  | { readonly fault: 'inject'; readonly beforeEvent: number; readonly frame: string }
  /** Every event twice. */
  | { readonly fault: 'duplicate' }
  /** Before every event one about another task. */
  | { readonly fault: 'foreign'; readonly taskId: string }
  /** An artifact chunk with a text of so many bytes before the last event. */
  | { readonly fault: 'huge'; readonly bytes: number }

export type WireEvent = Readonly<Record<string, unknown>>

export interface EventWriter {
  write(event: WireEvent): void
  end(): void
}

const sliceBytes = 7

/** Starts the SSE answer. `wrap` puts an event into the envelope of the binding. */
export function openEvents(
  response: ServerResponse,
  faults: readonly StreamFault[],
  wrap: (event: WireEvent) => unknown,
): EventWriter {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }).flushHeaders()
  const framing = faults.find((f) => f.fault === 'framing')?.framing ?? 'lf'
  const cut = faults.find((f) => f.fault === 'cut')
  let written = 0
  let last: Promise<void> = Promise.resolve()
  let broken = false

  const put = (bytes: string): void => {
    if (framing !== 'sliced') response.write(bytes)
    else last = last.then(() => writeSliced(response, bytes))
  }
  const one = (event: WireEvent): void => {
    // The reader may have hung up; the agent goes on with its turn all the same.
    if (broken || response.destroyed) return
    for (const f of faults) if (f.fault === 'inject' && f.beforeEvent === written) put(f.frame)
    if (framing === 'bom' && written === 0) put('\uFEFF')
    written += 1
    put(frameOf(wrap(event), framing, written))
    if (cut && written >= cut.afterEvents) {
      broken = true
      sever(response, cut.how)
    }
  }
  return {
    write(event) {
      for (const f of faults) {
        if (f.fault === 'foreign') one(aboutAnother(event, f.taskId))
        if (f.fault === 'huge' && isLast(event)) one(hugeChunk(event, f.bytes))
      }
      one(event)
      if (faults.some((f) => f.fault === 'duplicate')) one(event)
    },
    end() {
      if (!broken) void last.then(() => response.end())
    },
  }
}

function frameOf(payload: unknown, framing: Framing, number: number): string {
  const text = JSON.stringify(payload)
  if (framing === 'crlf') return `: ping\r\n\r\ndata: ${text}\r\n\r\n`
  if (framing === 'cr') return `data: ${text}\r\r`
  if (framing === 'pretty') return `data: ${JSON.stringify(payload, null, 2).split('\n').join('\ndata: ')}\n\n`
  if (framing === 'noted')
    return `: keep-alive\n\nevent: message\nid: ${number}\nretry: 500\nunknown: field\ndata:${text}\n\n`
  // The blank line stands before each further event, so the last one lacks it.
  if (framing === 'unterminated') return `${number === 1 ? '' : '\n\n'}data: ${text}`
  return `data: ${text}\n\n`
}

async function writeSliced(response: ServerResponse, text: string): Promise<void> {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; from += sliceBytes) {
    if (response.destroyed) return
    response.write(bytes.subarray(from, from + sliceBytes))
    // A turn of the event loop between writes keeps the kernel from joining them all into one segment.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function sever(response: ServerResponse, how: 'reset' | 'end' | 'half-close' | 'hang'): void {
  const { socket } = response
  if (how === 'end') response.end()
  // What was written must reach the reader first: a reset discards what the kernel still holds.
  else if (how === 'reset') setImmediate(() => socket?.resetAndDestroy())
  else if (how === 'half-close') socket?.end()
}

/** The event's payload under its one name. */
const payloadOf = (event: WireEvent): Record<string, unknown> => ({ ...(Object.values(event)[0] as object) })

function aboutAnother(event: WireEvent, taskId: string): WireEvent {
  const name = Object.keys(event)[0] ?? 'task'
  return { [name]: { ...payloadOf(event), ...(name === 'task' ? { id: taskId } : { taskId }) } }
}

const ending = /COMPLETED|FAILED|CANCELED|REJECTED|REQUIRED/

function isLast(event: WireEvent): boolean {
  const status = payloadOf(event)['status']
  return 'statusUpdate' in event && ending.test(JSON.stringify(status))
}

function hugeChunk(event: WireEvent, bytes: number): WireEvent {
  const { taskId, contextId } = payloadOf(event)
  const artifact = { artifactId: 'huge', name: 'huge', parts: [{ text: 'x'.repeat(bytes) }] }
  return { artifactUpdate: { taskId, contextId, artifact, lastChunk: true } }
}
