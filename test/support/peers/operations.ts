/**
 * Tells which A2A operation a request asks for, in any version and binding, and what identifies it. Owns this small
 * reading of requests for the receipt log; it is deliberately not our codec, because a witness must not share the
 * suspect's code.
 */

export interface Operation {
  /** The 1.0 name. A request that is none of them keeps what it said. */
  readonly method: string
  /** Set for the operations that must arrive at most once: the message's id, or the task's for a cancel. */
  readonly messageId?: string
}

const names0_3: Readonly<Record<string, string>> = {
  'message/send': 'SendMessage',
  'message/stream': 'SendStreamingMessage',
  'tasks/get': 'GetTask',
  'tasks/cancel': 'CancelTask',
  'tasks/resubscribe': 'SubscribeToTask',
}

const restPaths: readonly (readonly [verb: string, path: RegExp, method: string])[] = [
  ['POST', /\/message:send\/?$/, 'SendMessage'],
  ['POST', /\/message:stream\/?$/, 'SendStreamingMessage'],
  ['POST', /\/tasks\/([^/:]+):cancel\/?$/, 'CancelTask'],
  ['POST', /\/tasks\/([^/:]+):subscribe\/?$/, 'SubscribeToTask'],
  ['GET', /\/tasks\/([^/:]+):subscribe\/?$/, 'SubscribeToTask'],
  ['GET', /\/tasks\/([^/:]+)\/?$/, 'GetTask'],
  ['POST', /\/tasks\/([^/:]+)\/pushNotificationConfigs\/?$/, 'CreateTaskPushNotificationConfig'],
  ['GET', /\/tasks\/?$/, 'ListTasks'],
]

export function operationOf(verb: string, path: string, body: unknown): Operation {
  const envelope = recordOf(body)
  if (typeof envelope['method'] === 'string') {
    const method = names0_3[envelope['method']] ?? envelope['method']
    return identified(method, recordOf(envelope['params']), undefined)
  }
  for (const [restVerb, pattern, method] of restPaths) {
    const match = verb === restVerb ? pattern.exec(path) : null
    if (match) return identified(method, envelope, match[1])
  }
  return { method: `${verb} ${path}` }
}

function identified(method: string, params: Record<string, unknown>, taskId: string | undefined): Operation {
  if (method === 'CancelTask') return { method, messageId: decodeURIComponent(taskId ?? textOf(params['id'])) }
  if (method !== 'SendMessage' && method !== 'SendStreamingMessage') return { method }
  const message = recordOf(params['message'] ?? params['request'])
  return { method, messageId: textOf(message['messageId'] ?? message['message_id']) }
}

/** The value as an object, or an empty one: what reaches an agent may be anything. */
export const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
