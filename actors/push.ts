/**
 * The work of push: register a callback for one task with its agent, and take it back when the task is over. Everything here
 * may be repeated: the configuration carries our own id. Does not decide when to try again (machines/push.ts) and does not
 * take deliveries (push-receipts.ts).
 */
import { decodeResponse, encodeRequest, otherForm } from '../a2a/client.ts'
import type { AgentError, Answer, WireRequest } from '../a2a/client.ts'
import { saysNotOffered } from '../a2a/errors.ts'
import type { Params } from '../a2a/operations.ts'
import { WireError } from '../a2a/wire.ts'
import { isTerminal } from '../domain/task.ts'
import { pushMachine, type RemoveOutcome, type RegisterOutcome } from '../machines/push.ts'
import type { ActorRef } from '../persistence/actors.ts'
import { openRegistration, registrationOf, type PushRegistration } from '../persistence/push.ts'
import { readFollowed, type FollowedTask } from '../persistence/tasks.ts'
import type { Done, Held, Kind, LeasedActor } from './loop/kinds.ts'
import { callbackUrl, credentialOf, type PushOptions } from './push-credential.ts'
import { errorWords } from './agent-words.ts'
import { encoded, openLine, type AgentLine, type LineTools } from './task-line.ts'

export interface PushTools extends LineTools {
  /** Null: push is not configured. Nothing is registered then, and what was is taken back. */
  readonly push: PushOptions | null
  readonly now: () => Date
}

/** A push configuration is some hundred bytes; an answer over this is none. */
const answerLimits = { maxBytes: 64 * 1024, deadlineMs: 10_000, connection: 'kept' } as const

const registered = (output: RegisterOutcome): Done => ({ output })
const closed = (output: RemoveOutcome): Done => ({ output })
const ended = closed({ kind: 'ended' })
const missed = closed({ kind: 'missed' })
const notConfigured = 'Push delivery is not configured.'

export class Pushing {
  readonly #t: PushTools

  constructor(tools: PushTools) {
    this.#t = tools
  }

  async register({ ref }: LeasedActor, held: Held): Promise<Done> {
    const { push, db } = this.#t
    if (!push) return registered({ kind: 'refused', reason: notConfigured })
    const task = await readFollowed(db.pool, ref.id)
    if (!task) return registered({ kind: 'gone' })
    // It ended before it had this actor, which nobody told.
    if (isTerminal(task.state)) return registered({ kind: 'over' })
    const line = await openLine(this.#t, task, held.signal)
    if ('kind' in line) {
      if (line.kind === 'gone') return registered(line)
      return registered({ kind: 'missed', reason: line.message })
    }
    if (!line.pushNotifications) return registered({ kind: 'unsupported' })
    const wanted = { id: this.#t.newToken(), taskId: task.id, tenant: line.endpoint.tenant ?? '' }
    // Kept before the agent hears of it: its first call may come before its answer.
    const registration = await openRegistration(db.pool, wanted, this.#t.now().toISOString())
    const answer = await this.#ask(line, 'pushCreate', configuration(push, registration, task), held)
    return registered(outcomeOf(answer))
  }

  async remove({ ref }: LeasedActor, held: Held): Promise<Done> {
    const registration = await registrationOf(this.#t.db.pool, ref.id)
    if (!registration) return ended
    const found = await this.#found(ref, held)
    if ('output' in found) return found
    const { task, line } = found
    const answer = await this.#ask(line, 'pushDelete', { taskId: task.remoteId, id: registration.id }, held)
    // A refusal is an end, too: there is nothing to take back, or nothing that can be.
    return answer.kind === 'ok' || answer.kind === 'refused' ? ended : missed
  }

  async #found(ref: ActorRef, held: Held): Promise<Done | { readonly task: FollowedTask; readonly line: AgentLine }> {
    const task = await readFollowed(this.#t.db.pool, ref.id)
    const line = task && (await openLine(this.#t, task, held.signal))
    if (!task || !line) return ended
    if ('kind' in line) return line.kind === 'gone' ? ended : missed
    return { task, line }
  }

  /** A refusal that is no verdict on push may be one of the form only: then the other is tried, and people see what was said to both. */
  async #ask<O extends 'pushCreate' | 'pushDelete'>(
    line: AgentLine,
    operation: O,
    params: Params[O],
    held: Held,
  ): Promise<Asked> {
    const requestId = this.#t.newToken()
    const request = encoded(() => encodeRequest(line.endpoint, operation, params, { requestId }))
    if (request instanceof WireError) return { kind: 'missed', message: request.message }
    const first = await this.#say(line, request, held)
    if (first.kind !== 'refused' || isUnsupported(first.error)) return first
    const other = otherForm(request, first.error.httpStatus)
    if (!other) return first
    const second = await this.#say(line, other, held)
    return second.kind === 'refused' ? { ...second, error: bothSaid(first.error, second.error) } : second
  }

  /**
   * `missed`: nothing is known of what the agent did. What a success says is not read, only that it is one: agents echo a
   * configuration in every shape, or not at all, and whether they keep it shows when they call.
   */
  async #say(line: AgentLine, request: WireRequest, held: Held): Promise<Asked> {
    const prepared = await this.#t.door.prepare(line.agentId, request, held.signal)
    if (prepared.kind === 'unsent') return { kind: 'missed', message: prepared.message }
    const sent = await prepared.exchange(answerLimits, held.signal)
    if (sent.kind !== 'answered') return { kind: 'missed', message: sent.message }
    const { status, contentType } = sent
    const body = new TextDecoder().decode(sent.body)
    const answer = decodeResponse(line.endpoint, 'pushDelete', { status, contentType, body }, request.requestId)
    return { ...answer, denial: prepared.denial }
  }
}

/** `denial`: what a 401 or 403 means, by what went along. */
type Asked = (Answer<null> & { readonly denial: string }) | { readonly kind: 'missed'; readonly message: string }

/** Both forms of the credential: senders differ in which of the two they use, and none uses both. */
function configuration(push: PushOptions, registration: PushRegistration, task: FollowedTask): Params['pushCreate'] {
  const credentials = credentialOf(push, registration.id)
  return {
    taskId: task.remoteId,
    id: registration.id,
    url: callbackUrl(push, registration.id),
    token: credentials,
    authentication: { scheme: 'Bearer', credentials },
  }
}

function outcomeOf(answer: Asked): RegisterOutcome {
  if (answer.kind === 'ok') return { kind: 'registered' }
  if (answer.kind === 'refused') {
    if (isUnsupported(answer.error)) return { kind: 'unsupported' }
    return { kind: 'refused', reason: reasonOf(answer.error, answer.denial) }
  }
  return { kind: 'missed', reason: answer.message }
}

/**
 * The agent says that it has no such thing, whatever its card says. A status alone does not: a 404 is also what an ingress says
 * while it has no agent to lead to.
 */
const isUnsupported = (error: AgentError): boolean =>
  error.reason === 'PUSH_NOTIFICATION_NOT_SUPPORTED' || saysNotOffered(error)

const bothSaid = (first: AgentError, second: AgentError): AgentError =>
  first.message === second.message
    ? second
    : { ...second, message: `${first.message} (In the other form of 0.3: ${second.message})` }

const reasonOf = (error: AgentError, denial: string): string =>
  error.httpStatus === 401 || error.httpStatus === 403 ? denial : errorWords(error)

export const pushKind = (pushing: Pushing): Kind => ({
  machine: pushMachine,
  pollMs: 500,
  leaseMs: 15_000,
  concurrency: 16,
  laneLimit: 4,
  claimLimit: 8,
  work: {
    register: (actor, held) => pushing.register(actor, held),
    remove: (actor, held) => pushing.remove(actor, held),
  },
  repeatable: new Set(['register', 'remove']),
  mayMiss: 'anything',
})
