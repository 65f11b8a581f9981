/**
 * The work of a command: discover, then deliver exactly once per lease. What is sent is what was accepted: the saved
 * message id, the saved body. Tells honestly what is known afterwards; does not decide what follows (machines/command.ts).
 */
import { spokenInterfaces, type AgentCard } from '../a2a/card.ts'
import type { AgentError, WireRequest } from '../a2a/client.ts'
import { tableError } from '../a2a/errors.ts'
import type { Endpoint } from '../a2a/operations.ts'
import { WireError } from '../a2a/wire.ts'
import { wordsOf } from '../domain/command-body.ts'
import { commandErrors } from '../domain/command.ts'
import type { ReportingCommand } from '../domain/fact.ts'
import { doubtOf, lostAnswers, unstoredAnswer, type LostAnswer } from '../domain/lost-answer.ts'
import { refusals } from '../domain/refusal.ts'
import { titleFrom } from '../domain/task.ts'
import type { DeliverOutcome, DiscoverOutcome } from '../machines/command.ts'
import { ArtifactsUnavailable, type ArtifactStore } from '../persistence/artifacts.ts'
import { actorKey, type ActorRef } from '../persistence/actors.ts'
import {
  readDeliveries,
  readDelivery,
  readDestinations,
  type Delivery,
  type Destination,
  type SavedDelivery,
} from '../persistence/commands.ts'
import type { Database } from '../persistence/database.ts'
import { readTaskVersion } from '../persistence/tasks.ts'
import { errorWords, plainWords } from './agent-words.ts'
import { aborted, Bell } from './loop/bell.ts'
import type { AgentDoor, Prepared, Unsent } from './credentials.ts'
import { encodeDelivery, sentWords, type Encoded, type OwnUris } from './delivery-request.ts'
import type { Discovery, FoundAgent, MissedCard } from './discovery.ts'
import { GatheredReads } from './gathered-reads.ts'
import type { Done, Held, LeasedActor } from './loop/kinds.ts'
import { LargeAnswers } from './large-answers.ts'
import { LargeSends, type LargeSendsLimits } from './large-sends.ts'
import type { Log } from './log.ts'
import { aheadOf, tellAhead, type Piece } from './long-history.ts'
import { LeaseLost } from './loop/lease.ts'
import { unlessLost, whileHeld } from './loop/outlast.ts'
import { crossesSkill } from './skill-boundary.ts'
import { limits, type Lost, type OutboundCode, type Sent } from './outbound.ts'
import { remember } from './remember.ts'
import type { Blob, SeenEvent } from './threads/messages.ts'
import type { ParserPool } from './threads/pool.ts'

export interface DeliveryTools extends OwnUris {
  readonly db: Database
  readonly discovery: Discovery
  readonly door: AgentDoor
  readonly pool: ParserPool
  readonly artifacts: ArtifactStore
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
  readonly log: Log
  readonly largeSends?: Partial<LargeSendsLimits>
}

const interfaceGone = 'The selected interface is no longer advertised by the Agent Card.'
const messageLimit = 2_000
/** Commands between their discovery and their delivery, in one process. */
const selectedLimit = 10_000
/** Some 43 s of pauses. */
const keepsLimit = 13
/** A place is kept for as long as an answer takes to come, and be parsed and kept. */
const roomMs = 2 * limits.answer.deadlineMs
const looksLimit = 3
const lookPauseMs = 1000
/**
 * How long what is known of an agent will do for a delivery. A commit whose fate had to be asked for, or a card that was waited
 * for, takes longer: an administrator who removed the agent meanwhile is then right.
 */
const knownForMs = 1_000

const found = (output: DiscoverOutcome): Done => ({ output })
const ended = (output: DeliverOutcome): Done => ({ output })

/**
 * What the commit that accepted a command wrote, and what it found of the agent: when delivering begins with that same
 * commit, reading it back would bring the same, a statement and a round trip later.
 */
export class JustAccepted {
  readonly agentId: string
  /** About so many: those of a body of words alone. */
  readonly bytes: number
  #delivery: (() => Delivery | null) | null

  constructor({ agentId, bytes }: Weight, delivery: () => Delivery | null) {
    this.agentId = agentId
    this.bytes = bytes
    this.#delivery = delivery
  }

  /** Once: nothing of it is kept here afterwards. Null where the commit's answer was lost, too, and with it what was found. */
  take(): Delivery | null {
    const delivery = this.#delivery?.() ?? null
    this.#delivery = null
    return delivery
  }
}

interface Weight {
  readonly agentId: string
  readonly bytes: number
}

/** A command that is to be delivered, and what it weighs. */
interface Arrival extends Weight {
  /** What is known of it already, to be asked for once; null: it is to be read. */
  readonly take: () => Known | null
}

/** A command as it is to be delivered, and since when that is known: monotonic milliseconds. */
interface Known {
  readonly delivery: Delivery | null
  readonly knownAt: number
}

/** What went out, for who reads what came back. */
interface Attempt {
  readonly ref: ActorRef
  readonly delivery: Delivery
  readonly card: FoundAgent
  readonly request: Encoded
  /** The sentence for an agent that refuses the credential. */
  readonly denial: string
  /** The version of the task that is spoken to, before it was. */
  readonly overrules: number | null
}

export class Deliveries {
  readonly #t: DeliveryTools
  readonly #saved: GatheredReads<SavedDelivery>
  readonly #destinations: GatheredReads<Destination>
  readonly #largeAnswers = new LargeAnswers()
  readonly #largeSends: LargeSends
  /** By command: the interface that its discovery chose here, until it is delivered. */
  readonly #selected = new Map<string, Endpoint>()

  constructor(tools: DeliveryTools) {
    this.#t = tools
    this.#largeSends = new LargeSends(tools.largeSends)
    this.#saved = new GatheredReads((ids) => readDeliveries(tools.db.pool, ids, this.#largeSends.largeBytes))
    this.#destinations = new GatheredReads((ids) => readDestinations(tools.db.pool, ids))
  }

  /**
   * Nothing leaves for the agent but the request for its card, so this may be done again. The database is read before each look, so
   * that who waits for it asks the agent nothing.
   */
  async discover({ ref, carry }: LeasedActor, held: Held): Promise<Done> {
    // An agent may take its time with its card, and what is sent is read once it is known.
    if (carry instanceof JustAccepted) carry.take()
    const destination = await this.#destinations.read(ref.id)
    if (!destination?.agentEnabled) return found({ kind: 'unavailable' })
    // A drain does not wait for an agent's card; the search itself goes on for whoever else asked for it.
    const card = await Promise.race([this.#t.discovery.forDispatch(agentOf(destination)), aborted(held.signal)])
    if (card.kind === 'found') {
      this.#select(ref.id, card.endpoint)
      return found({ kind: 'found' })
    }
    return found({ kind: card.permanent ? 'refused' : 'missed', message: card.message })
  }

  /** Before a large body is read there is to be room for it. Nothing has been done until then. */
  async deliver(actor: LeasedActor, held: Held): Promise<Done> {
    const { ref } = actor
    const arrival = this.#carried(actor) ?? (await this.#look(ref, held))
    if (!arrival) return ended({ kind: 'unsent', message: commandErrors.unavailable })
    const place = this.#largeSends.place(arrival.agentId, arrival.bytes)
    try {
      if (!place.isInside) {
        arrival.take()
        await place.enter(ref, held)
      }
      return await this.#attempt(ref, arrival.take() ?? (await this.#read(ref, held)), held)
    } finally {
      place.leave()
    }
  }

  /** The lease holder's one attempt. Every path that wrote a byte and saw no answer ends in `unknown`. */
  async #attempt(ref: ActorRef, { delivery, knownAt }: Known, held: Held): Promise<Done> {
    // An agent that was removed since gets nothing any more; since its acceptance, where that came with this very commit.
    if (!delivery?.agentEnabled) return ended({ kind: 'unsent', message: commandErrors.unavailable })
    const card = await this.#cardOf(ref, delivery, held)
    if (card.kind === 'missed') return ended({ kind: 'unsent', message: card.message })
    const known = this.#isRecent(knownAt) ? delivery : await this.#destination(ref, held)
    if (!known?.agentEnabled) return ended({ kind: 'unsent', message: commandErrors.unavailable })
    const selected = this.#selected.get(ref.id) ?? card.endpoint
    this.#selected.delete(ref.id)
    if (selected !== card.endpoint && !advertises(card.card, selected))
      return ended({ kind: 'unsent', message: interfaceGone })
    const request = encodeDelivery(this.#t, { ...card, endpoint: selected }, delivery, ref.id)
    if (request instanceof WireError) return ended({ kind: 'unsent', message: printable(request.message) })
    const overrules = await this.#versionBefore(delivery)
    const prepared = await this.#prepare(ref, known, request.wire, held)
    if (prepared.kind === 'unsent') return ended({ kind: 'unsent', message: prepared.message })
    const guest = this.#largeAnswers.guest(delivery.agentId)
    try {
      const room = { read: guest.read, withinMs: roomMs }
      // Asked last of all: a process that stood still may have lost its lease, and another may have given its verdict.
      let isHeld = true
      const mayBegin = (): boolean => (isHeld = held.isHeld())
      const bounds = { ...limits.answer, connection: 'warm', room, mayBegin } as const
      const sent = await prepared.exchange(bounds, held.signal)
      if (sent.kind === 'unsent' && !(isHeld && held.isHeld())) throw new LeaseLost(ref)
      guest.whole()
      return await this.#understand(sent, { ref, delivery, card, request, denial: prepared.denial, overrules }, held)
    } catch (error) {
      // It has answered, and its work is not undone by a full disk here: whoever sent it is to know that much.
      if (!(error instanceof ArtifactsUnavailable)) throw error
      this.#t.log.error({ actor: actorKey(ref), err: error }, 'an answer is lost: its files cannot be stored')
      return ended({ kind: 'unknown', cause: unstoredAnswer(error.code) })
    } finally {
      guest.leave()
    }
  }

  async #understand(sent: Sent, attempt: Attempt, held: Held): Promise<Done> {
    const { delivery, card, request, denial } = attempt
    if (sent.kind === 'unsent') return ended({ kind: 'unsent', message: sent.message })
    if (sent.kind === 'lost') return ended({ kind: 'unknown', cause: lostWords(sent) })
    const operation = delivery.body.action === 'send' ? 'send' : 'cancel'
    const reply = { status: sent.status, contentType: sent.contentType, body: sent.body }
    const { pool } = this.#t
    const parse = () => pool.parseReply(request.endpoint, operation, reply, request.wire.requestId)
    // Also without a lease: the agent has answered, and who gave up its turn could only say that this is in doubt.
    const event = await pool.heavy.take({ bytes: reply.body.length, agentId: delivery.agentId, isAnswer: true }, parse)
    if (event.kind === 'refused' && mayHaveWorked(event.error))
      return ended({ kind: 'unknown', cause: doubtOf(sent.status, event.error.code, printable(event.error.message)) })
    if (event.kind === 'refused') return ended({ kind: 'refused', message: refusalOf(event.error, denial) })
    if (event.kind === 'invalid')
      return ended({
        kind: 'unknown',
        cause: doubtOf(sent.status, null, printable(event.message) || 'It could not be read.'),
      })
    // A message may have become another task: that is what the agent made of it. Of the one to be canceled this says nothing.
    if (operation === 'cancel' && event.observation.taskId !== delivery.body.taskId)
      return ended({ kind: 'unknown', cause: lostAnswers.another })
    const asked = { ...delivery, tenant: delivery.body.tenant, remoteTaskId: delivery.body.taskId ?? null }
    if (await whileHeld(held, () => crossesSkill(this.#t, card.card, asked, event.observation)))
      return ended({ kind: 'crossed', message: refusals['skill.crossed'] })
    await this.#keep(attempt.ref, event.blobs, held)
    return this.#replied(attempt, event, held)
  }

  /**
   * What an agent answers to a message is newer than what was known when it was sent, whatever its clock says. Null for a first word, and
   * where it cannot be read: the clock decides then.
   */
  async #versionBefore({ agentId, body }: Delivery): Promise<number | null> {
    if (body.action !== 'send' || body.taskId === undefined) return null
    const task = { agentId, tenant: body.tenant, remoteId: body.taskId }
    return readTaskVersion(this.#t.db.pool, task).catch(() => null)
  }

  /** What has no binding needs none read: that was seen a second ago at most, in the commit that accepted. */
  #prepare(
    ref: ActorRef,
    { bound, agentId }: Destination,
    request: WireRequest,
    held: Held,
  ): Promise<Prepared | Unsent> {
    const { door } = this.#t
    if (!bound) return Promise.resolve(door.unbound(request))
    const preparing = unlessLost(ref, held, () => door.prepare(agentId, request, held.signal))
    return Promise.race([preparing, aborted(held.signal)])
  }

  #isRecent(knownAt: number): boolean {
    return this.#t.monotonic() - knownAt < knownForMs
  }

  /** What came with the commit, while it is recent. */
  #carried({ carry, trustedFrom }: LeasedActor): Arrival | null {
    if (!(carry instanceof JustAccepted)) return null
    if (!this.#isRecent(trustedFrom)) {
      carry.take()
      return null
    }
    const take = (): Known | null => {
      const delivery = carry.take()
      return delivery && { delivery, knownAt: trustedFrom }
    }
    return { agentId: carry.agentId, bytes: carry.bytes, take }
  }

  /** Together with others, and so without its body where that is large. */
  async #look(ref: ActorRef, held: Held): Promise<Arrival | null> {
    const knownAt = this.#t.monotonic()
    const saved = await unlessLost(ref, held, () => this.#saved.read(ref.id))
    if (!saved) return null
    const { agentId, bytes, body } = saved
    return { agentId, bytes, take: () => body && { delivery: { ...saved, body }, knownAt } }
  }

  /** Alone, however large it is. */
  async #read(ref: ActorRef, held: Held): Promise<Known> {
    const knownAt = this.#t.monotonic()
    return { delivery: await unlessLost(ref, held, () => readDelivery(this.#t.db.pool, ref.id)), knownAt }
  }

  #destination(ref: ActorRef, held: Held): Promise<Destination | null> {
    return unlessLost(ref, held, () => this.#destinations.read(ref.id))
  }

  /** Where another process delivers, it chooses by the card that it sees. */
  #select(commandId: string, endpoint: Endpoint): void {
    remember(this.#selected, commandId, endpoint, selectedLimit)
  }

  /** The card it was discovered by, or another look: three at most, as before dispatch. */
  async #cardOf(ref: ActorRef, delivery: Delivery, held: Held): Promise<FoundAgent | MissedCard> {
    for (let attempt = 1; ; attempt++) {
      const looking = unlessLost(ref, held, () => this.#t.discovery.forDelivery(agentOf(delivery)))
      const card = await Promise.race([looking, aborted(held.signal)])
      if (card.kind === 'found' || card.permanent || attempt === looksLimit) return card
      await new Bell().wait(lookPauseMs * attempt, held.signal)
    }
  }

  /**
   * Bytes are on disk before what names them is told. The agent has answered, so a full disk is waited for, 50 s at most:
   * after that the outcome is in doubt, and its cause says why.
   */
  async #keep(ref: ActorRef, blobs: readonly Blob[], held: Held): Promise<void> {
    const waits = (err: unknown): void =>
      this.#t.log.warn({ actor: actorKey(ref), err }, 'an answer waits: its files cannot be stored')
    await whileHeld(held, () => this.#t.artifacts.putAll(blobs), { triesLimit: keepsLimit, waits })
  }

  async #replied({ ref, delivery, overrules }: Attempt, event: SeenEvent, held: Held): Promise<Done> {
    const { body, agentId } = delivery
    const { observation: reply, long } = event
    const of = { agentId, tenant: body.tenant }
    // A task that the reply brings is not there before its commit. Nothing of it has to be looked up in that.
    const isKnown = body.taskId !== undefined && reply.taskId === body.taskId
    const about = { ...of, source: 'poll' as const, command: null, remoteTaskId: reply.taskId }
    const asked = overrules ?? undefined
    // An agent says it once: each piece is waited for as the answer itself is.
    const tell = (piece: Piece): Promise<void> => whileHeld(held, () => held.record({ ...about, ...piece }))
    const known = isKnown ? await tellAhead(event, asked, tell) : asked
    const sent = body.action === 'send' ? sentWords(delivery, reply) : null
    await this.#keep(ref, sent?.blobs ?? [], held)
    const command: ReportingCommand = {
      id: ref.id,
      title: titleFrom(wordsOf(body)),
      skillId: delivery.skillId,
      referenceTaskIds: body.config?.referenceTaskIds ?? [],
      sent: sent?.observation ?? null,
      reply: long?.whole ?? reply.event,
      continues: (body.action === 'send' ? body.taskId : undefined) ?? null,
    }
    const report = {
      ...of,
      source: 'reply' as const,
      command,
      remoteTaskId: null,
      observations: isKnown ? [reply] : [...aheadOf(event), reply],
      // Own words stand before the pieces of the answer, and are no others than those that it shows: they left before.
      ...(asked !== undefined && known !== undefined && { asked, overrules: known }),
    }
    return { output: { kind: 'replied' }, told: [{ type: 'agent.reported', report }] }
  }
}

/** A card that changed in between may have moved the agent: what was chosen for a command is not replaced behind its back. */
const advertises = (card: AgentCard, { url, binding, version }: Endpoint): boolean =>
  spokenInterfaces(card).some((each) => each.url === url && each.binding === binding && each.version === version)

const agentOf = ({ agentId, cardUrl }: Destination) => ({ id: agentId, cardUrl })

/**
 * Only a refusal before any work proves that nothing was done: one of A2A's or JSON-RPC's own table, or HTTP's word that the request
 * was at fault; not what the table calls a failure inside. Any other code is a server's own (-32000 to -32099), and servers say it of
 * what went wrong in mid-work, too.
 */
function mayHaveWorked(error: AgentError): boolean {
  if (error.httpStatus >= 500) return true
  const known = tableError(error)
  return known ? known.httpStatus >= 500 : error.httpStatus < 400
}

function refusalOf(error: AgentError, denial: string): string {
  if (error.httpStatus === 401 || error.httpStatus === 403) return denial
  return printable(error.message) || errorWords(error)
}

/** The network's own sentence says one thing of a silence and of a broken connection; a person has to tell them apart. */
const lostWords = ({ instead, code, message }: Lost): string => {
  const words: Partial<Record<LostAnswer | OutboundCode, string>> = lostAnswers
  return words[instead ?? code] ?? message
}

const printable = (text: string): string => plainWords(text, messageLimit)
