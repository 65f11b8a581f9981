/**
 * The last published A2A 0.3 SDK as an agent. Owns nothing of the protocol: its JSON-RPC speaks the `kind` shapes, its
 * REST the ProtoJSON of the 0.3 proto (notes/a2a-protocol.md 2), and both are what real 0.3 agents put on the wire.
 */
import { randomUUID } from 'node:crypto'
import type { Message, Part, Task, TaskState, AgentCard } from 'a2a-sdk-v03'
import {
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from 'a2a-sdk-v03/server'
import { jsonRpcHandler, restHandler, UserBuilder } from 'a2a-sdk-v03/server/express'
import type { RequestHandler } from 'express'
import { perform, type PlotPart, type Stage } from './behaviours.ts'
import type { Stagehand } from './peer.ts'

export function routes0_3(card: AgentCard, script: Stagehand): { jsonrpc: RequestHandler; rest: RequestHandler } {
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executorOf(script))
  const userBuilder = UserBuilder.noAuthentication
  return {
    jsonrpc: jsonRpcHandler({ requestHandler, userBuilder }),
    rest: restHandler({ requestHandler, userBuilder }),
  }
}

function executorOf(script: Stagehand): AgentExecutor {
  const turns = new Map<string, { cancelled: AbortController; contextId: string }>()
  return {
    async execute(request, bus) {
      const turn = { cancelled: new AbortController(), contextId: request.contextId }
      turns.set(request.taskId, turn)
      const text = request.userMessage.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
      await perform(
        text,
        stageOn(bus, request, () => script.holdTurn(turn.cancelled.signal)),
      )
      if (!turn.cancelled.signal.aborted) bus.finished()
    },
    cancelTask(taskId, bus) {
      const turn = turns.get(taskId)
      publishStatus(bus, { taskId, contextId: turn?.contextId ?? '' }, 'canceled')
      bus.finished()
      turn?.cancelled.abort()
      return Promise.resolve()
    },
  }
}

interface Place {
  readonly taskId: string
  readonly contextId: string
}

function stageOn(bus: ExecutionEventBus, request: RequestContext, hold: Stage['hold']): Stage {
  const place = { taskId: request.taskId, contextId: request.contextId }
  let opened = request.task !== undefined
  const open = (): void => {
    if (opened) return
    opened = true
    bus.publish(newTask(place, request.userMessage))
  }
  return {
    isReply: request.task !== undefined,
    hold,
    status(state, text) {
      open()
      publishStatus(bus, place, state, text)
    },
    artifact({ artifactId, name, parts }, chunk) {
      open()
      bus.publish({
        kind: 'artifact-update',
        ...place,
        artifact: { artifactId, name, parts: parts.map(partOf) },
        append: chunk?.append ?? false,
        lastChunk: chunk?.last ?? true,
      })
    },
    direct(text) {
      bus.publish(agentMessage(text, { contextId: place.contextId }))
    },
  }
}

const newTask = ({ taskId, contextId }: Place, asked: Message): Task => ({
  kind: 'task',
  id: taskId,
  contextId,
  status: { state: 'submitted', timestamp: new Date().toISOString() },
  history: [asked],
})

const interrupting: ReadonlySet<TaskState> = new Set(['input-required', 'auth-required'])

function publishStatus(bus: ExecutionEventBus, place: Place, state: TaskState, text?: string): void {
  const message = text === undefined ? {} : { message: agentMessage(text, place) }
  const status = { state, timestamp: new Date().toISOString(), ...message }
  bus.publish({ kind: 'status-update', ...place, status, final: state !== 'working' && !interrupting.has(state) })
}

const agentMessage = (text: string, place: Partial<Place>): Message => ({
  kind: 'message',
  messageId: randomUUID(),
  role: 'agent',
  parts: [{ kind: 'text', text }],
  ...place,
})

function partOf(part: PlotPart): Part {
  if ('text' in part) return { kind: 'text', text: part.text }
  if ('data' in part) return { kind: 'data', data: part.data }
  const described = { name: part.filename, mimeType: part.mediaType }
  return { kind: 'file', file: 'raw' in part ? { bytes: part.raw, ...described } : { uri: part.url, ...described } }
}
