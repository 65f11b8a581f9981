/**
 * The published SDK as a client of ours: the independent judge of every server in this repository. Owns turning its
 * typed values into plain 1.0 JSON, which tests can read. Does not own any judgement.
 */
import {
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from '@a2a-js/sdk'
import {
  ClientFactory,
  ClientFactoryOptions,
  ServiceParameters,
  withA2AExtensions,
  type RequestOptions,
} from '@a2a-js/sdk/client'
import { recordOf } from './operations.ts'

export type Binding = 'JSONRPC' | 'HTTP+JSON'

/** What is asked of an agent in a test, over what is always said. */
export interface Words {
  readonly messageId: string
  readonly text?: string
  readonly parts?: readonly unknown[]
  readonly taskId?: string
  readonly contextId?: string
  readonly metadata?: unknown
  readonly returnImmediately?: boolean
  readonly historyLength?: number
  /** URIs for the extensions header. */
  readonly extensions?: readonly string[]
}

export type Json = Record<string, unknown>

export interface SdkClient {
  /** `{task}` or `{message}`. */
  send(words: Words): Promise<Json>
  stream(words: Words): AsyncGenerator<Json, void, undefined>
  get(id: string, historyLength?: number): Promise<Json>
  list(asked: Json): Promise<Json>
  cancel(id: string): Promise<Json>
  subscribe(id: string): AsyncGenerator<Json, void, undefined>
}

export async function openSdkClient(cardUrl: string, binding: Binding): Promise<SdkClient> {
  const preferred = { preferredTransports: [binding] }
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, preferred))
  const client = await factory.createFromUrl(cardUrl, '')
  return {
    async send(words) {
      const result = await client.sendMessage(requestOf(words), optionsOf(words))
      return 'status' in result ? { task: Task.toJSON(result) } : { message: Message.toJSON(result) }
    },
    async *stream(words) {
      for await (const event of client.sendMessageStream(requestOf(words), optionsOf(words))) yield jsonOf(event)
    },
    async get(id, historyLength) {
      const length = historyLength === undefined ? {} : { historyLength }
      return recordOf(Task.toJSON(await client.getTask({ id, tenant: '', ...length })))
    },
    list: async (asked) => recordOf(ListTasksResponse.toJSON(await client.listTasks(ListTasksRequest.fromJSON(asked)))),
    cancel: async (id) => recordOf(Task.toJSON(await client.cancelTask({ id, tenant: '', metadata: undefined }))),
    async *subscribe(id) {
      for await (const event of client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }))) yield jsonOf(event)
    },
  }
}

const jsonOf = (event: StreamResponse): Json => recordOf(StreamResponse.toJSON(event))

function requestOf({ text, parts, returnImmediately, historyLength, ...place }: Words): SendMessageRequest {
  const { messageId, taskId, contextId, metadata } = place
  const message = { messageId, taskId, contextId, metadata, role: 'ROLE_USER', parts: parts ?? [{ text }] }
  return SendMessageRequest.fromJSON({ message, configuration: { returnImmediately, historyLength } })
}

const optionsOf = ({ extensions }: Words): RequestOptions =>
  extensions ? { serviceParameters: ServiceParameters.create(withA2AExtensions(...extensions)) } : {}
