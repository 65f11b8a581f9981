/**
 * Freshness between processes: what others committed is published here, and they are woken by what we commit. Owns the
 * looking, the channels of LISTEN and NOTIFY, and the promise that no commit goes unheard. Does not say what changed to
 * anybody (http/), and is nothing on an embedded database, whose only process publishes its commits itself.
 *
 * Why no wake-up is lost. Every commit that people can see has facts in the outbox, in the same transaction. A look reads
 * every fact that was not seen before (persistence/freshness.ts has that proof) and publishes it, with one exception: the
 * facts of a batch that this process has itself published, which it does only after the commit was acknowledged. So each
 * commit is followed by at least one publication here: ours at its acknowledgement, or the look's. Whoever waits subscribed
 * before it read, so it hears that publication or had read what it tells of. An acknowledgement that never comes publishes
 * nothing and is therefore found by looking; a wake-up that is lost on the way costs one pause between two looks.
 *
 * Why it is rarely told twice: a look that overtakes the acknowledgement publishes what the runtime then publishes again.
 * Nothing else does.
 */
import type { Database } from '../persistence/database.ts'
import { lookFrom, openHorizon, type Horizon, type ToldBy } from '../persistence/freshness.ts'
import { Bell } from './loop/bell.ts'
import { anybody, type Change, type Changes } from './loop/changes.ts'
import type { Log } from './log.ts'

export interface FreshnessOptions {
  readonly db: Database
  readonly changes: Changes
  readonly log: Log
  /** Whether this process does the background work: then it looks more often, and is woken for what falls due. */
  readonly works: boolean
  readonly kinds: readonly string[]
  readonly nudge: (kind: string) => void
  /** Between two looks that nobody asked for; `pollMsOf` when absent. */
  readonly pollMs?: number
}

/** The freshness loop of a worker, and the token poll of a web replica [spec: "Background loops"]. */
export const pollMsOf = (works: boolean): number => (works ? 250 : 500)
/** Wake-ups of a busy neighbour are looked into fifty times a second at most. */
const leastGapMs = 20
/** Our commits that no look has passed yet: 250 ms at 4,000 a second. Beyond it the oldest may be told twice. */
const publishedLimit = 10_000

const factsChannel = 'signalbox'
const dueChannel = (kind: string): string => `signalbox_due_${kind}`
const everybody: Change = { organizationId: null, subjects: anybody, commit: null }

export class Freshness {
  readonly #o: FreshnessOptions
  readonly #bell = new Bell()
  readonly #published = new Set<string>()
  readonly #stops: (() => Promise<void>)[] = []
  #horizon: Horizon | null = null

  constructor(options: FreshnessOptions) {
    this.#o = options
  }

  /** From now on our commits wake others, theirs wake us, and looks begin here. Rejects when the database fails. */
  async open(): Promise<void> {
    const { db, changes, works, kinds, nudge, log } = this.#o
    if (db.profile === 'pglite') return
    if (!db.hearsOthers)
      log.info({}, 'behind a pooler there is no LISTEN: what other processes commit is seen by polling')
    const silence = changes.subscribe((change) => this.#committed(change))
    this.#stops.push(() => Promise.resolve(silence()))
    const hear = async (channel: string, heard: () => void): Promise<void> => {
      // What was committed here is published and launched already: looking again cost four statements every 5 ms.
      this.#stops.push(await db.listen(channel, (from) => from === 'elsewhere' && heard()))
    }
    await hear(factsChannel, () => this.#bell.ring())
    if (works) for (const kind of kinds) await hear(dueChannel(kind), () => nudge(kind))
    // Before anything is under way here: what begins later reads what was committed until now.
    await this.look()
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) await stop()
  }

  /** Looks until the signal aborts, at once when woken. Rejects when the database fails: the supervisor begins it again. */
  async watch(signal: AbortSignal): Promise<void> {
    const { works, pollMs = pollMsOf(works) } = this.#o
    while (!signal.aborted) {
      const more = await this.look()
      if (more) this.#bell.ring()
      await new Bell().wait(leastGapMs, signal)
      await this.#bell.wait(pollMs - leastGapMs, signal)
    }
  }

  /** One look. True when more is waiting. What is seen stays seen when the loop begins again, so an outage hides nothing. */
  async look(): Promise<boolean> {
    const { db, changes } = this.#o
    if (this.#horizon === null) {
      this.#horizon = await openHorizon(db.pool)
      // Whoever waits already may wait for what was committed before this moment.
      changes.publish(everybody)
      return false
    }
    const wasBlurred = this.#horizon.blurredUntil > 0
    const { news, horizon, more, isBlurred } = await lookFrom(db.pool, this.#horizon)
    this.#horizon = horizon
    // For as long as somebody else's transaction lives: what is cut off by it is cut off as it begins and when it is over.
    const goesOn = wasBlurred && horizon.blurredUntil > 0
    const others = news.filter(({ batchId }) => !this.#published.has(batchId))
    for (const { batchId } of news) this.#published.delete(batchId)
    if (isBlurred) changes.publish(goesOn ? { ...everybody, goesOn } : everybody)
    if (!isBlurred || goesOn) for (const change of changesOf(others)) changes.publish(change)
    return more
  }

  /** Others are woken after the commit, never inside it: NOTIFY in a transaction makes all commits wait for each other. */
  #committed({ commit }: Change): void {
    if (commit === null) return
    this.#published.add(commit.batchId)
    for (const oldest of this.#published) {
      if (this.#published.size <= publishedLimit) break
      this.#published.delete(oldest)
    }
    this.#wakeOthers(factsChannel)
    for (const kind of commit.leftDue) this.#wakeOthers(dueChannel(kind))
  }

  /** The driver sends one a window and channel, and takes an outage for silence: whoever is not woken looks by itself. */
  #wakeOthers(channel: string): void {
    const { db, log } = this.#o
    db.notify(channel).catch((err: unknown) => log.warn({ err, channel }, 'other processes could not be woken'))
  }
}

function changesOf(news: readonly ToldBy[]): Change[] {
  const subjects = new Map<string, Set<string>>()
  for (const { organizationId, subjectId } of news) {
    const known = subjects.get(organizationId) ?? new Set()
    subjects.set(organizationId, known.add(subjectId))
  }
  return [...subjects].map(([organizationId, moved]) => ({ organizationId, subjects: moved, commit: null }))
}
