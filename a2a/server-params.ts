/**
 * What a client asks for, read from JSON-RPC `params`, or from the path, query and body of HTTP+JSON put together. Owns
 * the parameters of the eleven operations on the server's side, tolerant as ProtoJSON is. Does not own routes
 * (server-routes.ts) or messages (wire.ts).
 */
import type { Operation, Params } from './operations.ts'
import {
  WireError,
  at,
  boolean,
  checkedId,
  field,
  id,
  integer,
  label,
  metadata,
  optionalId,
  present,
  timestamp,
} from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { parseProtoSendRequest } from './v0_3-rest.ts'
import { parseSendRequest, readPushConfig } from './wire.ts'
import type { SendRequest } from './messages.ts'

/** One operation with its parameters, in 1.0 shapes whichever dialect carried it. */
export type Call = {
  [O in Operation]: { readonly operation: O; readonly params: Params[O]; readonly tenant?: string }
}[Operation]

type Readers = Readonly<Record<Operation, (json: JsonObject) => Call>>

const states = /^TASK_STATE_(SUBMITTED|WORKING|COMPLETED|FAILED|CANCELED|INPUT_REQUIRED|REJECTED|AUTH_REQUIRED)$/
const pageSizeLimit = 100

/**
 * A message without parts, or a part without content, is a bad request; a reader of answers lets both pass (wire.ts).
 */
function checkedSend({ message, configuration, metadata: marks }: SendRequest): Params['send'] {
  if (message.parts.length === 0) throw new WireError('message.parts', 'must have at least one part')
  for (const [index, part] of message.parts.entries()) {
    const hasContent = part.text !== undefined || part.raw !== undefined || part.url !== undefined
    if (!hasContent && !Object.hasOwn(part, 'data'))
      throw new WireError(`message.parts[${index}]`, 'must have one content: text, data, url or raw')
  }
  if ((configuration?.historyLength ?? 0) < 0)
    throw new WireError('configuration.historyLength', 'must not be negative')
  return present({ message, configuration, metadata: marks })
}

function atLeast(json: JsonObject, name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = integer(json, name, '')
  if (value !== undefined && (value < least || value > most))
    throw new WireError(
      name,
      most === Number.MAX_SAFE_INTEGER ? `must be at least ${least}` : `must be ${least} to ${most}`,
    )
  return value
}

/** `true` and `false` come as words in a query. */
function flag(json: JsonObject, name: string): boolean | undefined {
  const value = field(json, name)
  if (value === 'true') return true
  if (value === 'false') return false
  return boolean(json, name, '')
}

function listParams(json: JsonObject): Params['list'] {
  const status = label(json, 'status', '')
  // The unspecified state is the proto's default and so means any.
  const wanted = status === 'TASK_STATE_UNSPECIFIED' ? undefined : status
  if (wanted !== undefined && !states.test(wanted)) throw new WireError('status', 'must be the name of a task state')
  const after = timestamp(json, 'statusTimestampAfter')
  if (after === undefined && label(json, 'statusTimestampAfter', '') !== undefined)
    throw new WireError('statusTimestampAfter', 'must be a timestamp')
  return present({
    contextId: optionalId(json, 'contextId', ''),
    status: wanted,
    // Clients that write every default send 0 for unset.
    pageSize: field(json, 'pageSize') === 0 ? undefined : atLeast(json, 'pageSize', 1, pageSizeLimit),
    pageToken: label(json, 'pageToken', ''),
    historyLength: atLeast(json, 'historyLength', 0),
    statusTimestampAfter: after,
    includeArtifacts: flag(json, 'includeArtifacts'),
  })
}

function createParams(json: JsonObject): Params['pushCreate'] {
  const config = readPushConfig(json, '')
  if (config.taskId === undefined) throw new WireError('taskId', 'is required')
  return { ...config, taskId: config.taskId }
}

const namedConfig = (json: JsonObject): Params['pushGet'] => ({
  taskId: id(json, 'taskId', ''),
  id: id(json, 'id', ''),
})

/** 1.0, over both bindings. */
const readers: Readers = {
  send: (json) => ({ operation: 'send', params: checkedSend(parseSendRequest(json)) }),
  stream: (json) => ({ operation: 'stream', params: checkedSend(parseSendRequest(json)) }),
  get: (json) => ({
    operation: 'get',
    params: present({ id: id(json, 'id', ''), historyLength: atLeast(json, 'historyLength', 0) }),
  }),
  list: (json) => ({ operation: 'list', params: listParams(json) }),
  cancel: (json) => ({
    operation: 'cancel',
    params: present({ id: id(json, 'id', ''), metadata: metadata(json, '') }),
  }),
  subscribe: (json) => ({ operation: 'subscribe', params: { id: id(json, 'id', '') } }),
  pushCreate: (json) => ({ operation: 'pushCreate', params: createParams(json) }),
  pushGet: (json) => ({ operation: 'pushGet', params: namedConfig(json) }),
  pushList: (json) => ({
    operation: 'pushList',
    params: present({
      taskId: id(json, 'taskId', ''),
      pageSize: atLeast(json, 'pageSize', 0, pageSizeLimit),
      pageToken: label(json, 'pageToken', ''),
    }),
  }),
  pushDelete: (json) => ({ operation: 'pushDelete', params: namedConfig(json) }),
  extendedCard: () => ({ operation: 'extendedCard', params: {} }),
}

/**
 * 0.3 names the task `id` and the configuration `pushNotificationConfigId`, which may be left out of a get: the task's
 * only one.
 */
const configV03 = (json: JsonObject): Params['pushGet'] => {
  const taskId = id(json, 'id', '')
  return { taskId, id: optionalId(json, 'pushNotificationConfigId', '') ?? taskId }
}

const readersV03: Readers = {
  ...readers,
  pushGet: (json) => ({ operation: 'pushGet', params: configV03(json) }),
  pushList: (json) => ({ operation: 'pushList', params: { taskId: id(json, 'id', '') } }),
  pushDelete: (json) => ({ operation: 'pushDelete', params: configV03(json) }),
}

/** HTTP+JSON of 0.3 is ProtoJSON of its own proto; a configuration comes wrapped with its place in the hierarchy. */
const readersProto: Readers = {
  ...readers,
  send: (json) => ({ operation: 'send', params: checkedSend(parseProtoSendRequest(json)) }),
  stream: (json) => ({ operation: 'stream', params: checkedSend(parseProtoSendRequest(json)) }),
  pushCreate: (json) => {
    const config = readPushConfig(field(json, 'config') ?? json, 'config')
    return { operation: 'pushCreate', params: { ...config, taskId: id(json, 'taskId', '') } }
  },
}

export type Shape = '1.0' | '0.3 kind' | '0.3 proto'
const readersByShape: Readonly<Record<Shape, Readers>> = {
  '1.0': readers,
  '0.3 kind': readersV03,
  '0.3 proto': readersProto,
}

/** Reads the parameters of an operation. Throws WireError. Only 1.0 knows a tenant. */
export function readCall(operation: Operation, json: JsonObject, shape: Shape): Call {
  const call = readersByShape[shape][operation](json)
  const tenant = shape === '1.0' ? label(json, 'tenant', '') : undefined
  return tenant === undefined ? call : { ...call, tenant: checkedId(tenant, at('', 'tenant')) }
}
