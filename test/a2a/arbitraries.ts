/** Arbitrary A2A values in canonical 1.0 shape, and arbitrary JSON of the same vocabulary for fuzzing. */
import fc from 'fast-check'
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../../a2a/messages.ts'

const id = fc.string({ minLength: 1, maxLength: 20 }).filter((value) => !value.includes('\0'))
const name = fc.string({ minLength: 1, maxLength: 20 })
const metadata = fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { minKeys: 1, maxKeys: 3 })
const timestamp = fc
  .date({ noInvalidDate: true, min: new Date('1970-01-01'), max: new Date('2999-01-01') })
  .map((date) => date.toISOString())
const state = fc.constantFrom(
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_INVENTED',
)
const base64 = fc.uint8Array({ minLength: 1, maxLength: 12 }).map((bytes) => btoa(String.fromCharCode(...bytes)))
const optional = <T extends Record<string, fc.Arbitrary<unknown>>, K extends keyof T & string>(
  shape: T,
  required: K[],
) => fc.record(shape, { requiredKeys: required })

const named = { mediaType: name, filename: name, metadata }
/** What 0.3 over JSON-RPC can carry whole. */
const filePart = fc.oneof(
  optional({ url: fc.webUrl(), ...named }, ['url']),
  optional({ raw: base64, ...named }, ['raw']),
)
export const kindPart = fc.oneof(
  optional({ text: fc.string(), metadata }, ['text']),
  optional({ data: fc.jsonValue({ maxDepth: 3 }), metadata }, ['data']),
  filePart,
) as fc.Arbitrary<Part>
/** What 0.3 over HTTP can carry whole. */
export const protoPart = fc.oneof(
  fc.record({ text: fc.string() }),
  fc.record({ data: metadata }),
  optional({ url: fc.webUrl(), mediaType: name }, ['url']),
  optional({ raw: base64, mediaType: name }, ['raw']),
) as fc.Arbitrary<Part>
export const anyPart = fc.oneof(
  optional({ text: fc.string(), ...named }, ['text']),
  optional({ data: fc.jsonValue({ maxDepth: 3 }), ...named }, ['data']),
  filePart,
) as fc.Arbitrary<Part>

export function eventsWith(part: fc.Arbitrary<Part>, more: { referenceTaskIds?: fc.Arbitrary<string[]> } = {}) {
  const parts = fc.array(part, { maxLength: 3 })
  const message = optional(
    {
      messageId: id,
      role: fc.constantFrom('ROLE_USER', 'ROLE_AGENT'),
      parts,
      contextId: id,
      taskId: id,
      metadata,
      extensions: fc.array(name, { maxLength: 2 }),
      ...more,
    },
    ['messageId', 'role', 'parts'],
  ) as fc.Arbitrary<Message>
  const status = optional({ state, message, timestamp }, ['state']) as fc.Arbitrary<TaskStatus>
  const artifact = optional(
    { artifactId: id, parts, name, description: name, metadata, extensions: fc.array(name, { maxLength: 2 }) },
    ['artifactId', 'parts'],
  ) as fc.Arbitrary<Artifact>
  const task = optional(
    {
      id,
      contextId: id,
      status,
      artifacts: fc.array(artifact, { maxLength: 2 }),
      history: fc.array(message, { maxLength: 2 }),
      metadata,
    },
    ['id', 'contextId', 'status'],
  ) as fc.Arbitrary<Task>
  const statusUpdate = optional({ taskId: id, contextId: id, status, metadata }, ['taskId', 'contextId', 'status'])
  const artifactUpdate = optional(
    { taskId: id, contextId: id, artifact, append: fc.boolean(), lastChunk: fc.boolean(), metadata },
    ['taskId', 'contextId', 'artifact'],
  )
  const event = fc.oneof(
    fc.record({ task }),
    fc.record({ message }),
    fc.record({ statusUpdate }),
    fc.record({ artifactUpdate }),
  ) as fc.Arbitrary<StreamResponse>
  return { message, task, event }
}

export const referenceTaskIds = fc.array(name, { maxLength: 2 })

const words = `
  task message statusUpdate artifact_update kind id status state parts content text data raw url
  file metadata role messageId artifactId artifact taskId result error code jsonrpc name supportedInterfaces capabilities
  extensions uri skills securitySchemes scheme $case type flows __proto__ constructor sideband eventType signatures provider`
const word = fc.constantFrom(...words.trim().split(/\s+/))
const scalar = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    1,
    -32001,
    '',
    'task',
    'status-update',
    'user',
    'ROLE_AGENT',
    'working',
    'text',
  ),
  fc.string({ maxLength: 6 }),
)
/** JSON made of the protocol's own words in the wrong places: it reaches further into a decoder than random keys do. */
export const hostileJson: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(word, tie('value')), { maxLength: 6 }).map((entries) => Object.fromEntries(entries) as unknown),
  ),
})).value
