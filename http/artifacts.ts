/**
 * Bytes of artifacts, to whoever may read a task that refers to them. An agent made them, so they are never shown: always a
 * download, without a type that a browser would open, in a sandbox.
 */
import { Readable } from 'node:stream'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { isReferenced } from '../persistence/artifacts.ts'
import { media } from './answers.ts'
import type { Door } from './door.ts'
import { Downloads } from './downloads.ts'
import { viewerOf } from './guard.ts'

const OfBytes = z.object({ digest: z.string() })
/** Of one person: a browser asks for six, some tools for a hundred. */
const downloadsAtOnce = 256
const sha256 = /^[0-9a-f]{64}$/

const schema = {
  summary: 'Bytes of an artifact',
  params: OfBytes,
  response: {
    200: media(['application/octet-stream'], 'The bytes, as a download.'),
    404: media(['text/plain'], 'Not found'),
  },
}

export const artifactRoutes: FastifyPluginCallbackZod<Door> = (app, { db, system }, done) => {
  const downloads = new Downloads(downloadsAtOnce)
  app.get('/api/artifacts/:digest', { config: { permission: 'read' }, schema }, async (request, reply) => {
    const { digest } = request.params
    const viewer = viewerOf(request)
    // Not a refusal: this one answer is plain text, and a digest that is none is not told from one that nobody knows.
    const known = sha256.test(digest) && (await isReferenced(db.pool, viewer, digest))
    if (known) await downloads.begin(viewer.userId, reply.raw)
    const file = known ? await system.artifacts.open(digest) : null
    if (known && !file) request.log.error({ digest }, 'stored bytes are missing or damaged')
    reply.header('content-security-policy', "default-src 'none'; sandbox")
    if (!file) return reply.code(404).type('text/plain; charset=utf-8').send('Not found')
    // Nobody takes the content of a HEAD, so it is not read again.
    const isWanted = request.method !== 'HEAD'
    if (!isWanted) file.bytes.destroy()
    return (
      reply
        .type('application/octet-stream')
        // No name: the page that offers the download knows what the agent called it.
        .header('content-disposition', 'attachment')
        .header('content-length', file.size)
        .send(isWanted ? file.bytes : Readable.from([]))
    )
  })
  done()
}
