/** Drives an agent through our codec with undici: what the console's outbound door does, without its policy. */
import { fetch } from 'undici'
import { decodeEvent, decodeResponse, encodeRequest, otherForm } from '../../a2a/client.ts'
import type { Answer, Results, WireRequest } from '../../a2a/client.ts'
import type { Endpoint, Operation, Params } from '../../a2a/operations.ts'
import { FrameSplitter, parseFrame } from '../../a2a/sse.ts'
import type { Message, StreamResponse } from '../../a2a/messages.ts'

let requests = 0
const nextId = (): string => `r-${++requests}`

const send = ({ url, method, headers, body }: WireRequest) =>
  fetch(url, { method, headers: { ...headers }, ...(body === undefined ? {} : { body }), redirect: 'manual' })

async function answerTo(request: WireRequest) {
  const response = await send(request)
  const other = otherForm(request, response.status)
  return other ? send(other) : response
}

/** One operation that answers whole. */
export async function call<O extends Operation>(
  endpoint: Endpoint,
  operation: O,
  params: Params[O],
  extensions: readonly string[] = [],
): Promise<Answer<Results[O]>> {
  const requestId = nextId()
  const response = await answerTo(encodeRequest(endpoint, operation, params, { requestId, extensions }))
  const answer = {
    status: response.status,
    contentType: response.headers.get('content-type') ?? '',
    body: await response.text(),
  }
  return decodeResponse(endpoint, operation, answer, requestId)
}

/** One operation that streams. Yields every answer; a JSON body where the stream was expected is one. */
export async function* stream<O extends 'stream' | 'subscribe'>(
  endpoint: Endpoint,
  operation: O,
  params: Params[O],
): AsyncGenerator<Answer<StreamResponse>> {
  const requestId = nextId()
  const request = encodeRequest(endpoint, operation, params, { requestId })
  const response = await answerTo(request)
  const contentType = response.headers.get('content-type') ?? ''
  if (!contentType.startsWith('text/event-stream') || !response.body) {
    yield decodeResponse(
      endpoint,
      operation,
      { status: response.status, contentType, body: await response.text() },
      requestId,
    )
    return
  }
  const splitter = new FrameSplitter(1024 * 1024)
  const events = (frames: Uint8Array[]): Answer<StreamResponse>[] =>
    frames.flatMap((bytes) => {
      const frame = parseFrame(bytes)
      return frame ? [decodeEvent(endpoint, frame, requestId)] : []
    })
  for await (const chunk of response.body) yield* events(splitter.push(chunk as Uint8Array))
  yield* events(splitter.end())
}

export function valueOf<T>(answer: Answer<T> | undefined): T {
  if (answer?.kind !== 'ok') throw new Error(`not ok: ${JSON.stringify(answer)}`)
  return answer.value
}

/** The next answer of a stream, which must have one. */
export async function nextOf<T>(answers: AsyncGenerator<Answer<T>>): Promise<Answer<T>> {
  const { done, value } = await answers.next()
  if (done) throw new Error('the stream ended')
  return value
}

export function refusalOf<T>(answer: Answer<T> | undefined) {
  if (answer?.kind !== 'refused') throw new Error(`not refused: ${JSON.stringify(answer)}`)
  return answer.error
}

export function taskOf(event: StreamResponse) {
  if (!('task' in event)) throw new Error(`no task: ${JSON.stringify(event)}`)
  return event.task
}

let messages = 0
export const say = (text: string, more: Partial<Message> = {}): { message: Message } => ({
  message: { messageId: `m-${++messages}-${process.pid}`, role: 'ROLE_USER', parts: [{ text }], ...more },
})
