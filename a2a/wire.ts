/**
 * A2A messages in their 1.0 shape [a2a.proto v1.0.1]: the one shape the rest of the product knows. Owns reading any peer's JSON into it:
 * 1.0 ProtoJSON, and the `kind` objects of 0.3. Reading is tolerant where peers differ (unknown fields, unknown states, defaults
 * left out) and strict where a wrong guess would cost (ids, types, one content a part). What is read is canonical 1.0 and
 * may be written with JSON.stringify as it is. Does not own 0.3's other shapes (v0_3.ts, v0_3-rest.ts) or errors (errors.ts).
 */
import {
  WireError,
  at,
  base64,
  boolean,
  field,
  id,
  integer,
  isObject,
  label,
  list,
  metadata,
  object,
  open,
  optionalId,
  present,
  string,
  strings,
  timestamp,
} from './proto-json.ts'
import type {
  Part,
  Message,
  TaskStatus,
  Artifact,
  Task,
  StatusUpdate,
  ArtifactUpdate,
  StreamResponse,
  PushConfig,
  SendConfiguration,
  SendRequest,
  TaskPage,
} from './messages.ts'
import type { JsonObject } from './proto-json.ts'
import {
  isKindPart,
  readAuthentication,
  readKindPart,
  readNestedPushConfig,
  roleFromV03,
  stateFromV03,
} from './v0_3.ts'

export { WireError } from './proto-json.ts'

/** How a dialect writes a part; everything around the parts is told apart by its field names. */
type ReadPart = (value: unknown, path: string) => Part

/** Index = number in TaskState of a2a.proto, the same in 0.3 and 1.0. */
const statesByNumber = [
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
] as const

const stateLimit = 64

function readState(json: JsonObject, path: string): string {
  const value = field(json, 'state')
  if (value === undefined || value === '') return statesByNumber[0]
  if (typeof value === 'number') return statesByNumber[value] ?? String(value)
  if (typeof value !== 'string' || value.length > stateLimit || value.includes('\0') || !value.isWellFormed())
    throw new WireError(at(path, 'state'), `must be a task state of at most ${stateLimit} characters`)
  return stateFromV03(value)
}

function readRole(json: JsonObject, path: string): Message['role'] {
  const value = field(json, 'role')
  if (value === 'ROLE_USER' || value === 1) return 'ROLE_USER'
  if (value === 'ROLE_AGENT' || value === 2) return 'ROLE_AGENT'
  const role = roleFromV03(value)
  if (role === undefined) throw new WireError(at(path, 'role'), 'must be ROLE_USER or ROLE_AGENT')
  return role
}

/** A part of 1.0, or of 0.3 when it names its `kind`. */
export function readPart(value: unknown, path: string): Part {
  const json = object(value, path)
  if (isKindPart(json)) return readKindPart(json, path)
  const text = string(json, 'text', path)
  const url = string(json, 'url', path)
  const raw = string(json, 'raw', path)
  const data = field(json, 'data')
  const named = {
    mediaType: label(json, 'mediaType', path),
    filename: label(json, 'filename', path),
    metadata: metadata(json, path),
  }
  // Peers that write every default send empty strings beside the content; they are no second content.
  if (Number(!!text) + Number(!!url) + Number(!!raw) + Number(data !== undefined) > 1)
    throw new WireError(path, 'must have one content: text, data, url or raw')
  if (data !== undefined) return present({ data: open(data, at(path, 'data')), ...named })
  if (url) return present({ url, ...named })
  if (raw) return present({ raw: base64(raw, at(path, 'raw')), ...named })
  if (text !== undefined) return present({ text, ...named })
  if (raw !== undefined) return present({ raw, ...named })
  if (url !== undefined) return present({ url, ...named })
  // google.protobuf.Value knows null, so `data: null` alone is a content; `present` must not see it as absent.
  if (Object.hasOwn(json, 'data') && json['data'] === null) return { data: null, ...present(named) }
  return present(named)
}

/** Of one answer. More are no slip of its agent's, and a sentence for each would be many times what it said. */
const unreadableLimit = 100

/**
 * For one answer of an agent: a part of it that cannot be read takes nothing from the rest, and a sentence stands in its place. Otherwise
 * one line of base64 would make a task that is done unreadable, and the send that it answers uncertain. The sentence does not say where
 * the part is: told by a stream and seen by a look it is the same part.
 */
export function leniently(readPartOf: ReadPart): ReadPart {
  let left = unreadableLimit
  return (value, path) => {
    try {
      return readPartOf(value, left > 0 ? 'part' : path)
    } catch (error) {
      if (!(error instanceof WireError) || left === 0) throw error
      left -= 1
      return { unreadable: `This part cannot be read: ${error.message}.` }
    }
  }
}

export function readMessage(value: unknown, path: string, readPartOf: ReadPart = readPart): Message {
  const json = object(value, path)
  return present({
    messageId: id(json, 'messageId', path),
    contextId: optionalId(json, 'contextId', path),
    taskId: optionalId(json, 'taskId', path),
    role: readRole(json, path),
    // 0.3's proto says `content`. An empty list may be left out on the wire, so absence is not refused here.
    parts: list(json, 'parts', path, readPartOf) ?? list(json, 'content', path, readPartOf) ?? [],
    metadata: metadata(json, path),
    extensions: strings(json, 'extensions', path),
    referenceTaskIds: strings(json, 'referenceTaskIds', path),
  })
}

function readStatus(value: unknown, path: string, readPartOf: ReadPart): TaskStatus {
  const json = object(value, path)
  // 0.3's proto calls the field `update`, its JSON `message`.
  const name = field(json, 'message') === undefined ? 'update' : 'message'
  const message = field(json, name)
  return present({
    state: readState(json, path),
    message: message === undefined ? undefined : readMessage(message, at(path, name), readPartOf),
    timestamp: timestamp(json, 'timestamp'),
  })
}

function readArtifact(value: unknown, path: string, readPartOf: ReadPart): Artifact {
  const json = object(value, path)
  return present({
    artifactId: id(json, 'artifactId', path),
    name: label(json, 'name', path),
    description: label(json, 'description', path),
    parts: list(json, 'parts', path, readPartOf) ?? [],
    metadata: metadata(json, path),
    extensions: strings(json, 'extensions', path),
  })
}

export function readTask(value: unknown, path: string, readPartOf: ReadPart = readPart): Task {
  const json = object(value, path)
  return present({
    id: id(json, 'id', path),
    contextId: optionalId(json, 'contextId', path),
    status: readStatus(field(json, 'status'), at(path, 'status'), readPartOf),
    artifacts: list(json, 'artifacts', path, (item, place) => readArtifact(item, place, readPartOf)),
    history: list(json, 'history', path, (item, place) => readMessage(item, place, readPartOf)),
    metadata: metadata(json, path),
  })
}

function readStatusUpdate(value: unknown, path: string, readPartOf: ReadPart): StatusUpdate {
  const json = object(value, path)
  return present({
    taskId: id(json, 'taskId', path),
    contextId: optionalId(json, 'contextId', path),
    status: readStatus(field(json, 'status'), at(path, 'status'), readPartOf),
    metadata: metadata(json, path),
  })
}

function readArtifactUpdate(value: unknown, path: string, readPartOf: ReadPart): ArtifactUpdate {
  const json = object(value, path)
  return present({
    taskId: id(json, 'taskId', path),
    contextId: optionalId(json, 'contextId', path),
    artifact: readArtifact(field(json, 'artifact'), at(path, 'artifact'), readPartOf),
    append: boolean(json, 'append', path),
    lastChunk: boolean(json, 'lastChunk', path),
    metadata: metadata(json, path),
  })
}

/** The four wrappers of 1.0, and of 0.3's proto, whose message is `msg` in some dumps. */
export function readWrapped(json: JsonObject, readPartOf: ReadPart): StreamResponse | null {
  const task = field(json, 'task')
  const message = field(json, 'message') ?? field(json, 'msg')
  const statusUpdate = field(json, 'statusUpdate')
  const artifactUpdate = field(json, 'artifactUpdate')
  const said = [task, message, statusUpdate, artifactUpdate].filter((value) => value !== undefined).length
  if (said === 0) return null
  if (said > 1) throw new WireError('', 'must have one of task, message, statusUpdate or artifactUpdate')
  if (task !== undefined) return { task: readTask(task, 'task', readPartOf) }
  if (message !== undefined) return { message: readMessage(message, 'message', readPartOf) }
  if (statusUpdate !== undefined) return { statusUpdate: readStatusUpdate(statusUpdate, 'statusUpdate', readPartOf) }
  return { artifactUpdate: readArtifactUpdate(artifactUpdate, 'artifactUpdate', readPartOf) }
}

function readKind(json: JsonObject, readPartOf: ReadPart): StreamResponse | null {
  switch (field(json, 'kind')) {
    case 'task':
      return { task: readTask(json, '', readPartOf) }
    case 'message':
      return { message: readMessage(json, '', readPartOf) }
    case 'status-update':
      return { statusUpdate: readStatusUpdate(json, '', readPartOf) }
    case 'artifact-update':
      return { artifactUpdate: readArtifactUpdate(json, '', readPartOf) }
    default:
      return null
  }
}

/** Reads whatever an agent may send as one event: the 1.0 wrappers, a bare 1.0 task, any 0.3 `kind` object. Throws WireError. */
export function parseStreamResponse(value: unknown, readPartOf: ReadPart = readPart): StreamResponse {
  const json = object(value, '')
  const event = readKind(json, readPartOf) ?? readWrapped(json, readPartOf)
  if (event) return event
  if (field(json, 'id') !== undefined && field(json, 'status') !== undefined)
    return { task: readTask(json, '', readPartOf) }
  throw new WireError('', 'must have one of task, message, statusUpdate or artifactUpdate')
}

/** Reads a bare task, 1.0 or 0.3 `kind`. Throws WireError. */
export const parseTask = (value: unknown, readPartOf: ReadPart = readPart): Task => readTask(value, '', readPartOf)

/**
 * Reads the result of ListTasks; its counts may be left out when they are 0. A task that cannot be read takes nothing from the others.
 * Throws WireError where it is no page.
 */
export function parseTaskPage(value: unknown, readPartOf: ReadPart = readPart): TaskPage {
  const json = object(value, '')
  const entries = list(json, 'tasks', '', (entry, path) => readable(entry, path, readPartOf)) ?? []
  const tasks = entries.flatMap((entry) => (entry instanceof WireError ? [] : [entry]))
  const first = entries.find((entry) => entry instanceof WireError)
  return {
    tasks,
    nextPageToken: string(json, 'nextPageToken', '') ?? '',
    pageSize: integer(json, 'pageSize', '') ?? entries.length,
    totalSize: integer(json, 'totalSize', '') ?? entries.length,
    ...(first ? { unread: { count: entries.length - tasks.length, reason: first.message } } : {}),
  }
}

function readable(entry: unknown, path: string, readPartOf: ReadPart): Task | WireError {
  try {
    return readTask(entry, path, readPartOf)
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
}

/** Reads a push configuration: flat as in 1.0, or nested as in 0.3. Throws WireError. */
export function readPushConfig(value: unknown, path: string): PushConfig {
  const json = object(value, path)
  const nested = readNestedPushConfig(json, path)
  if (nested) return nested
  const url = label(json, 'url', path)
  if (url === undefined) throw new WireError(at(path, 'url'), 'is required')
  return present({
    tenant: label(json, 'tenant', path),
    id: optionalId(json, 'id', path),
    taskId: optionalId(json, 'taskId', path),
    url,
    token: label(json, 'token', path),
    authentication: readAuthentication(json, path),
  })
}

function readConfiguration(value: unknown, path: string): SendConfiguration {
  const json = object(value, path)
  const pushName = ['taskPushNotificationConfig', 'pushNotificationConfig', 'pushNotification'].find(
    (name) => field(json, name) !== undefined,
  )
  const blocking = boolean(json, 'blocking', path)
  return present({
    acceptedOutputModes: strings(json, 'acceptedOutputModes', path),
    taskPushNotificationConfig:
      pushName === undefined ? undefined : readPushConfig(field(json, pushName), at(path, pushName)),
    historyLength: integer(json, 'historyLength', path),
    returnImmediately: boolean(json, 'returnImmediately', path) ?? (blocking === undefined ? undefined : !blocking),
  })
}

/**
 * Reads the parameters of a send, 1.0 or 0.3 (`blocking`, `kind` parts, the proto's `request`). Throws WireError. An
 * empty message is read as such: whether that is a bad request is the server's to say.
 */
export function parseSendRequest(value: unknown, readPartOf: ReadPart = readPart): SendRequest {
  const json = object(value, '')
  const name = field(json, 'message') === undefined && isObject(field(json, 'request')) ? 'request' : 'message'
  const configuration = field(json, 'configuration')
  return present({
    tenant: label(json, 'tenant', ''),
    message: readMessage(field(json, name), name, readPartOf),
    configuration: configuration === undefined ? undefined : readConfiguration(configuration, 'configuration'),
    metadata: metadata(json, ''),
  })
}
