/**
 * Accepting for whoever sent a request, who may be presumed until its commit has asked (persistence/presumptions.ts), and what is told to
 * those for whom nothing was accepted. Does not own what is accepted (actors/acceptance.ts) or what the guard asks (guard.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Asked } from '../actors/acceptance.ts'
import { Unproven, type Accepted } from '../actors/command.ts'
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Door } from './door.ts'
import { prove, viewerOf } from './guard.ts'
import { letGoOfBody } from './large-bodies.ts'
import { settle } from './presumed-requests.ts'
import { answerFailure } from './refusals.ts'

/**
 * Accepts for whoever sent it, who may be presumed: their commit asks. Refuses as the guard would have, where they are not. A large
 * body is let go with that: the answer may take a minute more.
 */
export const acceptFor = (door: Door, request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<Accepted> =>
  accept(door, request, reply, asked).finally(() => letGoOfBody(request))

async function accept(door: Door, request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<Accepted> {
  const { commands } = door.system
  const { presumption } = request
  if (!presumption) return commands.accept(viewerOf(request), asked)
  try {
    return await commands.accept(presumption.viewer, asked, presumption)
  } catch (error) {
    if (!(error instanceof Unproven)) {
      // The commit has asked, and refuses; or nobody can tell who they are, and nothing is told but that.
      if (!(error instanceof Refusal)) reply.removeHeader('x-viewer-id')
      throw error
    }
  } finally {
    settle(request)
  }
  return commands.accept(await prove(request, reply), asked)
}

/** The viewer, for what is read before anything is accepted: asked for, where they were presumed. */
export const proven = async (request: FastifyRequest, reply: FastifyReply): Promise<Viewer> =>
  request.presumption ? prove(request, reply) : viewerOf(request)

/** Fastify's error handler: what went wrong before a commit has asked is only for who is known and counted. */
export async function answerProven(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  let told = error
  if (request.presumption)
    await prove(request, reply).catch((refused: unknown) => {
      told = refused
    })
  answerFailure(told, request, reply)
}
