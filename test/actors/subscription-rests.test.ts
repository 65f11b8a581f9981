/**
 * A stream is given up where the agent waits for a person, whichever word it has for that, although it would have kept the stream
 * open; and a reply opens it again [console-http-api.md: "Background loops"]. The witness is an agent of this file's own, which
 * ends no stream by itself.
 */
import type { ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bothDatabases } from '../support/databases.ts'
import { interfaceEntry } from '../support/peers/card.ts'
import { operationOf, recordOf } from '../support/peers/operations.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'

const State = z.object({ state: z.string() })

/** Knows one task, works on it until told otherwise, and works on whenever somebody writes. */
async function startPatientAgent(taskId: string) {
  const task = { id: taskId, contextId: 'c', status: { state: '', timestamp: '' } }
  const open = new Set<{ readonly response: ServerResponse; readonly id: unknown }>()
  let opened = 0
  const turn = (state: string): void => {
    task.status = { state: `TASK_STATE_${state}`, timestamp: new Date().toISOString() }
  }
  const event = (id: unknown, result: object): string => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`
  const listening = await listenOnLoopback((request, response) => {
    const reply = (body: unknown): void =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'GET') return reply(card)
    const answer = async (): Promise<void> => {
      const body = await json(request)
      const { id } = recordOf(body)
      const result = (value: unknown): void => reply({ jsonrpc: '2.0', id, result: value })
      const { method } = operationOf('POST', '/', body)
      if (method === 'SendMessage') {
        turn('WORKING')
        return result({ task })
      }
      if (method === 'ListTasks') return result({ tasks: [task], nextPageToken: '', pageSize: 1, totalSize: 1 })
      if (method !== 'SubscribeToTask') return result(task)
      const stream = { response, id }
      open.add(stream)
      opened += 1
      response.on('close', () => open.delete(stream))
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event(id, { task }))
    }
    answer().catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))))
  })
  const card = {
    name: 'Patient agent',
    description: 'Ends no stream.',
    version: '1.0.0',
    supportedInterfaces: [interfaceEntry(`${listening.origin}/rpc`, 'JSONRPC', undefined)],
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'wait', name: 'Wait', description: 'Waits.', tags: ['test'] }],
  }
  return {
    cardUrl: `${listening.origin}/card.json`,
    /** Streams that somebody holds, and how many were opened so far. */
    streams: () => ({ held: open.size, opened }),
    /** Goes over to a state, and tells it to all who listen. */
    say: (state: string): void => {
      turn(state)
      const { id, contextId, status } = task
      for (const stream of open)
        stream.response.write(event(stream.id, { statusUpdate: { taskId: id, contextId, status } }))
    },
    close: () => listening.close(),
  }
}

describe.each(bothDatabases)('a held stream on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())
  const subscription = (localId: string) => (): Promise<string | null> =>
    running.db.pool.maybeOneFirst(sql.type(State)`
      select snapshot->>'value' as state from actor where kind = 'subscription' and id = ${localId}`)

  it.each(['INPUT_REQUIRED', 'AUTH_REQUIRED'])(
    'is closed at %s, is opened by a reply only, and closed at the end',
    async (waiting) => {
      const agent = await startPatientAgent(`task ${waiting}`)
      const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
      const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
      const { localId = '', taskId = '' } = result ?? {}
      await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })

      agent.say(waiting)
      await running.task(localId, ({ state }) => state === `TASK_STATE_${waiting}`)
      await expect.poll(agent.streams).toEqual({ held: 0, opened: 1 })
      await expect.poll(subscription(localId)).toBe('resting')

      await running.finished((await running.send(agentId, { text: 'Go on.', taskId: taskId ?? '' })).id)
      await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })

      agent.say('COMPLETED')
      await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
      await expect.poll(agent.streams).toEqual({ held: 0, opened: 2 })
      await expect.poll(subscription(localId)).toBeNull()
      await agent.close()
    },
  )
})
