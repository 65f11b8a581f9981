/**
 * Who asks, for as long as an answer lasts. A stream outlives what its request was admitted by: a session ends, a membership is
 * disabled, a role changes, a grant is revoked. So whoever writes one asks again, here, and reads with the viewer of that moment.
 * Does not decide who somebody is (guard.ts) or what they may see (persistence/visibility.ts).
 */
import type { FastifyRequest } from 'fastify'
import { Bell } from '../actors/loop/bell.ts'
import { concerns, type Change } from '../actors/loop/changes.ts'
import type { Viewer } from '../domain/access.ts'
import { admitted, viewerOf } from './guard.ts'

/** Asked again this often without being told that anything changed: a session that is over by its time tells nobody. */
const askAgainMs = 5_000

export class Standing {
  readonly #request: FastifyRequest
  readonly #everyMs: number
  readonly #moving = new Bell()
  #viewer: Viewer
  #askedAt: number
  #hasMoved = false

  constructor(request: FastifyRequest, everyMs = askAgainMs) {
    this.#request = request
    this.#everyMs = everyMs
    this.#viewer = viewerOf(request)
    this.#askedAt = performance.now()
  }

  get organizationId(): string {
    return this.#viewer.organizationId
  }

  /** Somebody's access may have changed since who asks was asked. */
  get hasMoved(): boolean {
    return this.#hasMoved
  }

  /**
   * Hears of a commit of the organization. True where what this person may do may have changed by it: that is told under the
   * organization's own id, under their membership's (actors/act.ts), or by a change that names nobody.
   */
  hears({ subjects }: Change): boolean {
    const { organizationId, membershipId } = this.#viewer
    if (!concerns(subjects, organizationId) && !concerns(subjects, membershipId)) return false
    this.#hasMoved = true
    this.#moving.ring()
    return true
  }

  /** Waits, but not while what may be shown is in question. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#hasMoved) await this.#moving.wait(ms, signal)
  }

  /** The viewer as they are now; refuses as their next request would be. */
  async viewer(): Promise<Viewer> {
    if (!this.#hasMoved && performance.now() - this.#askedAt < this.#everyMs) return this.#viewer
    this.#hasMoved = false
    this.#askedAt = performance.now()
    this.#viewer = await admitted(this.#request)
    return this.#viewer
  }
}
