/**
 * Callers: many at once, each with keys of its own, who ask again under the same key when they are told nothing. Writes down
 * every answer for the checker. Does not judge, and does not know which processes live.
 */
import * as z from 'zod/mini'
import { Command } from '../../domain/command.ts'
import type { Ask, FinalCommand, SeenStatus } from './checker.ts'
import type { Chance } from './seed.ts'

const Answered = z.object({ command: Command })
const Event = z.object({
  message: z.optional(z.object({ messageId: z.string(), parts: z.array(z.object({ text: z.optional(z.string()) })) })),
  task: z.optional(z.object({ id: z.string() })),
})

/** What a caller may be told when a dependency is away; it asks again. */
const passing = new Set([502, 503, 504])
const retryPauseMs = 50
const retryPauseMaxMs = 1000
const attemptsLimit = 2_000
const lookPauseMs = 25
const lookPauseMaxMs = 200
const outcomeWaitMs = 500
const requestLimitMs = 60_000
const statusesPerAnswer = 0.2
/** All is whole again: the first new reply is heard. */
const repliesLimit = 3

export interface LoadOptions {
  /** Where a request may go; asked anew for each. */
  readonly urls: () => readonly string[]
  readonly agentIds: readonly string[]
  readonly chance: Chance
  /** Words for the n-th message (witness.ts knows what they mean). */
  readonly words: (n: number, chance: Chance) => string
}

/** What a wish is about, if not about something new: a task, which is replied to or canceled, or a command in whose place it goes. */
type About =
  | { readonly taskId: string; readonly action: 'send' | 'cancelTask' }
  | { readonly replaces: string; readonly action: 'send' }

interface Wish extends Ask {
  readonly agentId: string
  readonly text: string
  readonly about: About | null
}

export class Load {
  readonly asks: Wish[] = []
  readonly seen: SeenStatus[] = []
  readonly otherStatuses: number[] = []
  readonly finals = new Map<string, FinalCommand>()
  readonly #o: LoadOptions
  #accepted = 0
  #looking = false
  #watchers: { readonly n: number; readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = []

  constructor(options: LoadOptions) {
    this.#o = options
  }

  get accepted(): number {
    return this.#accepted
  }

  /** How often a caller was told that something is away. */
  get refused(): number {
    return this.asks.reduce((sum, { attempts }) => sum + attempts.filter(({ status }) => status === 503).length, 0)
  }

  /** Resolves when so many sends were accepted in all. */
  reached(n: number): Promise<void> {
    if (this.#accepted >= n) return Promise.resolve()
    return new Promise((resolve, reject) => this.#watchers.push({ n, resolve, reject }))
  }

  /** Sends until `count` wishes are accepted or the signal aborts, `senders` at a time. What was under way is given up then. */
  async run(count: number, senders: number, signal = new AbortController().signal): Promise<void> {
    let left = count
    const sender = async (): Promise<void> => {
      while (left > 0 && !signal.aborted) {
        left -= 1
        const wish = this.wish()
        const command = await this.#pursue(wish, signal)
        const next = command && this.nextOf(wish, finalOf(command))
        if (next) await this.#pursue(next, signal)
      }
    }
    const all = Promise.all(Array.from({ length: senders }, sender))
    // Whoever waits for the load to come so far must hear that it never will.
    all.catch((error: unknown) => {
      for (const { reject } of this.#watchers.splice(0)) reject(error)
    })
    await all
  }

  /** Sends until it is told to stop; resolves then, once nothing is under way. */
  begin(senders: number): () => Promise<void> {
    const enough = new AbortController()
    const running = this.run(Infinity, senders, enough.signal)
    return () => {
      enough.abort()
      return running
    }
  }

  /** As a person does: the next word follows the answer, unless that is long in coming. */
  async #pursue(wish: Wish, signal: AbortSignal): Promise<Command | null> {
    const id = await this.insist(wish, signal)
    return id === null ? null : this.#outcome(id, performance.now() + outcomeWaitMs, signal)
  }

  /** What follows from an answer: a task that asks is replied to, one that is held is canceled. */
  nextOf({ text, agentId }: Wish, { status, answer }: FinalCommand): Wish | null {
    if (status !== 'succeeded' || !answer) return null
    const [plot, delay = '0'] = text.split(' ')
    if (plot === 'ask') return this.wish(`reply ${delay}`, agentId, { taskId: answer.id, action: 'send' })
    return plot === 'hold' ? this.wish('cancel', agentId, { taskId: answer.id, action: 'cancelTask' }) : null
  }

  /** A new wish, not yet told to anybody; agents take turns unless one is named. */
  wish(words?: string, agentId?: string, about: About | null = null): Wish {
    const n = this.asks.length
    const key = `${this.#o.chance.seed}-${n}`
    const wish: Wish = {
      key,
      // A cancel has no name at the agent but its task's.
      messageId: about?.action === 'cancelTask' ? `cancel-${about.taskId}` : `message-${key}`,
      agentId: agentId ?? this.#o.agentIds[n % this.#o.agentIds.length] ?? '',
      text: words ?? this.#o.words(n, this.#o.chance),
      about,
      attempts: [],
    }
    this.asks.push(wish)
    return wish
  }

  /** Asks until there is an answer that means something. Returns the command's id, or null when the signal aborted first. */
  async insist(wish: Wish, signal?: AbortSignal): Promise<string | null> {
    let pauseMs = retryPauseMs
    for (let attempt = 0; attempt < attemptsLimit && signal?.aborted !== true; attempt++) {
      const { status, commandId } = await this.ask(wish)
      if (status !== null && !passing.has(status)) {
        if (this.#o.chance.next() < statusesPerAnswer) await this.#look()
        return commandId
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      pauseMs = Math.min(retryPauseMaxMs, pauseMs * 2)
    }
    return null
  }

  /** Resolves when a command has ended; fails after a bound. */
  async ended(id: string, withinMs = requestLimitMs): Promise<Command> {
    const command = await this.#outcome(id, performance.now() + withinMs)
    if (command && isOver(command)) return command
    throw new Error(`Command ${id} is still ${command?.status ?? 'unreadable'}.`)
  }

  /** The command when it has ended, or as it is at the deadline; null when it could not be read. */
  async #outcome(id: string, deadline: number, signal?: AbortSignal): Promise<Command | null> {
    for (let pauseMs = lookPauseMs; ; pauseMs = Math.min(lookPauseMaxMs, pauseMs * 2)) {
      const command = await this.#read(id)
      const over = command !== null && isOver(command)
      if (over || performance.now() > deadline || signal?.aborted === true) return command
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  /** Asks once. */
  async ask(wish: Wish): Promise<{ readonly status: number | null; readonly commandId: string | null }> {
    const sentAt = Date.now()
    const answer = await this.#send(wish, wish.text)
    const commandId = answer?.status === 202 ? Answered.parse(JSON.parse(answer.text)).command.id : null
    const first = commandId !== null && !wish.attempts.some((attempt) => attempt.commandId !== null)
    wish.attempts.push({ sentAt, status: answer?.status ?? null, commandId })
    if (answer && answer.status !== 202 && !passing.has(answer.status))
      throw new Error(`A send was answered with ${answer.status}: ${answer.text.slice(0, 500)}`)
    if (first) this.#count()
    return { status: answer?.status ?? null, commandId }
  }

  /** Asks for something else under the key of a wish; returns the status. */
  async askOtherwise(wish: Wish): Promise<number | null> {
    const answer = await this.#send(wish, `${wish.text} otherwise`)
    if (answer) this.otherStatuses.push(answer.status)
    return answer?.status ?? null
  }

  #send({ agentId, key, messageId, about }: Wish, text: string) {
    const what = about?.action === 'cancelTask' ? about : { ...about, text }
    return this.#request(`/api/agents/${agentId}/commands`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ ...what, messageId }),
    })
  }

  #count(): void {
    this.#accepted += 1
    const ready = this.#watchers.filter(({ n }) => n <= this.#accepted)
    this.#watchers = this.#watchers.filter(({ n }) => n > this.#accepted)
    for (const { resolve } of ready) resolve()
  }

  /** Reads some command that was accepted, as a page would: what is seen must not go back later. */
  async #look(): Promise<void> {
    const known = this.asks.findLast(({ attempts }) => attempts.some(({ commandId }) => commandId !== null))
    const id = known?.attempts.find(({ commandId }) => commandId !== null)?.commandId
    // One look at a time: of two that overtake each other, the later answer may be the older truth.
    if (id === undefined || id === null || this.#looking) return
    this.#looking = true
    const command = await this.#read(id)
    this.#looking = false
    if (command) this.seen.push({ commandId: id, at: Date.now(), status: command.status })
  }

  async #read(id: string): Promise<Command | null> {
    const answer = await this.#request(`/api/commands/${id}`, {})
    if (!answer) return null
    if (answer.status !== 200) {
      this.otherStatuses.push(answer.status)
      return null
    }
    return Answered.parse(JSON.parse(answer.text)).command
  }

  async #request(path: string, init: RequestInit): Promise<{ readonly status: number; readonly text: string } | null> {
    const url = this.#o.chance.pick(this.#o.urls() as [string, ...string[]])
    try {
      const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(requestLimitMs) })
      return { status: response.status, text: await response.text() }
    } catch {
      // The process died under this request, or is not there yet: whether it was heard is found out by its key.
      return null
    }
  }

  /**
   * After the storm: every key is asked for once more, and every command waited for until it has ended. Then people do what the
   * console leaves to them: a reply that is in doubt, or was never made, is made anew. Each is waited for by itself: to ask for ten
   * thousand takes minutes on a busy machine, and what is sent last has begun by then.
   */
  async settle(senders: number, patienceMs: number): Promise<void> {
    await this.#conclude(this.asks, senders, patienceMs)
    for (let round = 0; round < repliesLimit; round++) {
      const replies = this.#unanswered().flatMap((wish) => {
        const final = this.#finalOf(wish)
        return (final && this.nextOf(wish, final)) ?? []
      })
      if (replies.length === 0) return
      await this.#conclude(replies, senders, patienceMs)
    }
  }

  #finalOf({ attempts }: Wish): FinalCommand | undefined {
    const id = attempts.find(({ commandId }) => commandId !== null)?.commandId
    return typeof id === 'string' ? this.finals.get(id) : undefined
  }

  /** Questions to which no reply is known to have come. One that is refused came after another, which was in doubt. */
  #unanswered(): Wish[] {
    const replied = new Set<string>()
    for (const wish of this.asks) {
      const status = this.#finalOf(wish)?.status
      if (wish.about && 'taskId' in wish.about && (status === 'succeeded' || status === 'failed'))
        replied.add(wish.about.taskId)
    }
    const asking = this.asks.filter(({ text }) => text.startsWith('ask '))
    return asking.filter((wish) => !replied.has(this.#finalOf(wish)?.answer?.id ?? ''))
  }

  async #conclude(wishes: readonly Wish[], senders: number, patienceMs: number): Promise<void> {
    const queue = [...wishes]
    const sender = async (): Promise<void> => {
      for (let wish = queue.pop(); wish; wish = queue.pop()) {
        const id = await this.insist(wish)
        if (id === null) continue
        const command = await this.#outcome(id, performance.now() + patienceMs)
        if (command) this.finals.set(id, finalOf(command))
      }
    }
    await Promise.all(Array.from({ length: senders }, sender))
  }
}

const isOver = ({ status }: Command): boolean => status !== 'pending' && status !== 'dispatching'

export function finalOf(command: Command): FinalCommand {
  const { id, messageId, status, result } = command
  if (!result) return { id, messageId, status, answer: null }
  const { message, task } = Event.parse(result.event)
  const answer = message
    ? { id: message.messageId, text: message.parts.map(({ text }) => text ?? '').join('') }
    : { id: task?.id ?? '', text: null }
  return { id, messageId, status, answer }
}
