/**
 * A2A 0.3 as JSON-RPC speaks it: `kind` objects, lower-case states, nested push configurations. Owns the translation to and from
 * the 1.0 shape [notes of the migration guide: whats-new-v1; the table of names is the SDKs' own]. Does not own 0.3 over HTTP, which
 * is ProtoJSON in practice (v0_3-rest.ts).
 */
import {
  WireError,
  at,
  base64,
  field,
  isObject,
  label,
  metadata,
  object,
  open,
  optionalId,
  present,
  string,
  strings,
} from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import type {
  Artifact,
  Message,
  Part,
  PushConfig,
  SendConfiguration,
  SendRequest,
  StreamResponse,
  Task,
  TaskStatus,
} from './messages.ts'

/** JSON-RPC method names of 0.3. There is none for ListTasks. */
export const methodsV03 = {
  send: 'message/send',
  stream: 'message/stream',
  get: 'tasks/get',
  cancel: 'tasks/cancel',
  subscribe: 'tasks/resubscribe',
  pushCreate: 'tasks/pushNotificationConfig/set',
  pushGet: 'tasks/pushNotificationConfig/get',
  pushList: 'tasks/pushNotificationConfig/list',
  pushDelete: 'tasks/pushNotificationConfig/delete',
  extendedCard: 'agent/getAuthenticatedExtendedCard',
} as const

const states = new Map([
  ['unknown', 'TASK_STATE_UNSPECIFIED'],
  ['submitted', 'TASK_STATE_SUBMITTED'],
  ['working', 'TASK_STATE_WORKING'],
  ['completed', 'TASK_STATE_COMPLETED'],
  ['failed', 'TASK_STATE_FAILED'],
  ['canceled', 'TASK_STATE_CANCELED'],
  ['input-required', 'TASK_STATE_INPUT_REQUIRED'],
  ['rejected', 'TASK_STATE_REJECTED'],
  ['auth-required', 'TASK_STATE_AUTH_REQUIRED'],
])
const statesV03 = new Map([...states].map(([old, now]) => [now, old]))

/** 0.3's proto spelled it with two Ls; the 0.3.14 server still does. */
const misspelled = new Map([['TASK_STATE_CANCELLED', 'TASK_STATE_CANCELED']])

/** The 1.0 name of a state, or the state as it stands when 0.3 has no such name. */
export const stateFromV03 = (state: string): string => states.get(state) ?? misspelled.get(state) ?? state
/** The 0.3 name of a 1.0 state; a state 0.3 never knew stays as it is. */
const stateToV03 = (state: string): string => statesV03.get(state) ?? state

export const roleFromV03 = (role: unknown): Message['role'] | undefined =>
  role === 'user' ? 'ROLE_USER' : role === 'agent' ? 'ROLE_AGENT' : undefined

/**
 * The mark that both SDKs set on a data part whose value was not an object, the only thing 0.3 can carry:
 * `{data: {value: x}, metadata: {data_part_compat: true}}`.
 */
const wrappedMark = 'data_part_compat'

/** Undoes the wrapping of a data part that was no object. */
export function unwrapData(data: unknown, marks: JsonObject | undefined): Part {
  if (marks?.[wrappedMark] !== true || !isObject(data) || !Object.hasOwn(data, 'value'))
    return present({ data, metadata: marks })
  const { [wrappedMark]: _, ...rest } = marks
  return present({ data: data['value'], metadata: Object.keys(rest).length > 0 ? rest : undefined })
}

/** Makes any JSON value carriable as an object. */
export function wrapData(part: Part): { data: JsonObject; metadata?: JsonObject } {
  if (isObject(part.data)) return present({ data: part.data, metadata: part.metadata })
  return { data: { value: part.data ?? null }, metadata: { ...part.metadata, [wrappedMark]: true } }
}

export const isKindPart = (json: JsonObject): boolean =>
  json['kind'] === 'text' || json['kind'] === 'data' || json['kind'] === 'file'

export function readKindPart(json: JsonObject, path: string): Part {
  const marks = metadata(json, path)
  if (json['kind'] === 'text') {
    const text = string(json, 'text', path)
    if (text === undefined) throw new WireError(at(path, 'text'), 'is required')
    return present({ text, metadata: marks })
  }
  if (json['kind'] === 'data') return unwrapData(open(field(json, 'data') ?? null, at(path, 'data')), marks)
  const place = at(path, 'file')
  const file = object(field(json, 'file'), place)
  const bytes = string(file, 'bytes', place)
  const named = present({
    mediaType: label(file, 'mimeType', place),
    filename: label(file, 'name', place),
    metadata: marks,
  })
  const url = label(file, 'uri', place)
  if (url !== undefined && bytes) throw new WireError(place, 'must have either uri or bytes')
  if (url !== undefined) return { url, ...named }
  return bytes === undefined ? named : { raw: base64(bytes, at(place, 'bytes')), ...named }
}

export function kindPart(part: Part): JsonObject {
  if (part.text !== undefined) return present({ kind: 'text', text: part.text, metadata: part.metadata })
  if (part.url !== undefined || part.raw !== undefined) {
    const file = present({ name: part.filename, mimeType: part.mediaType, uri: part.url, bytes: part.raw })
    return present({ kind: 'file', file, metadata: part.metadata })
  }
  return { kind: 'data', ...wrapData(part) }
}

export const kindMessage = (message: Message): JsonObject => ({
  kind: 'message',
  ...message,
  role: message.role === 'ROLE_USER' ? 'user' : 'agent',
  parts: message.parts.map(kindPart),
})

const kindStatus = (status: TaskStatus): JsonObject =>
  present({
    state: stateToV03(status.state),
    message: status.message && kindMessage(status.message),
    timestamp: status.timestamp,
  })

const kindArtifact = (artifact: Artifact): JsonObject => ({ ...artifact, parts: artifact.parts.map(kindPart) })

export const kindTask = (task: Task): JsonObject =>
  present({
    kind: 'task',
    id: task.id,
    // 0.3 requires it; a 1.0 task may have none.
    contextId: task.contextId ?? '',
    status: kindStatus(task.status),
    artifacts: task.artifacts?.map(kindArtifact),
    history: task.history?.map(kindMessage),
    metadata: task.metadata,
  })

const closing = new Set(['completed', 'failed', 'canceled', 'rejected', 'input-required'])
/** The `final` of a status update: whether a 0.3 client expects its stream to end after this 1.0 state. */
export const endsStreamV03 = (state: string): boolean => closing.has(stateToV03(state))

/** One event, or the result of a send, as a bare `kind` object. */
export function kindEvent(event: StreamResponse): JsonObject {
  if ('task' in event) return kindTask(event.task)
  if ('message' in event) return kindMessage(event.message)
  if ('statusUpdate' in event) {
    const { statusUpdate } = event
    const status = kindStatus(statusUpdate.status)
    const final = endsStreamV03(statusUpdate.status.state)
    return { kind: 'status-update', ...statusUpdate, contextId: statusUpdate.contextId ?? '', status, final }
  }
  const { artifactUpdate } = event
  const artifact = kindArtifact(artifactUpdate.artifact)
  return { kind: 'artifact-update', ...artifactUpdate, contextId: artifactUpdate.contextId ?? '', artifact }
}

/** The inner push configuration of 0.3. */
export const innerPushConfig = (config: PushConfig): JsonObject =>
  present({
    id: config.id,
    url: config.url,
    token: config.token,
    authentication:
      config.authentication &&
      present({ schemes: [config.authentication.scheme], credentials: config.authentication.credentials }),
  })

export const nestedPushConfig = (config: PushConfig): JsonObject =>
  present({ taskId: config.taskId, pushNotificationConfig: innerPushConfig(config) })

/**
 * Reads `{taskId, pushNotificationConfig}` and the proto's `{name: 'tasks/…/pushNotificationConfigs/…', pushNotificationConfig}`.
 * Null when the object is not nested.
 */
export function readNestedPushConfig(json: JsonObject, path: string): PushConfig | null {
  const value = field(json, 'pushNotificationConfig')
  if (value === undefined) return null
  const place = at(path, 'pushNotificationConfig')
  const inner = object(value, place)
  const url = label(inner, 'url', place)
  if (url === undefined) throw new WireError(at(place, 'url'), 'is required')
  // `tasks/{task}/pushNotificationConfigs/{config}` [0.3 proto]; a task's id may hold slashes, the words between may not.
  const name = /^tasks\/(.+)\/pushNotificationConfigs\/(.+)$/.exec(label(json, 'name', path) ?? '')
  return present({
    id: optionalId(inner, 'id', place) ?? name?.[2],
    taskId: optionalId(json, 'taskId', path) ?? name?.[1],
    url,
    token: label(inner, 'token', place),
    authentication: readAuthentication(inner, place),
  })
}

/** `authentication` of 1.0 (`scheme`) and of 0.3 (`schemes`, of which the first is meant). */
export function readAuthentication(json: JsonObject, path: string): PushConfig['authentication'] {
  const value = field(json, 'authentication')
  if (value === undefined) return undefined
  const place = at(path, 'authentication')
  const authentication = object(value, place)
  const scheme = label(authentication, 'scheme', place) ?? strings(authentication, 'schemes', place)?.[0]
  if (scheme === undefined) return undefined
  return present({ scheme, credentials: label(authentication, 'credentials', place) })
}

/** `blocking` is always written: peers disagree on what its absence means, and the difference is a hanging request. */
const configurationV03 = (configuration: SendConfiguration = {}): JsonObject =>
  present({
    acceptedOutputModes: configuration.acceptedOutputModes,
    historyLength: configuration.historyLength,
    pushNotificationConfig:
      configuration.taskPushNotificationConfig && innerPushConfig(configuration.taskPushNotificationConfig),
    blocking: configuration.returnImmediately !== true,
  })

/** Parameters of `message/send` and `message/stream`. 0.3 knows no tenant. */
export const sendRequestV03 = (request: SendRequest): JsonObject =>
  present({
    message: kindMessage(request.message),
    configuration: configurationV03(request.configuration),
    metadata: request.metadata,
  })
