/**
 * `GET /api/tasks/events`: the signal that something was committed in the organization, and nothing about what. A page asks
 * again what it shows; so a signal may come once too often, never not at all.
 */
import type { FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Bell } from '../actors/loop/bell.ts'
import { formatEvent } from '../a2a/sse.ts'
import { media } from './answers.ts'
import type { Door } from './door.ts'
import { sendEvents } from './event-stream.ts'
import { logged } from './refusals.ts'
import { Standing } from './standing.ts'
import { goneSignal } from './watch.ts'

const lifeMs = 55_000
const silenceMs = 15_000
/** A busy console is one signal ten times a second, not one a commit; fewer, the more pages it has: each looks again. */
const leastGapMs = 100
const signalsPerMs = 4

const signalFrame = (event: string): string => formatEvent({ event, data: '{}' })

async function* signals(door: Door, request: FastifyRequest, signal: AbortSignal): AsyncGenerator<string> {
  const { changes } = door.system
  const standing = new Standing(request, silenceMs)
  const bell = new Bell()
  let committed = false
  const deafen = changes.subscribe((change) => {
    if (change.organizationId !== null && change.organizationId !== standing.organizationId) return
    committed = true
    standing.hears(change)
    bell.ring()
  })
  try {
    yield `retry: 1000\n${signalFrame('ready')}`
    while (!signal.aborted) {
      await bell.wait(silenceMs, signal)
      if (signal.aborted) return
      const news = committed
      committed = false
      if (!(await isAdmitted(standing, request))) return
      yield signalFrame(news ? 'freshness' : 'resync')
      if (news) await new Bell().wait(Math.max(leastGapMs, changes.listeners / signalsPerMs), signal)
    }
  } finally {
    deafen()
  }
}

/** Somebody who may no more, or cannot be asked for, hears no more: the stream ends, and the page's next request says why. */
async function isAdmitted(standing: Standing, request: FastifyRequest): Promise<boolean> {
  try {
    await standing.viewer()
    return true
  } catch (error) {
    logged(error, request)
    return false
  }
}

const schema = {
  summary: 'That something was committed, and nothing about what',
  response: {
    200: media(
      ['text/event-stream'],
      'For 55 s, `data: {}` each: `ready` first; `freshness` after a commit; `resync` after 15 s of silence.',
    ),
  },
}

export const taskEventRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  app.get('/api/tasks/events', { config: { permission: 'read' }, schema }, (request, reply) => {
    const limit = { windowMs: lifeMs, until: [goneSignal(reply), door.drain] }
    return sendEvents(request, reply, limit, (signal) => signals(door, request, signal))
  })
  done()
}
