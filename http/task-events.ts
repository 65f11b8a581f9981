/**
 * `GET /api/tasks/events`: the signal that something was committed in the organization, and nothing about what. A page asks
 * again what it shows; so a signal may come once too often, never not at all.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Bell } from '../actors/bell.ts'
import { formatEvent } from '../a2a/sse.ts'
import type { Door } from './door.ts'
import { sendEvents } from './event-stream.ts'
import { viewerOf } from './guard.ts'
import { goneSignal } from './watch.ts'

const lifeMs = 55_000
const silenceMs = 15_000
/** A busy console is one signal ten times a second, not one a commit; fewer, the more pages it has: each looks again. */
const leastGapMs = 100
const signalsPerMs = 4

const signalFrame = (event: string): string => formatEvent({ event, data: '{}' })

async function* signals(door: Door, organizationId: string, signal: AbortSignal): AsyncGenerator<string> {
  const { changes } = door.system
  const bell = new Bell()
  let committed = false
  const deafen = changes.subscribe((change) => {
    if (change.organizationId !== null && change.organizationId !== organizationId) return
    committed = true
    bell.ring()
  })
  try {
    yield `retry: 1000\n${signalFrame('ready')}`
    while (!signal.aborted) {
      await bell.wait(silenceMs, signal)
      if (signal.aborted) return
      const news = committed
      committed = false
      yield signalFrame(news ? 'freshness' : 'resync')
      if (news) await new Bell().wait(Math.max(leastGapMs, changes.listeners / signalsPerMs), signal)
    }
  } finally {
    deafen()
  }
}

export const taskEventRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  app.get('/api/tasks/events', { config: { permission: 'read' } }, (request, reply) => {
    const { organizationId } = viewerOf(request)
    const limit = { windowMs: lifeMs, until: [goneSignal(reply), door.drain] }
    return sendEvents(request, reply, limit, (signal) => signals(door, organizationId, signal))
  })
  done()
}
