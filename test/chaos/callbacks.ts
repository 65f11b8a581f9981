/**
 * The witness as an agent that calls: push configurations as both versions and bindings write them, deliveries that are repeated
 * under one id until somebody answers 2xx, and every one of either written down. Tasks of its own move by the scenario's word,
 * one event at a time, so that a death can be put between two of them. Shares no code with the product, and does not serve HTTP
 * (witness.ts).
 *
 * An event that was not answered at once comes once more behind the next one, as from a queue that heard too late that it had
 * arrived. The first two are states without a time: repeated, they would turn the task back, were they not known by their ids.
 */
import { recordOf } from '../support/peers/operations.ts'
import { dialects, type Said, type WitnessTask } from './dialects.ts'

interface Config {
  readonly id: string
  readonly url: string
  readonly token: string
  readonly credentials: string
}

/** What a request says about a task's callback; null: it is about something else. */
export type CallbackRequest =
  | { readonly kind: 'set'; readonly taskId: string; readonly config: Config }
  | { readonly kind: 'forget'; readonly taskId: string; readonly id: string }

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const restPath = /\/tasks\/([^/:]+)\/pushNotificationConfigs(?:\/([^/:]+))?$/

export function callbackIn(verb: string, path: string, body: unknown): CallbackRequest | null {
  const { method, params } = recordOf(body)
  const given = recordOf(params)
  if (method === 'CreateTaskPushNotificationConfig' || method === 'tasks/pushNotificationConfig/set')
    return { kind: 'set', taskId: text(given['taskId']), config: configIn(given) }
  if (method === 'DeleteTaskPushNotificationConfig')
    return { kind: 'forget', taskId: text(given['taskId']), id: text(given['id']) }
  if (method === 'tasks/pushNotificationConfig/delete')
    return { kind: 'forget', taskId: text(given['id']), id: text(given['pushNotificationConfigId']) }
  const [, taskId, id = ''] = restPath.exec(path) ?? []
  if (taskId === undefined) return null
  if (verb === 'DELETE') return { kind: 'forget', taskId: decodeURIComponent(taskId), id: decodeURIComponent(id) }
  if (verb !== 'POST') return null
  // The proto of 0.3 has the configuration as a resource with a name.
  const resource = recordOf(body)['config'] ?? body
  return { kind: 'set', taskId: decodeURIComponent(taskId), config: configIn(recordOf(resource)) }
}

/** 1.0 has it flat, 0.3 nested. */
function configIn(given: Record<string, unknown>): Config {
  const inner = recordOf(given['pushNotificationConfig'] ?? given)
  const credentials = recordOf(inner['authentication'])['credentials']
  return {
    id: text(inner['id']),
    url: text(inner['url']),
    token: text(inner['token']),
    credentials: text(credentials),
  }
}

/** Longer than a console takes to be there again: 300 tries, a fifth of a second apart. */
const triesLimit = 300
const pauseMs = 50
const pauseMaxMs = 200
const answerWithinMs = 10_000

interface Moving {
  readonly task: WitnessTask
  /** Nothing is learned of it by asking before its end was delivered: what is known came by a call. */
  readonly isSilent: boolean
  /** How many of its steps it has made. */
  step: number
  /** Its newest event on its way; true when everybody who wants to be called has heard. */
  telling: Promise<boolean>
  /** What had to be repeated, and comes again behind the next one. */
  repeated: Delivery | null
}

interface Delivery {
  readonly id: string
  readonly event: unknown
}

interface Heard {
  readonly isHeard: boolean
  readonly tries: number
}

export class Callbacks {
  readonly #record: (line: Record<string, unknown>) => void
  readonly #configs = new Map<string, Map<string, Config>>()
  readonly #moving = new Map<string, Moving>()

  constructor(record: (line: Record<string, unknown>) => void) {
    this.#record = record
  }

  /** Keeps a configuration or forgets it, and returns what is answered. As agents do: the same id is the same configuration. */
  heed(request: CallbackRequest): unknown {
    const { taskId } = request
    const kept = this.#configs.get(taskId) ?? new Map<string, Config>()
    this.#configs.set(taskId, kept)
    if (request.kind === 'forget') {
      this.#record({ what: 'forgotten', taskId, id: request.id, at: Date.now() })
      kept.delete(request.id)
      return {}
    }
    const { config } = request
    kept.set(config.id, config)
    this.#record({ what: 'configured', taskId, ...config, at: Date.now(), live: kept.size })
    return { taskId, id: config.id, url: config.url }
  }

  /** From now on the task moves by `next` alone. */
  begin(task: WitnessTask, isSilent: boolean): void {
    task.stateAt = undefined
    this.#moving.set(task.id, { task, isSilent, step: 0, telling: Promise.resolve(true), repeated: null })
  }

  /** One event further (`steps`). Resolves when it is delivered; false when it never was. */
  async next(taskId: string): Promise<boolean> {
    const moving = this.#moving.get(taskId)
    if (!moving || !(await moving.telling)) return false
    const step = steps[moving.step++]
    if (!step) return false
    moving.telling = this.#tell(moving, step(moving.task))
    return moving.telling
  }

  /** Whether who asks is shown the task. Its end is shown once it was delivered, for otherwise the asking would tell it first. */
  async shows(taskId: string): Promise<boolean> {
    const moving = this.#moving.get(taskId)
    if (moving?.isSilent !== true) return true
    return moving.task.state === 'completed' && moving.telling
  }

  async #tell(moving: Moving, said: Said): Promise<boolean> {
    const { task, repeated } = moving
    const dialect = dialects[task.dialect]
    // Agents of 0.3 deliver the task as it is; those of 1.0 what became of it.
    const event = dialect.event(dialect.version === '0.3' ? { kind: 'task', task } : said)
    const delivery = { id: `${task.id}-${said.kind}-${task.state}-${task.chunks.length}`, event }
    // Whoever wants to be called now; to nobody is not heard. Once it hears of the end it may take that back before the repetition is sent.
    const [config] = this.#configs.get(task.id)?.values() ?? []
    if (!config) return false
    const { isHeard, tries } = await this.#deliver(config, task, delivery)
    moving.repeated = tries > 1 ? delivery : null
    if (!isHeard || repeated === null) return isHeard
    return (await this.#deliver(config, task, repeated)).isHeard
  }

  async #deliver(config: Config, task: WitnessTask, { id: deliveryId, event }: Delivery): Promise<Heard> {
    for (let tries = 1; tries <= triesLimit; tries++) {
      const status = await post(config, task, deliveryId, event)
      this.#record({ what: 'delivered', taskId: task.id, deliveryId, at: Date.now(), status })
      if (status !== null && status >= 200 && status < 300) return { isHeard: true, tries }
      const wait = Math.min(pauseMaxMs, pauseMs * tries)
      await new Promise((again) => setTimeout(again, wait))
    }
    return { isHeard: false, tries: triesLimit }
  }
}

/** The life of a task that is called about, an event at a time. */
const steps: readonly ((task: WitnessTask) => Said)[] = [
  (task) => turned(task, 'submitted'),
  (task) => turned(task, 'working'),
  (task) => grown(task, 'Result of '),
  (task) => grown(task, `${task.messageId}.`),
  (task) => {
    task.stateAt = new Date().toISOString()
    return turned(task, 'completed')
  },
]

function turned(task: WitnessTask, state: WitnessTask['state']): Said {
  task.state = state
  return { kind: 'status', task }
}

function grown(task: WitnessTask, words: string): Said {
  task.chunks.push(words)
  return { kind: 'chunk', task, index: task.chunks.length - 1, last: task.chunks.length === 2 }
}

/** The status that was answered; null: the connection broke before there was one. */
function post({ url, token, credentials }: Config, task: WitnessTask, deliveryId: string, event: unknown) {
  // Agents of 0.3 know the token only.
  const proof: Record<string, string> =
    dialects[task.dialect].version === '0.3'
      ? { 'x-a2a-notification-token': token }
      : { authorization: `Bearer ${credentials}` }
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-a2a-delivery-id': deliveryId, ...proof },
    body: JSON.stringify(event),
    signal: AbortSignal.timeout(answerWithinMs),
  }).then(
    async (response) => {
      await response.arrayBuffer()
      return response.status
    },
    () => null,
  )
}
