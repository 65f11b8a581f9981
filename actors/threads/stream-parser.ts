/**
 * Bytes of an agent in, observations out: the work of a parsing thread, and of the main thread for what is small. Owns
 * decoding and keeping bytes apart; no I/O, no state between calls. Does not own splitting (a2a/sse.ts), order, or
 * which thread runs it (pool.ts).
 */
import { createHash } from 'node:crypto'
import { move, transferableSymbol, valueSymbol } from 'piscina'
import { decodeEvent, decodeResponse } from '../../a2a/client.ts'
import type { Answer } from '../../a2a/client.ts'
import { WireError } from '../../a2a/proto-json.ts'
import { parsePushBody } from '../../a2a/push.ts'
import { parseFrame } from '../../a2a/sse.ts'
import type { StreamResponse } from '../../a2a/messages.ts'
import { encodeHuge, type JsonText } from '../../domain/json-text.ts'
import { piecesOf } from '../../domain/long-history.ts'
import { observationFrom, withTexts } from '../../domain/observation.ts'
import type { KeepBytes, Observation } from '../../domain/observation.ts'
import { largeText, textDigest } from '../../persistence/text-digest.ts'
import { begin } from './deadline.ts'
import { checkLines, checkValues, TooManyPieces } from './json-weight.ts'
import type {
  Blob,
  FramesTask,
  ParsedEvent,
  ParserTask,
  PushTask,
  ReplyTask,
  SeenEvent,
  ThreadTask,
} from './messages.ts'

/** Bytes of one part, decoded. */
const partLimitBytes = 16 * 1024 * 1024
const partTooLarge = { refused: 'Artifact exceeds the 16 MB persistence limit.' }

/** A part whose bytes cannot be read. */
class PartRefused extends Error {
  override readonly name = 'PartRefused'
}

/** Never throws: what cannot be read is an event that says so, so that one frame costs one frame. */
export function parseTask(task: ParserTask): ParsedEvent[] {
  if (task.kind === 'frames') return parseFrames(task)
  const event = task.kind === 'push' ? parsePush(task) : parseReply(task)
  return event === null ? [] : [event]
}

function parseFrames(task: FramesTask): ParsedEvent[] {
  return task.frames.flatMap((bytes) => {
    const event = guarded(() => {
      checkLines(bytes)
      const frame = parseFrame(bytes)
      if (frame === null) return null
      checkValues(frame.data)
      return decodeEvent(task.endpoint, frame, task.requestId)
    })
    return event === null ? [] : [event]
  })
}

function parseReply(task: ReplyTask): ParsedEvent | null {
  const { endpoint, requestId, operation, reply } = task
  return guarded(() => {
    const body = new TextDecoder().decode(reply.body)
    checkValues(body)
    const response = { ...reply, body }
    if (operation !== 'get' && operation !== 'cancel') return decodeResponse(endpoint, operation, response, requestId)
    const answer = decodeResponse(endpoint, operation, response, requestId)
    return answer.kind === 'ok' ? { kind: 'ok', value: { task: answer.value } } : answer
  })
}

function parsePush({ body }: PushTask): ParsedEvent | null {
  const digest = createHash('sha256').update(body).digest('hex')
  let fault: 'envelope' | 'payload' = 'envelope'
  let tenant: string | null = null
  const event = guarded(() => {
    const text = new TextDecoder().decode(body)
    checkValues(text)
    try {
      const push = parsePushBody(text)
      fault = 'payload'
      tenant = push.tenant
      return { kind: 'ok', value: push.event }
    } catch (error) {
      if (error instanceof WireError && error.path !== '') fault = 'payload'
      throw error
    }
  })
  if (event?.kind === 'invalid') return { ...event, fault }
  return event?.kind === 'observation' ? { ...event, push: { digest, tenant } } : event
}

const oversized: ParsedEvent = {
  kind: 'invalid',
  message: 'Agent response exceeds the safety limit.',
  oversized: true,
}

/** Null where there was nothing to read. */
function guarded(decode: () => Answer<StreamResponse> | null): ParsedEvent | null {
  try {
    const answer = decode()
    return answer === null ? null : parsed(answer)
  } catch (error) {
    if (error instanceof TooManyPieces) return oversized
    if (error instanceof WireError || error instanceof PartRefused) return { kind: 'invalid', message: error.message }
    // A stack overflow or a string too long is the agent's doing; anything else is ours, and still only this frame's.
    const defect = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { kind: 'invalid', message: 'The event could not be read.', defect }
  }
}

const parsed = (answer: Answer<StreamResponse>): ParsedEvent =>
  answer.kind === 'ok' ? { kind: 'observation', ...observed(answer.value) } : answer

/** Reduces an event and sets its bytes apart. Throws where a part may not be kept. */
export function observed(value: StreamResponse): Omit<SeenEvent, 'kind'> {
  const blobs = new Map<string, Blob>()
  const keep: KeepBytes = (base64) => {
    const size = sizeOf(base64)
    // The rest of what the agent said counts: only this part is left out, and says so.
    if (size > partLimitBytes) return partTooLarge
    const bytes = decodedBytes(base64, size)
    const digest = createHash('sha256').update(bytes).digest('hex')
    blobs.set(digest, { digest, bytes })
    return { digest, size: bytes.length, href: `/api/artifacts/${digest}` }
  }
  const observe = (event: StreamResponse): Observation => observationFrom(event, keep, textDigest)
  const whole = observe(value)
  const pieces = piecesOf(value)
  const digest = pieces || whole.event.length >= largeText ? { digest: textDigest(whole.event) } : {}
  if (pieces === null) return { observation: whole, blobs: [...blobs.values()], ...digest }
  const long = { ahead: pieces.ahead.map((piece) => observe(piece).event), whole: whole.event }
  return { observation: observe(pieces.last), long, blobs: [...blobs.values()], ...digest }
}

/** In bytes, of standard padded base64. */
const sizeOf = (base64: string): number =>
  (base64.length / 4) * 3 - (base64.endsWith('==') ? 2 : Number(base64.endsWith('=')))

/** Takes standard padded base64 (a2a/wire.ts has seen to it) and checks it again by length: Node skips what it cannot read. */
function decodedBytes(base64: string, size: number): Uint8Array<ArrayBuffer> {
  // Allocated rather than Buffer.from: small ones would share a slab, and a slab cannot be moved to another thread.
  const bytes = new Uint8Array(new ArrayBuffer(Math.max(0, Math.ceil(size))))
  const written = Buffer.from(bytes.buffer).write(base64, 'base64')
  if (written !== size) throw new PartRefused('Artifact bytes are not base64.')
  return bytes
}

/** The thread's entry: the same work, its bytes and huge texts moved back instead of copied. */
export function parseInThread({ task, began }: ThreadTask): unknown {
  begin(began)
  const moved: ArrayBufferLike[] = []
  const encoded = (text: JsonText): JsonText => {
    const form = encodeHuge(text)
    if (typeof form !== 'string') moved.push(form.utf8.buffer)
    return form
  }
  const events = parseTask(task).map((event) => {
    if (event.kind !== 'observation') return event
    for (const { bytes } of event.blobs) moved.push(bytes.buffer)
    const { long } = event
    return {
      ...event,
      observation: withTexts(event.observation, encoded),
      ...(long && { long: { ahead: long.ahead.map(encoded), whole: encoded(long.whole) } }),
    }
  })
  return move({ [transferableSymbol]: moved, [valueSymbol]: events })
}
