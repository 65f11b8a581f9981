/**
 * Sessions: how one begins, whose it is at a request, how it ends. Owns their lifetime and the audit of both ends. Does not
 * own how a person proves who they are (sign-in.ts) or cookies (http/cookies.ts).
 *
 * A disabled membership, a changed role, a session ended in another replica count at the next request: what is remembered of the
 * last one is a presumption, which the commit that acts on it holds against what is there.
 */
import { whoMay, type Permission, type Viewer } from '../domain/access.ts'
import type { Connection } from '../persistence/connection.ts'
import { findMember, type Identity, type LocalIds } from '../persistence/people.ts'
import type { Presumption } from '../persistence/presumptions.ts'
import { bucketOf } from '../persistence/rate-limits.ts'
import { deleteSession, findSessions, insertSession, meetArrivals, type GoodSessions } from '../persistence/sessions.ts'
import { act, type Act, type ActTools } from './act.ts'
import { GatheredReads } from './gathered-reads.ts'
import { Gathering, gatheringLimits, type Answers, type Asked } from './gathering.ts'
import { remember } from './remember.ts'
import { hashOf, isSecret, newSecret } from './secrets.ts'

export interface SessionRules {
  /** The slug of the organization that is served: sessions of another one count for nothing here. */
  readonly organization: string
  /** From sign-in to the end, whatever happens between. */
  readonly sessionSeconds: number
  /** The longest time between two requests; null: no such limit. */
  readonly idleSeconds: number | null
}

/** Somebody who comes with a session. */
export interface Arrival {
  readonly viewer: Viewer
  /** Whether their window had a place left for it. Nobody has one for what their role does not reach. */
  readonly hasPlace: boolean
}

interface Question {
  readonly tokenHash: string
  readonly permission: Permission
  readonly limit: number
}

/** What routes ask for whose commits ask again; people who came for it whose next request is presumed to be theirs; for how long. */
const presumable: Permission = 'operate'
const rememberedLimit = 10_000
const rememberedLongestMs = 600_000

/**
 * An idle limit is kept to a tenth of it, and one minute: a write at every request would be dearer than the request. Half of that
 * passes before a session is noted as in use again, and half while its person is presumed.
 */
const seenEveryMs = (idleSeconds: number): number => Math.min(30_000, idleSeconds * 50)

export class Sessions {
  readonly rules: SessionRules
  readonly #t: ActTools
  /** A change of what everybody may see makes every open stream look at once. */
  readonly #looks = new GatheredReads<Viewer>((tokenHashes) =>
    findSessions(this.#t.db.pool, tokenHashes, this.#good(this.#t.instruments.now())),
  )
  /** By token: who had a place when they last asked, and when, wall-clock milliseconds. The oldest first. */
  readonly #met = new Map<string, { readonly viewer: Viewer; readonly at: number }>()
  readonly #arrivals: Gathering<Question, Arrival | null>

  constructor(tools: ActTools, rules: SessionRules) {
    this.#t = tools
    this.rules = rules
    this.#arrivals = new Gathering((asked) => this.#meet(asked), gatheringLimits(tools.db))
  }

  /**
   * Begins a session for an identity that has an enabled membership, and ends the one that the browser had before. Returns
   * the token, which is nowhere else; null where there is no such membership.
   */
  async open(identity: Identity, previousToken: string | null): Promise<string | null> {
    return act(this.#t, async (tx, now) => {
      const member = await findMember(tx, this.rules.organization, identity)
      if (!member) return { result: null, acts: [] }
      const ended = previousToken === null ? [] : await endSession(tx, previousToken, now)
      const token = newSecret()
      const session = {
        tokenHash: hashOf(token),
        id: this.#t.instruments.newToken(),
        membershipId: member.membershipId,
        createdAt: now.toISOString(),
        expiresAt: new Date(now.getTime() + this.rules.sessionSeconds * 1000).toISOString(),
      }
      await insertSession(tx, session)
      return { result: token, acts: [...ended, { ...actOf('session.started', member, session.id), wakes: null }] }
    })
  }

  /**
   * Who comes with a token and asks for what `permission` covers, as their membership is now, and whether one of their `limit`
   * places of this minute was left. Null when the token opens nothing (any more). Who comes at once is met by one statement.
   */
  arrive(token: string, permission: Permission, limit: number): Promise<Arrival | null> {
    if (!isSecret(token)) return Promise.resolve(null)
    const tokenHash = hashOf(token)
    return this.#arrivals.ask(`${permission} ${tokenHash}`, { tokenHash, permission, limit })
  }

  /**
   * The same without asking, for a commit that asks: who came with the token before. Null where nobody did, or had no place, or
   * is to be noted as in use.
   */
  presume(token: string, permission: Permission, limit: number): Presumption | null {
    if (!isSecret(token)) return null
    const tokenHash = hashOf(token)
    const met = permission === presumable ? this.#met.get(tokenHash) : undefined
    if (!met) return null
    const now = this.#t.instruments.now()
    const { idleSeconds } = this.rules
    const rememberedMs = idleSeconds === null ? rememberedLongestMs : seenEveryMs(idleSeconds)
    if (Math.abs(now.getTime() - met.at) >= rememberedMs) return null
    const { viewer } = met
    const bucket = bucketOf(permission, viewer.userId)
    return { viewer, session: { tokenHash, good: this.#good(now) }, bucket, limit }
  }

  /** The person behind a token, who is neither counted nor taken to be at the keyboard: a stream that stays open asks. */
  async look(token: string): Promise<Viewer | null> {
    if (!isSecret(token)) return null
    return this.#looks.read(hashOf(token))
  }

  /** Ends a session and what it has open, and says so in the audit trail if it had not ended before. */
  async end(token: string): Promise<void> {
    if (isSecret(token)) this.#met.delete(hashOf(token))
    await act(this.#t, async (tx, now) => ({ result: undefined, acts: await endSession(tx, token, now) }))
  }

  async #meet(asked: readonly Asked<Question>[]): Promise<readonly Answers<Arrival | null>[]> {
    const now = this.#t.instruments.now()
    const { idleSeconds } = this.rules
    const seenBefore = idleSeconds === null ? null : new Date(now.getTime() - seenEveryMs(idleSeconds)).toISOString()
    const arrivals = asked.map(({ question, callers }) => {
      return { ...question, roles: whoMay(question.permission), wanted: callers }
    })
    const met = await meetArrivals(this.#t.db.direct, arrivals, this.#good(now), seenBefore)
    for (const [i, { question, callers }] of asked.entries()) {
      const person = met[i]
      // Where one of them had no place, the next has none.
      this.#remember(question, person?.granted === callers ? person.viewer : null, now)
    }
    return met.map((person) => (caller) => person && { viewer: person.viewer, hasPlace: caller < person.granted })
  }

  #remember({ tokenHash, permission }: Question, viewer: Viewer | null, now: Date): void {
    if (permission !== presumable) return
    if (viewer) remember(this.#met, tokenHash, { viewer, at: now.getTime() }, rememberedLimit)
    else this.#met.delete(tokenHash)
  }

  #good(now: Date): GoodSessions {
    const { organization: slug, idleSeconds } = this.rules
    const idleSince = idleSeconds === null ? null : new Date(now.getTime() - idleSeconds * 1000).toISOString()
    return { slug, at: now.toISOString(), idleSince }
  }
}

async function endSession(tx: Connection, token: string, now: Date): Promise<readonly Act[]> {
  const ended = isSecret(token) ? await deleteSession(tx, hashOf(token), now.toISOString()) : null
  return ended?.isAlive ? [{ ...actOf('session.ended', ended, ended.id), wakes: ended.membershipId }] : []
}

const actOf = (
  kind: 'session.started' | 'session.ended',
  { organizationId, personId, membershipId }: LocalIds,
  session: string,
) => ({ organizationId, kind, personId, subjectId: membershipId, data: { session } })

/** The local administrator's session has no beginning and no row: all there is to an end of it is the audit trail. */
export async function endLocalSession(tools: ActTools, viewer: Viewer): Promise<void> {
  const { organizationId, userId: personId, membershipId: subjectId } = viewer
  const ended = { organizationId, kind: 'session.ended', personId, subjectId, data: {}, wakes: null } as const
  await act(tools, () => Promise.resolve({ result: undefined, acts: [ended] }))
}
