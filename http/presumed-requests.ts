/**
 * Requests whose sender is presumed: that none of them is answered before somebody has asked, and how many of one person are under
 * way. Does not own what is presumed (persistence/presumptions.ts), who may be (guard.ts), or who asks (accepting.ts).
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Presumption } from '../persistence/presumptions.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What `identity` rests on, where nobody has asked the database yet. */
    presumption: (Presumption & { readonly settled: () => void }) | null
  }
}

/** Of one person. Whoever sends more at once is asked for first, and finds the limit of their minute at the door. */
const atOnce = 64

export class PresumedRequests {
  readonly #underWay = new Map<string, number>()

  constructor(app: FastifyInstance) {
    app.decorateRequest('presumption', null)
    app.addHook('onSend', (request, _reply, payload, next) => {
      // A route that answers before its commit has asked would tell anybody. What is thrown has asked (server.ts).
      if (request.presumption === null) return next(null, payload)
      next(new Error(`${request.method} ${request.url} answers somebody who is only presumed.`))
    })
    app.addHook('onResponse', (request, _reply, done) => {
      settle(request)
      done()
    })
  }

  /** False where too many of the same person are under way. */
  enter(request: FastifyRequest, presumption: Presumption): boolean {
    const { bucket, viewer } = presumption
    const count = this.#underWay.get(bucket) ?? 0
    if (count >= atOnce) return false
    this.#underWay.set(bucket, count + 1)
    request.identity = viewer
    request.presumption = { ...presumption, settled: () => this.#leave(bucket) }
    return true
  }

  #leave(bucket: string): void {
    const left = (this.#underWay.get(bucket) ?? 1) - 1
    if (left > 0) this.#underWay.set(bucket, left)
    else this.#underWay.delete(bucket)
  }
}

/** Nothing is presumed of a request any more: its commit has asked, or the guard does, or nobody can be asked. */
export function settle(request: FastifyRequest): void {
  request.presumption?.settled()
  request.presumption = null
}
