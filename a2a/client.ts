/**
 * The client side of A2A without I/O: an operation becomes one HTTP request, an HTTP answer or a stream's event becomes a value. Owns URLs, headers,
 * envelopes, and telling a refusal (the agent ran nothing) from an answer that proves nothing. Does not own sockets, retries or credentials
 * (actors/outbound.ts), parameters (requests.ts) or messages (wire.ts).
 */
import { readRefusal, refusalFromStatus, unauthorized } from './client-errors.ts'
import type { AgentError } from './client-errors.ts'
import { WireError, field, isObject, list, object, open } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { methods, restCalls, restCallsV03, rpcCallsV03, rpcParams, segment } from './requests.ts'
import type { RestCall, RpcCall } from './requests.ts'
import { parseProtoEvent, parseProtoTask } from './v0_3-rest.ts'
import { leniently, parseStreamResponse, parseTask, parseTaskPage, readPart, readPushConfig } from './wire.ts'
import type { PushConfig, StreamResponse, Task, TaskPage } from './messages.ts'
import type { Endpoint, Operation, Params } from './operations.ts'

export type { AgentError } from './client-errors.ts'
export { UnsupportedByVersion } from './requests.ts'

export interface Results {
  /** `{task}` or `{message}`. */
  send: StreamResponse
  /** Agents that do not stream answer with one JSON event. */
  stream: StreamResponse
  get: Task
  list: TaskPage
  cancel: Task
  subscribe: StreamResponse
  pushCreate: PushConfig
  pushGet: PushConfig
  pushList: { configs: PushConfig[]; nextPageToken: string }
  pushDelete: null
  /** As received, for a2a/card.ts and for checking signatures. */
  extendedCard: Record<string, unknown>
}

export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly requestId: string
  /** The same in another form, to be sent once where the answer has one of these statuses (otherForm). */
  readonly fallback?: { readonly statuses: readonly number[]; readonly request: WireRequest }
}

/** What to send once more after an answer of this status; undefined where there is nothing. */
export const otherForm = ({ fallback }: WireRequest, status: number): WireRequest | undefined =>
  fallback?.statuses.includes(status) === true ? fallback.request : undefined

/**
 * ok: the agent said this. refused: the agent, or the server before it, declined and ran nothing. invalid: the answer proves
 * nothing about what ran; after a send the outcome is unknown.
 */
export type Answer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'refused'; readonly error: AgentError }
  | { readonly kind: 'invalid'; readonly message: string }

const streams = (operation: Operation): boolean => operation === 'stream' || operation === 'subscribe'

/**
 * Makes the request of one operation. Throws UnsupportedByVersion, and WireError when a parameter cannot be carried: an id over
 * its limit or that no URL can hold, an extension URI that no header can hold, a message that is none.
 */
export function encodeRequest<O extends Operation>(
  endpoint: Endpoint,
  operation: O,
  params: Params[O],
  options: { requestId: string; extensions?: readonly string[] },
): WireRequest {
  const { requestId } = options
  const headers: Record<string, string> = {
    ...(endpoint.version === '1.0' ? { 'A2A-Version': '1.0' } : {}),
    ...extensionsHeader(endpoint.version, options.extensions ?? []),
  }
  if (endpoint.binding === 'JSONRPC') {
    return {
      method: 'POST',
      url: endpoint.url,
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        Accept: streams(operation) ? 'text/event-stream' : 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: requestId, ...rpcCall(endpoint, operation, params) }),
      requestId,
    }
  }
  const call = (endpoint.version === '1.0' ? restCalls : restCallsV03)[operation](params)
  const form = ({ method, body }: Pick<RestCall, 'method' | 'body'>): WireRequest => ({
    method,
    url: restUrl(endpoint, call),
    headers: {
      ...headers,
      Accept: streams(operation)
        ? 'text/event-stream'
        : endpoint.version === '1.0'
          ? 'application/a2a+json, application/json'
          : 'application/json',
      // `application/json` although 1.0.1 prefers its own type: servers written for 1.0.0 parse nothing else, and all parse this.
      ...(body ? { 'Content-Type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    requestId,
  })
  const { otherwise } = call
  if (!otherwise) return form(call)
  return { ...form(call), fallback: { statuses: otherwise.statuses, request: form({ ...call, ...otherwise }) } }
}

function rpcCall<O extends Operation>(endpoint: Endpoint, operation: O, params: Params[O]): RpcCall {
  if (endpoint.version === '0.3') return rpcCallsV03[operation](params)
  const said = rpcParams[operation](params)
  return { method: methods[operation], params: endpoint.tenant ? { ...said, tenant: endpoint.tenant } : said }
}

function restUrl(endpoint: Endpoint, call: RestCall): string {
  const url = new URL(endpoint.url)
  const tenant = endpoint.version === '1.0' && endpoint.tenant ? `/${segment(endpoint.tenant, 'tenant')}` : ''
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${tenant}${call.path}`
  for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, String(value))
  return url.href
}

function extensionsHeader(version: Endpoint['version'], extensions: readonly string[]): Record<string, string> {
  if (extensions.length === 0) return {}
  for (const uri of extensions)
    if (!/^[\x21-\x2b\x2d-\x7e]{1,2048}$/.test(uri)) throw new WireError('extensions', 'must be URIs without commas')
  const value = [...new Set(extensions)].join(',')
  return version === '1.0' ? { 'A2A-Extensions': value } : { 'X-A2A-Extensions': value }
}

type Readers = { readonly [O in Operation]: (json: unknown) => Results[O] }

function readReply(event: StreamResponse): StreamResponse {
  if ('task' in event || 'message' in event) return event
  throw new WireError('', 'must be a task or a message')
}

const readEvent = (json: unknown): StreamResponse => parseStreamResponse(json, leniently(readPart))
const readWhole = (json: unknown): Task => parseTask(json, leniently(readPart))

/** Reads 1.0 over both bindings and 0.3 over JSON-RPC: `kind` tells them apart. */
const readers: Readers = {
  send: (json) => readReply(readEvent(json)),
  stream: readEvent,
  get: readWhole,
  list: (json) => parseTaskPage(json, leniently(readPart)),
  cancel: readWhole,
  subscribe: readEvent,
  pushCreate: (json) => readPushConfig(json, ''),
  pushGet: (json) => readPushConfig(json, ''),
  pushList: (json) => {
    // 0.3 over JSON-RPC answers with the bare array.
    const page = Array.isArray(json) ? { configs: json } : object(json, '')
    const token = field(page, 'nextPageToken')
    return {
      configs: list(page, 'configs', '', readPushConfig) ?? [],
      nextPageToken: typeof token === 'string' ? token : '',
    }
  },
  pushDelete: () => null,
  extendedCard: (json) => object(open(json, ''), ''),
}

/** Reads 0.3 over HTTP+JSON. */
const protoReaders: Readers = {
  ...readers,
  send: (json) => readReply(parseProtoEvent(json)),
  stream: parseProtoEvent,
  get: parseProtoTask,
  cancel: parseProtoTask,
  subscribe: parseProtoEvent,
}

const readersFor = (endpoint: Endpoint): Readers =>
  endpoint.binding === 'HTTP+JSON' && endpoint.version === '0.3' ? protoReaders : readers

/**
 * Reads a whole answer, also the JSON one that stands where a stream was expected. By status and body:
 * a result → ok. An A2A error, whatever the status → refused, as the agent said. 4xx without an A2A error → refused in the words
 * of HTTP (401 UNAUTHENTICATED, 403 PERMISSION_DENIED): a server that refuses a request has not run it. Everything else (5xx of a
 * proxy, 200 with HTML, another request's id, what was done beside an error or under a 4xx) → invalid.
 */
export function decodeResponse<O extends Operation>(
  endpoint: Endpoint,
  operation: O,
  response: HttpAnswer,
  requestId: string,
): Answer<Results[O]> {
  const json = parseJson(response.body)
  const answer = readAnswer(endpoint, operation, { ...response, json }, requestId)
  if (answer.kind === 'refused' && acting.has(operation) && showsWork(json))
    return invalid('The agent declined, and shows what it did.')
  return answer
}

interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** What an agent does something by. Of a question its refusal is believed, whatever else it says. */
const acting: ReadonlySet<Operation> = new Set(['send', 'stream', 'cancel'])

/**
 * A result, a task or a message of the agent's in whatever envelope: what a refusal has none of. An error's own `message` is text, and a
 * message of ours is the request's echo.
 */
function showsWork(json: unknown): boolean {
  if (!isObject(json)) return false
  const { result, task, message, msg } = json
  if ([json, task, message, msg].some((shown) => isTask(shown) || isMessage(shown))) return true
  return isObject(result) && Object.keys(result).length > 0
}

const isTask = (json: unknown): boolean =>
  isObject(json) && typeof field(json, 'id') === 'string' && isObject(field(json, 'status'))
const agentsRoles: readonly unknown[] = ['ROLE_AGENT', 'agent', 2]
const isMessage = (json: unknown): boolean =>
  isObject(json) &&
  typeof field(json, 'messageId') === 'string' &&
  field(json, 'parts') !== undefined &&
  agentsRoles.includes(field(json, 'role'))

function readAnswer<O extends Operation>(
  endpoint: Endpoint,
  operation: O,
  { status, contentType, json }: Pick<HttpAnswer, 'status' | 'contentType'> & { readonly json: unknown },
  requestId: string,
): Answer<Results[O]> {
  const succeeded = status >= 200 && status < 300
  // Whatever error a server wraps it in: what is missing is a credential, and callers look for that.
  if (status === 401 || status === 403) return { kind: 'refused', error: unauthorized(json, status) }
  if (endpoint.binding === 'JSONRPC' && isEnvelope(json)) {
    const answer = readEnvelope(json, requestId, status)
    if (answer.kind === 'ok' && !succeeded) return invalid(`The agent answered HTTP ${status} with a result.`)
    return answer.kind === 'ok' ? readWith(readersFor(endpoint)[operation], answer.value) : answer
  }
  const refusal = readRefusal(json, status)
  if (refusal) return { kind: 'refused', error: refusal }
  if (!succeeded) {
    const declined = refusalFromStatus(status)
    return declined ? { kind: 'refused', error: declined } : invalid(`The agent answered HTTP ${status}.`)
  }
  if (endpoint.binding === 'JSONRPC') return invalid('The answer is not a JSON-RPC response.')
  if (operation === 'pushDelete') return readWith(readersFor(endpoint)[operation], null)
  if (json === undefined) return invalid(`The answer is not JSON${describe(contentType)}.`)
  return readWith(readersFor(endpoint)[operation], json)
}

/** Reads one frame of a stream (sse.ts): checks the JSON-RPC id, and turns `event: error` and error envelopes into refusals. */
export function decodeEvent(
  endpoint: Endpoint,
  frame: { event: string; data: string },
  requestId: string,
): Answer<StreamResponse> {
  const json = parseJson(frame.data)
  if (json === undefined && frame.event !== 'error') return invalid('The event is not JSON.')
  // HTTP 200 carried the stream; the error inside has no status of its own.
  if (endpoint.binding === 'JSONRPC' && isEnvelope(json)) {
    const answer = readEnvelope(json, requestId, 200)
    return answer.kind === 'ok' ? readWith(readersFor(endpoint).stream, answer.value) : answer
  }
  const refusal = readRefusal(json, 200)
  if (refusal) return { kind: 'refused', error: refusal }
  if (frame.event === 'error') return { kind: 'refused', error: unexplained(frame.data) }
  if (endpoint.binding === 'JSONRPC') return invalid('The event is not a JSON-RPC response.')
  return readWith(readersFor(endpoint).stream, json)
}

/** Some servers leave `jsonrpc` out of their responses; the id is checked all the same. */
const isEnvelope = (json: unknown): json is JsonObject =>
  isObject(json) && (json['jsonrpc'] !== undefined || Object.hasOwn(json, 'result'))

function readEnvelope(json: JsonObject, requestId: string, status: number): Answer<unknown> {
  const { id } = json
  const refusal = readRefusal(json, status)
  // JSON-RPC 2.0, 5: an error about a request whose id could not be read has a null id.
  // Others send "" or 0 then; with a 4xx it is a refusal all the same.
  const unread = id === null || id === undefined || (status >= 400 && status < 500)
  const ours = id === requestId || (refusal !== null && unread)
  if (!ours) return invalid('The answer belongs to another request.')
  if (refusal) return { kind: 'refused', error: refusal }
  if (!Object.hasOwn(json, 'result')) return invalid('The JSON-RPC response has neither a result nor an error.')
  return { kind: 'ok', value: json['result'] }
}

function readWith<T>(read: (json: unknown) => T, json: unknown): Answer<T> {
  try {
    return { kind: 'ok', value: read(json) }
  } catch (error) {
    if (error instanceof WireError) return invalid(error.message)
    throw error
  }
}

const invalid = (message: string): Answer<never> => ({ kind: 'invalid', message })

const describe = (contentType: string): string => (contentType === '' ? '' : ` but ${contentType.slice(0, 100)}`)

const unexplained = (text: string): AgentError => ({
  code: -32603,
  reason: 'INTERNAL_ERROR',
  message: text.slice(0, 500),
  httpStatus: 200,
})

/** Undefined where the text is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    // SyntaxError is the only thing JSON.parse throws of a string.
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
