/**
 * The errors of A2A 1.0 [specification 5.4, a2a.proto v1.0.1] and of JSON-RPC 2.0. Owns the table of codes, HTTP statuses and reasons. Does
 * not own how an error is carried (client.ts reads it, server.ts writes it).
 */
export interface A2aError {
  /** JSON-RPC code. */
  readonly code: number
  /** HTTP status of the HTTP+JSON binding. */
  readonly httpStatus: number
  /** google.rpc.Code name: the `status` of the HTTP+JSON binding. */
  readonly status: string
  /** `reason` of google.rpc.ErrorInfo. */
  readonly reason: string
}

export const errorDomain = 'a2a-protocol.org'
export const errorInfoType = 'type.googleapis.com/google.rpc.ErrorInfo'

const row = (code: number, httpStatus: number, status: string, reason: string): A2aError => ({
  code,
  httpStatus,
  status,
  reason,
})

export const a2aErrors: readonly A2aError[] = [
  row(-32001, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'),
  row(-32002, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'),
  row(-32003, 400, 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED'),
  row(-32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'),
  row(-32005, 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'),
  row(-32006, 500, 'INTERNAL', 'INVALID_AGENT_RESPONSE'),
  row(-32007, 400, 'FAILED_PRECONDITION', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'),
  row(-32008, 400, 'FAILED_PRECONDITION', 'EXTENSION_SUPPORT_REQUIRED'),
  row(-32009, 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'),
  row(-32700, 400, 'INVALID_ARGUMENT', 'PARSE_ERROR'),
  row(-32600, 400, 'INVALID_ARGUMENT', 'INVALID_REQUEST'),
  row(-32601, 404, 'UNIMPLEMENTED', 'METHOD_NOT_FOUND'),
  row(-32602, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'),
  row(-32603, 500, 'INTERNAL', 'INTERNAL_ERROR'),
]

export const errorByCode: ReadonlyMap<number, A2aError> = new Map(a2aErrors.map((error) => [error.code, error]))
export const errorByReason: ReadonlyMap<string, A2aError> = new Map(a2aErrors.map((error) => [error.reason, error]))

/** The row that an agent's error is of; undefined where it is a server's own. */
export const tableError = ({
  code,
  reason,
}: {
  readonly code: number
  readonly reason: string
}): A2aError | undefined => errorByReason.get(reason) ?? errorByCode.get(code)

const notOffered: ReadonlySet<string> = new Set(['METHOD_NOT_FOUND', 'UNSUPPORTED_OPERATION'])
/** Whether an agent says that it has no such operation, whatever its card says. */
export const saysNotOffered = ({ reason }: { readonly reason: string }): boolean => notOffered.has(reason)

/** By which HTTP says that nobody is there for it, and an ingress that it has no agent to lead to. */
export const unroutedStatuses: ReadonlySet<number> = new Set([404, 405, 501])
