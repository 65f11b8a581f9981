/**
 * A2A 0.3 over HTTP+JSON: ProtoJSON of the 0.3 proto, which is what servers really speak there (JS since 0.3.8, Python), though the
 * specification's text shows `kind` objects; both are read. Owns the translation to and from the 1.0 shape. Does not own
 * the routes (requests.ts).
 */
import { WireError, at, base64, field, label, metadata, object, open, present, string } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { endsStreamV03, innerPushConfig, isKindPart, readKindPart, unwrapData, wrapData } from './v0_3.ts'
import { leniently, parseSendRequest, parseStreamResponse, readTask, readWrapped } from './wire.ts'
import type { Artifact, Message, Part, PushConfig, SendRequest, StreamResponse, Task, TaskStatus } from './messages.ts'

/** A part of the 0.3 proto: `text`, `file {fileWithUri|fileWithBytes}` or `data {data}`. */
function readProtoPart(value: unknown, path: string): Part {
  const json = object(value, path)
  if (isKindPart(json)) return readKindPart(json, path)
  const marks = metadata(json, path)
  const place = at(path, 'file')
  const file = field(json, 'file')
  if (file !== undefined) return { ...readFile(object(file, place), place), ...present({ metadata: marks }) }
  const data = field(json, 'data')
  if (data !== undefined) {
    const inner = object(data, at(path, 'data'))
    return unwrapData(open(field(inner, 'data') ?? {}, at(path, 'data.data')), marks)
  }
  return present({ text: string(json, 'text', path), metadata: marks })
}

function readFile(file: JsonObject, path: string): Part {
  const bytes = string(file, 'fileWithBytes', path)
  const url = label(file, 'fileWithUri', path)
  const named = present({ mediaType: label(file, 'mimeType', path), filename: label(file, 'name', path) })
  if (url !== undefined && bytes) throw new WireError(path, 'must have either fileWithUri or fileWithBytes')
  if (url !== undefined) return { url, ...named }
  return bytes === undefined ? named : { raw: base64(bytes, at(path, 'fileWithBytes')), ...named }
}

/** Reads an event, the result of a send, or a bare task. Throws WireError. */
export function parseProtoEvent(value: unknown): StreamResponse {
  const json = object(value, '')
  const readPartOf = leniently(readProtoPart)
  if (field(json, 'kind') !== undefined) return parseStreamResponse(json, readPartOf)
  return readWrapped(json, readPartOf) ?? { task: readTask(json, '', readPartOf) }
}

/** Reads a bare task. Throws WireError. */
export const parseProtoTask = (value: unknown): Task => readTask(value, '', leniently(readProtoPart))

/** Reads the body of `message:send` and `message:stream`. Throws WireError. */
export const parseProtoSendRequest = (value: unknown): SendRequest => parseSendRequest(value, readProtoPart)

/** 0.3's proto spelled this one state differently. */
const protoState = (state: string): string => (state === 'TASK_STATE_CANCELED' ? 'TASK_STATE_CANCELLED' : state)

/**
 * A part with the fields that the proto of 0.3.0 has and no more, since Python peers refuse a message with others. So a part's metadata, a
 * file's name, and the mark of a wrapped value do not travel this way; they are read where a later server sends them.
 */
export function protoPart(part: Part): JsonObject {
  if (part.text !== undefined) return { text: part.text }
  if (part.url !== undefined || part.raw !== undefined)
    return { file: present({ fileWithUri: part.url, fileWithBytes: part.raw, mimeType: part.mediaType }) }
  return { data: { data: wrapData(part).data } }
}

function protoMessage(message: Message): JsonObject {
  const { parts, referenceTaskIds: _, ...rest } = message
  return { ...rest, content: parts.map(protoPart) }
}

const protoStatus = (status: TaskStatus): JsonObject =>
  present({
    state: protoState(status.state),
    message: status.message && protoMessage(status.message),
    timestamp: status.timestamp,
  })

const protoArtifact = (artifact: Artifact): JsonObject => ({ ...artifact, parts: artifact.parts.map(protoPart) })

export const protoTask = (task: Task): JsonObject =>
  present({
    ...task,
    status: protoStatus(task.status),
    artifacts: task.artifacts?.map(protoArtifact),
    history: task.history?.map(protoMessage),
  })

/** One event, or the result of a send. */
export function protoEvent(event: StreamResponse): JsonObject {
  if ('task' in event) return { task: protoTask(event.task) }
  if ('message' in event) return { message: protoMessage(event.message) }
  if ('statusUpdate' in event) {
    const { statusUpdate } = event
    const final = endsStreamV03(statusUpdate.status.state) ? true : undefined
    return { statusUpdate: present({ ...statusUpdate, status: protoStatus(statusUpdate.status), final }) }
  }
  const { artifactUpdate } = event
  return { artifactUpdate: { ...artifactUpdate, artifact: protoArtifact(artifactUpdate.artifact) } }
}

/** The body of `message:send`. `message` is the field's JSON name; `request` is its name in the proto and read as well. */
export function protoSendRequest(request: SendRequest): JsonObject {
  const { acceptedOutputModes, historyLength, taskPushNotificationConfig, returnImmediately } =
    request.configuration ?? {}
  return present({
    message: protoMessage(request.message),
    configuration: present({
      acceptedOutputModes,
      historyLength,
      pushNotification: taskPushNotificationConfig && innerPushConfig(taskPushNotificationConfig),
      blocking: returnImmediately !== true,
    }),
    metadata: request.metadata,
  })
}

/** A push configuration as a resource with a name. */
export const protoPushConfig = (config: PushConfig & { taskId: string }): JsonObject => ({
  name: `tasks/${config.taskId}/pushNotificationConfigs/${config.id ?? ''}`,
  pushNotificationConfig: innerPushConfig(config),
})
