/**
 * Reading an agent's refusal, in every form that agents give it: JSON-RPC errors with google.rpc.ErrorInfo, the HTTP+JSON error object, 0.3's bare
 * `{code, message}`, problem documents of early 1.0 servers, and plain HTTP. Owns reading only; the table is errors.ts.
 */
import { errorByCode, errorByReason } from './errors.ts'
import { isObject } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'

export interface AgentError {
  /** JSON-RPC code, also where HTTP carried the error. */
  readonly code: number
  /** ErrorInfo.reason of the A2A table, or UNAUTHENTICATED, PERMISSION_DENIED, or `HTTP_<status>`. */
  readonly reason: string
  /** In the agent's words, at most 2,000 characters; not safe as markup. */
  readonly message: string
  readonly httpStatus: number
}

const messageLimit = 2_000
const reasonLimit = 128

const text = (value: unknown, limit: number): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, limit) : undefined

/** The refusal that a JSON body says, or null when it is none of the known forms. */
export function readRefusal(json: unknown, httpStatus: number): AgentError | null {
  if (!isObject(json)) return null
  const said = isObject(json['error']) ? json['error'] : json
  const isBare = said === json
  const code = typeof said['code'] === 'number' && Number.isInteger(said['code']) ? said['code'] : undefined
  const message = text(said['message'], messageLimit)
  if (isBare && isProblem(json)) return fromProblem(json, httpStatus)
  // Without an `error` around it only 0.3's negative codes are an error: a task or a card may have any other field.
  if (code === undefined || (isBare && (code >= 0 || message === undefined))) return null
  const own = errorInfoReason(said['data']) ?? errorInfoReason(said['details'])
  // A reason of the agent's own says more to people than a code; what the code means stands all the same.
  const known =
    (own === undefined ? undefined : errorByReason.get(own)) ??
    errorByCode.get(code) ??
    (said['status'] === 'NOT_FOUND' ? errorByReason.get('TASK_NOT_FOUND') : undefined)
  const plain = refusalFromStatus(httpStatus)
  return {
    code: code < 0 ? code : (known?.code ?? plain?.code ?? -32603),
    reason: known?.reason ?? own ?? text(said['status'], reasonLimit) ?? plain?.reason ?? 'UNKNOWN_ERROR',
    message: message ?? known?.reason ?? 'The agent gave no reason.',
    httpStatus,
  }
}

function errorInfoReason(details: unknown): string | undefined {
  // 1.0 says an array; a single object was seen from servers written before it was settled.
  const items = Array.isArray(details) ? details.slice(0, 32) : [details]
  for (const item of items) {
    const reason = isObject(item) ? text(item['reason'], reasonLimit) : undefined
    if (reason !== undefined) return reason
  }
  return undefined
}

const problemType = /^https?:\/\/a2a-protocol\.org\/errors\/([a-z-]{1,64})$/
const isProblem = (json: JsonObject): boolean => typeof json['type'] === 'string' && problemType.test(json['type'])

/** application/problem+json, which samples of the specification still show: the type's last segment is the reason. */
function fromProblem(json: JsonObject, httpStatus: number): AgentError {
  const name = problemType.exec(String(json['type']))?.[1] ?? ''
  const reason = name.replaceAll('-', '_').toUpperCase()
  const known = errorByReason.get(reason) ?? errorByReason.get(reason.replace(/_ERROR$/, ''))
  return {
    code: known?.code ?? -32603,
    reason: known?.reason ?? reason,
    message: text(json['detail'], messageLimit) ?? text(json['title'], messageLimit) ?? reason,
    httpStatus,
  }
}

/** The words of HTTP for the refusals that a server or a proxy gives without A2A. */
const statusTexts: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  407: 'Proxy Authentication Required',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  411: 'Length Required',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  414: 'URI Too Long',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  428: 'Precondition Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  451: 'Unavailable For Legal Reasons',
}

/** A proxy says so of an agent that was too slow for it, and may be at work. */
const outOfTime: ReadonlySet<number> = new Set([408, 499])

/** The refusal that a status alone is, or null when it says nothing about what ran. */
export function refusalFromStatus(status: number): AgentError | null {
  if (!(status >= 400 && status < 500) || outOfTime.has(status)) return null
  // 404 and 405 are an unknown route; the rest declines the request as such.
  const code = status === 404 || status === 405 ? -32601 : -32600
  return {
    code,
    reason: `HTTP_${status}`,
    message: `HTTP ${status} ${statusTexts[status] ?? ''}`.trim(),
    httpStatus: status,
  }
}

/** 401 or 403 by its HTTP meaning, in the agent's words where it has some. */
export function unauthorized(json: unknown, status: 401 | 403): AgentError {
  const said = readRefusal(json, status)
  const reason = status === 401 ? 'UNAUTHENTICATED' : 'PERMISSION_DENIED'
  const message = said?.message ?? `HTTP ${status} ${statusTexts[status]}`
  return { code: said?.code ?? -32600, reason, message, httpStatus: status }
}
