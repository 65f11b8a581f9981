/**
 * The no of an A2A server: what an agent throws when it declines an operation. Owns the exception and how it reads in
 * each binding and version. Does not own the table of codes (errors.ts).
 */
import { errorByReason, errorDomain, errorInfoType } from './errors.ts'
import type { A2aError } from './errors.ts'
import { present } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'

/** The reasons of A2A 1.0 [specification 5.4] and of JSON-RPC 2.0. */
export type Reason =
  | 'TASK_NOT_FOUND'
  | 'TASK_NOT_CANCELABLE'
  | 'PUSH_NOTIFICATION_NOT_SUPPORTED'
  | 'UNSUPPORTED_OPERATION'
  | 'CONTENT_TYPE_NOT_SUPPORTED'
  | 'INVALID_AGENT_RESPONSE'
  | 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'
  | 'EXTENSION_SUPPORT_REQUIRED'
  | 'VERSION_NOT_SUPPORTED'
  | 'PARSE_ERROR'
  | 'INVALID_REQUEST'
  | 'METHOD_NOT_FOUND'
  | 'INVALID_PARAMS'
  | 'INTERNAL_ERROR'

/** Declines an operation. The message reaches the client. */
export class Declined extends Error {
  readonly error: A2aError
  /** Further facts for machines: ErrorInfo's `metadata`, strings only. */
  readonly facts: Readonly<Record<string, string>> | undefined
  constructor(reason: Reason, message: string, facts?: Readonly<Record<string, string>>) {
    super(message)
    this.name = 'Declined'
    const error = errorByReason.get(reason)
    if (!error) throw new RangeError(`There is no A2A error ${reason}.`)
    this.error = error
    this.facts = facts
  }
}

const errorInfo = ({ error, facts }: Declined): JsonObject =>
  present({ '@type': errorInfoType, reason: error.reason, domain: errorDomain, metadata: facts })

/** The `error` of a JSON-RPC 1.0 answer. */
export const rpcError = (declined: Declined): JsonObject => ({
  code: declined.error.code,
  message: declined.message,
  data: [errorInfo(declined)],
})

/** The `error` of a JSON-RPC 0.3 answer, and the whole body of an HTTP+JSON 0.3 one: code and message, nothing else. */
export const bareError = (declined: Declined): JsonObject => ({
  code: declined.error.code,
  message: declined.message,
})

/** The body of an HTTP+JSON 1.0 answer [AIP-193]. */
export const statusError = (declined: Declined): JsonObject => ({
  error: {
    code: declined.error.httpStatus,
    status: declined.error.status,
    message: declined.message,
    details: [errorInfo(declined)],
  },
})
