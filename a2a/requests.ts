/**
 * What each of the eleven operations says to an agent: four tables, 1.0 and 0.3 over JSON-RPC and over HTTP+JSON. Owns parameters, routes and
 * bodies; only known fields are written, because Python agents refuse a request with foreign ones. Does not own envelopes,
 * headers or answers (client.ts).
 */
import type { Endpoint, Operation, Params } from './operations.ts'
import { WireError, checkedId, object, present } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { methodsV03, nestedPushConfig, sendRequestV03 } from './v0_3.ts'
import { protoPushConfig, protoSendRequest } from './v0_3-rest.ts'
import { readMessage, readPushConfig } from './wire.ts'
import type { SendRequest } from './messages.ts'

export interface RestCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: JsonObject
  readonly body?: JsonObject
  /** What else it is where the answer has one of these statuses: servers of one version differ, and each reads one of the two. */
  readonly otherwise?: {
    readonly statuses: readonly number[]
    readonly method?: RestCall['method']
    readonly body?: JsonObject
  }
}

export interface RpcCall {
  readonly method: string
  readonly params?: JsonObject
}

type Table<Call> = { readonly [O in Operation]: (params: Params[O]) => Call }

/** The operation does not exist in the version that the agent speaks: 0.3 cannot list tasks. */
export class UnsupportedByVersion extends Error {
  readonly operation: Operation
  readonly version: Endpoint['version']
  constructor(operation: Operation, version: Endpoint['version']) {
    super(`A2A ${version} has no operation "${operation}".`)
    this.name = 'UnsupportedByVersion'
    this.operation = operation
    this.version = version
  }
}

const noListV03 = (): never => {
  throw new UnsupportedByVersion('list', '0.3')
}

export const methods: Readonly<Record<Operation, string>> = {
  send: 'SendMessage',
  stream: 'SendStreamingMessage',
  get: 'GetTask',
  list: 'ListTasks',
  cancel: 'CancelTask',
  subscribe: 'SubscribeToTask',
  pushCreate: 'CreateTaskPushNotificationConfig',
  pushGet: 'GetTaskPushNotificationConfig',
  pushList: 'ListTaskPushNotificationConfigs',
  pushDelete: 'DeleteTaskPushNotificationConfig',
  extendedCard: 'GetExtendedAgentCard',
}

/** What we send is read first as if it came from a peer: canonical, without foreign fields, its ids within the limits. */
function canonicalSend({ message, configuration, metadata }: Params['send']): SendRequest {
  return present({
    message: readMessage(message, 'message'),
    configuration:
      configuration &&
      present({
        acceptedOutputModes: configuration.acceptedOutputModes,
        taskPushNotificationConfig:
          configuration.taskPushNotificationConfig &&
          readPushConfig(configuration.taskPushNotificationConfig, 'configuration.taskPushNotificationConfig'),
        historyLength: configuration.historyLength,
        returnImmediately: configuration.returnImmediately,
      }),
    metadata: metadata && object(metadata, 'metadata'),
  })
}

const listQuery = (p: Params['list']): JsonObject =>
  present({
    contextId: p.contextId,
    status: p.status,
    pageSize: p.pageSize,
    pageToken: p.pageToken,
    historyLength: p.historyLength,
    statusTimestampAfter: p.statusTimestampAfter,
    includeArtifacts: p.includeArtifacts,
  })
const pushConfig = (p: Params['pushCreate']): Params['pushCreate'] => ({
  ...readPushConfig(p, 'pushNotificationConfig'),
  taskId: checkedId(p.taskId, 'taskId'),
})
const pushPage = (p: Params['pushList']): JsonObject => present({ pageSize: p.pageSize, pageToken: p.pageToken })

/** `params` of 1.0 over JSON-RPC, without the tenant. */
export const rpcParams: Table<JsonObject> = {
  send: (p) => ({ ...canonicalSend(p) }),
  stream: (p) => ({ ...canonicalSend(p) }),
  get: (p) => present({ id: p.id, historyLength: p.historyLength }),
  list: listQuery,
  cancel: (p) => present({ id: p.id, metadata: p.metadata }),
  subscribe: (p) => ({ id: p.id }),
  pushCreate: (p) => ({ ...pushConfig(p) }),
  pushGet: (p) => ({ taskId: p.taskId, id: p.id }),
  pushList: (p) => ({ taskId: p.taskId, ...pushPage(p) }),
  pushDelete: (p) => ({ taskId: p.taskId, id: p.id }),
  extendedCard: () => ({}),
}

/** Method and `params` of 0.3 over JSON-RPC. The extended card's method takes none. */
export const rpcCallsV03: Table<RpcCall> = {
  send: (p) => ({ method: methodsV03.send, params: sendRequestV03(canonicalSend(p)) }),
  stream: (p) => ({ method: methodsV03.stream, params: sendRequestV03(canonicalSend(p)) }),
  get: (p) => ({ method: methodsV03.get, params: present({ id: p.id, historyLength: p.historyLength }) }),
  list: noListV03,
  cancel: (p) => ({ method: methodsV03.cancel, params: present({ id: p.id, metadata: p.metadata }) }),
  subscribe: (p) => ({ method: methodsV03.subscribe, params: { id: p.id } }),
  pushCreate: (p) => ({ method: methodsV03.pushCreate, params: nestedPushConfig(pushConfig(p)) }),
  pushGet: (p) => ({ method: methodsV03.pushGet, params: { id: p.taskId, pushNotificationConfigId: p.id } }),
  pushList: (p) => ({ method: methodsV03.pushList, params: { id: p.taskId } }),
  pushDelete: (p) => ({ method: methodsV03.pushDelete, params: { id: p.taskId, pushNotificationConfigId: p.id } }),
  extendedCard: () => ({ method: methodsV03.extendedCard }),
}

/** One segment of a path. A URL parser would take `.` and `..`, escaped or not, as steps to another route. */
export function segment(value: string, path: string): string {
  if (value === '' || value === '.' || value === '..') throw new WireError(path, 'cannot stand in a URL')
  // encodeURIComponent throws on a lone surrogate, which no URL can carry either.
  if (!value.isWellFormed()) throw new WireError(path, 'cannot stand in a URL')
  return encodeURIComponent(checkedId(value, path))
}

/** The specification's text says POST and its proto GET. */
const subscribeCall = (path: string): RestCall => ({
  method: 'POST',
  path,
  otherwise: { statuses: [404, 405], method: 'GET' },
})

/**
 * The proto of 0.3 wraps the configuration, and its own SDKs read that; what speaks 0.3 in the SDK of 1.x reads it bare, and answers
 * 400 to the other. It carries its own id, so that saying it twice makes one.
 */
function pushCreateV03(p: Params['pushCreate']): RestCall {
  const config = protoPushConfig(pushConfig(p))
  return {
    method: 'POST',
    path: `/v1${configsPath(p.taskId)}`,
    body: present({ parent: `tasks/${p.taskId}`, configId: p.id, config }),
    otherwise: { statuses: [400], body: config },
  }
}

const taskPath = (id: string): string => `/tasks/${segment(id, 'id')}`
const configsPath = (taskId: string): string => `/tasks/${segment(taskId, 'taskId')}/pushNotificationConfigs`
const configPath = (p: Params['pushGet']): string => `${configsPath(p.taskId)}/${segment(p.id, 'id')}`

/** HTTP+JSON routes of 1.0, under the interface's URL and tenant. */
export const restCalls: Table<RestCall> = {
  send: (p) => ({ method: 'POST', path: '/message:send', body: { ...canonicalSend(p) } }),
  stream: (p) => ({ method: 'POST', path: '/message:stream', body: { ...canonicalSend(p) } }),
  get: (p) => ({ method: 'GET', path: taskPath(p.id), query: present({ historyLength: p.historyLength }) }),
  list: (p) => ({ method: 'GET', path: '/tasks', query: listQuery(p) }),
  cancel: (p) => ({ method: 'POST', path: `${taskPath(p.id)}:cancel`, body: present({ metadata: p.metadata }) }),
  subscribe: (p) => subscribeCall(`${taskPath(p.id)}:subscribe`),
  pushCreate: (p) => ({ method: 'POST', path: configsPath(p.taskId), body: { ...pushConfig(p) } }),
  pushGet: (p) => ({ method: 'GET', path: configPath(p) }),
  pushList: (p) => ({ method: 'GET', path: configsPath(p.taskId), query: pushPage(p) }),
  pushDelete: (p) => ({ method: 'DELETE', path: configPath(p) }),
  extendedCard: () => ({ method: 'GET', path: '/extendedAgentCard' }),
}

/** HTTP+JSON routes of 0.3, under the interface's URL. */
export const restCallsV03: Table<RestCall> = {
  list: noListV03,
  send: (p) => ({ method: 'POST', path: '/v1/message:send', body: protoSendRequest(canonicalSend(p)) }),
  stream: (p) => ({ method: 'POST', path: '/v1/message:stream', body: protoSendRequest(canonicalSend(p)) }),
  get: (p) => ({ method: 'GET', path: `/v1${taskPath(p.id)}`, query: present({ historyLength: p.historyLength }) }),
  cancel: (p) => ({ method: 'POST', path: `/v1${taskPath(p.id)}:cancel`, body: {} }),
  subscribe: (p) => subscribeCall(`/v1${taskPath(p.id)}:subscribe`),
  pushCreate: pushCreateV03,
  pushGet: (p) => ({ method: 'GET', path: `/v1${configPath(p)}` }),
  pushList: (p) => ({ method: 'GET', path: `/v1${configsPath(p.taskId)}` }),
  pushDelete: (p) => ({ method: 'DELETE', path: `/v1${configPath(p)}` }),
  extendedCard: () => ({ method: 'GET', path: '/v1/card' }),
}
