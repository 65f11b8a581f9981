/**
 * The published A2A 1.0 SDK as an agent: its executor and its routers. Owns nothing of the protocol: every byte on the
 * wire is the SDK's, which is what makes it a judge of ours.
 */
import { randomUUID } from 'node:crypto'
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk'
import {
  AgentEvent,
  DefaultExecutionEventBusManager,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server'
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server'
import { jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import type { RequestHandler } from 'express'
import { perform, stateOf1_0, type Stage } from './behaviours.ts'
import type { Stagehand } from './peer.ts'

/** The card's JSON is written by us: the SDK's own handler leaks its internal shape (notes/a2a-protocol.md 3.2). */
export function routes1_0(
  card: unknown,
  script: Stagehand,
  /** Whether it speaks 0.3 to whoever does not ask for 1.0. */
  legacyCompat = { enabled: false },
): { jsonrpc: RequestHandler; rest: RequestHandler } {
  const callbacks = new InMemoryPushNotificationStore()
  const requestHandler = new DefaultRequestHandler(
    AgentCard.fromJSON(card),
    new InMemoryTaskStore(),
    executorOf(script),
    new DefaultExecutionEventBusManager(),
    callbacks,
    // Otherwise it calls in the words of 1.0, whatever was spoken when it was told where to.
    legacyCompat.enabled ? createLegacyAwarePushNotificationSender(callbacks) : undefined,
  )
  const userBuilder = UserBuilder.noAuthentication
  return {
    jsonrpc: jsonRpcHandler({ requestHandler, userBuilder, legacyCompat }),
    rest: restHandler({ requestHandler, userBuilder, legacyCompat }),
  }
}

function executorOf(script: Stagehand): AgentExecutor {
  const turns = new Map<string, { cancelled: AbortController; contextId: string }>()
  return {
    async execute(request, bus) {
      const turn = { cancelled: new AbortController(), contextId: request.contextId }
      turns.set(request.taskId, turn)
      const text = request.userMessage.parts.map((p) => (p.content?.$case === 'text' ? p.content.value : '')).join('')
      await perform(
        text,
        stageOn(bus, request, () => script.holdTurn(turn.cancelled.signal)),
      )
      if (!turn.cancelled.signal.aborted) bus.finished()
    },
    cancelTask(taskId, bus) {
      const turn = turns.get(taskId)
      bus.publish(statusEvent(taskId, turn?.contextId ?? '', 'TASK_STATE_CANCELED'))
      bus.finished()
      turn?.cancelled.abort()
      return Promise.resolve()
    },
  }
}

function stageOn(bus: ExecutionEventBus, request: RequestContext, hold: Stage['hold']): Stage {
  const { taskId, contextId } = request
  // The SDK wants a Task or a Message first in every turn, and no second Task after it.
  let opened = false
  const open = (): void => {
    if (opened) return
    opened = true
    bus.publish(AgentEvent.task(request.task ?? newTask(taskId, contextId)))
  }
  return {
    isReply: request.task !== undefined,
    hold,
    status(state, text) {
      open()
      bus.publish(statusEvent(taskId, contextId, stateOf1_0(state), text))
    },
    artifact(artifact, place) {
      open()
      const event = { taskId, contextId, artifact, append: place?.append ?? false, lastChunk: place?.last ?? true }
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)))
    },
    direct(text) {
      bus.publish(AgentEvent.message(Message.fromJSON(agentMessage(text, { contextId }))))
    },
  }
}

const newTask = (id: string, contextId: string): Task =>
  Task.fromJSON({ id, contextId, status: { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() } })

function statusEvent(taskId: string, contextId: string, state: string, text?: string) {
  const message = text === undefined ? {} : { message: agentMessage(text, { taskId, contextId }) }
  const status = { state, timestamp: new Date().toISOString(), ...message }
  return AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status }))
}

const agentMessage = (text: string, place: { taskId?: string; contextId: string }) => ({
  messageId: randomUUID(),
  role: 'ROLE_AGENT',
  parts: [{ text }],
  ...place,
})
