/**
 * Rebuilds what people read of tasks from what agents said: every stored event is folded again, by the one fold
 * (domain/fold.ts), and written as everything is (persistence/task-writes.ts). A task is one transaction under the lock that
 * every observation takes, so servers may run. Does not print (bin/projections.ts) and tells nobody: what was right stays.
 */
import { Fold, type Folded, type FoldedArtifact, type KnownArtifact } from '../domain/fold.ts'
import { observationOf, type Observation } from '../domain/observation.ts'
import { namesOf, withoutWords, type KnownMessage } from '../domain/same-id.ts'
import type { Database } from '../persistence/database.ts'
import type { Transaction } from '../persistence/connection.ts'
import {
  clearMark,
  clearProjections,
  fingerprint,
  listTaskIds,
  lockForRebuild,
  readAsked,
  readEventPage,
  readMark,
  readToldCommands,
  withCommandsByTask,
  writeHead,
  writeMark,
  type RebuildMark,
  type StoredEvent,
  type ToldCommand,
} from '../persistence/rebuild.ts'
import type { IndexWait } from '../persistence/rebuild-index.ts'
import { writeTasks } from '../persistence/task-writes.ts'
import { nothingPassedOver, type PassedOver } from '../domain/overtaken.ts'
import { storable } from '../domain/storable.ts'
import { chainParts } from '../persistence/tasks.ts'
import { textDigest } from '../persistence/text-digest.ts'

export interface Rebuilt {
  readonly taskId: string
  readonly events: number
  /** False: everything was as the events say. */
  readonly repaired: boolean
}

/** One of a task's events is damaged, so that they cannot be folded. Nothing of the task was changed. */
export interface Unreadable {
  readonly taskId: string
  /** Names the event by its position. */
  readonly reason: string
}

class EventUnreadable extends Error {
  override readonly name = 'EventUnreadable'
  constructor(position: number, cause: unknown) {
    super(`Event ${position} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** A run that was given up longer ago than this starts over: nobody remembers why it ended. */
const markLastsMs = 24 * 60 * 60_000
const idsAtOnce = 100

/** Rebuilds one task in a transaction; null when the organization has no such task. A task with a damaged event stays as it is. */
export async function rebuildTask(
  db: Database['pool'],
  organizationId: string,
  taskId: string,
  mark?: RebuildMark,
): Promise<Rebuilt | Unreadable | null> {
  try {
    return await rebuildWhole(db, organizationId, taskId, mark)
  } catch (error) {
    if (!(error instanceof EventUnreadable)) throw error
    // Whoever goes on does so behind it: it would be met again by each run, and those after it never be reached.
    if (mark) await db.transaction((tx) => writeMark(tx, organizationId, mark))
    return { taskId, reason: error.message }
  }
}

function rebuildWhole(
  db: Database['pool'],
  organizationId: string,
  taskId: string,
  mark: RebuildMark | undefined,
): Promise<Rebuilt | null> {
  return db.transaction(async (tx) => {
    const row = await lockForRebuild(tx, organizationId, taskId)
    if (!row) return null
    const before = await fingerprint(tx, taskId)
    const commands = await readToldCommands(tx, taskId)
    await clearProjections(tx, taskId)
    const retold = new Retelling(taskId, row.kind, commands)
    for (;;) {
      const page = await readEventPage(tx, taskId, retold.next)
      const last = page.at(-1)
      if (!last) break
      await writePage(tx, retold, page, last)
    }
    const asked = retold.opening ? await readAsked(tx, retold.opening.id) : { skillId: null, references: [] }
    await writeHead(tx, { ...retold.head(row.createdAt), ...asked })
    if (mark) await writeMark(tx, organizationId, mark)
    return { taskId, events: retold.next, repaired: (await fingerprint(tx, taskId)) !== before }
  })
}

async function writePage(tx: Transaction, retold: Retelling, page: readonly StoredEvent[], last: StoredEvent) {
  const folded = retold.tell(page)
  await writeTasks(tx, [{ id: retold.id, fresh: null, contextId: retold.contextId, folded }], last.receivedAt)
}

export interface RebuildRun {
  readonly organizationId: string
  readonly now: Date
  /** Told after each task's commit. */
  readonly told: (task: Rebuilt | Unreadable) => void
  /** Told once, where an earlier run is taken up. */
  readonly resumed: (mark: RebuildMark) => void
  readonly signal: AbortSignal
  /** Told while the index that a run makes for itself waits for others' sessions. */
  readonly waiting: IndexWait['waiting']
  /** Told where that index could not be removed. */
  readonly left: IndexWait['left']
}

/** Rebuilds every task of an organization, in the order of their ids, behind where an interrupted run came to. */
export function rebuildAll(db: Database, run: RebuildRun): Promise<void> {
  return withCommandsByTask(db, run, (broken) =>
    rebuildFromMark(db.pool, { ...run, signal: AbortSignal.any([run.signal, broken]) }),
  )
}

async function rebuildFromMark(db: Database['pool'], run: RebuildRun): Promise<void> {
  const { organizationId, now, signal } = run
  const found = await readMark(db, organizationId)
  const mark = found && now.getTime() - Date.parse(found.startedAt) < markLastsMs ? found : null
  if (mark) run.resumed(mark)
  let tasks = mark?.tasks ?? 0
  let after = mark?.afterTaskId ?? null
  const startedAt = mark?.startedAt ?? now.toISOString()
  for (;;) {
    const ids = await listTaskIds(db, organizationId, after, idsAtOnce)
    for (const taskId of ids) {
      signal.throwIfAborted()
      const rebuilt = await rebuildTask(db, organizationId, taskId, {
        startedAt,
        afterTaskId: taskId,
        tasks: tasks + 1,
      })
      after = taskId
      tasks += 1
      if (rebuilt) run.told(rebuilt)
    }
    if (ids.length < idsAtOnce) return clearMark(db, organizationId)
  }
}

/** What a task's events say so far. Keeps names and digests, not content: a task may be larger than memory should be. */
class Retelling {
  readonly id: string
  readonly #commands: readonly ToldCommand[]
  readonly #messages = new Map<string, KnownMessage>()
  readonly #artifacts = new Map<string, KnownArtifact>()
  /** The command that brought the task: the first that it answered. */
  opening: ToldCommand | null
  #state: string
  #stateAt: string | null = null
  #firstAt: string | null = null
  #lastAt: string | null = null
  contextId: string | null = null
  /** The position of the event to come. */
  next = 0

  constructor(id: string, kind: 'task' | 'message', commands: readonly ToldCommand[]) {
    this.id = id
    this.#commands = commands
    this.opening = commands[0] ?? null
    this.#state = kind === 'message' ? 'MESSAGE_ONLY' : 'TASK_STATE_UNSPECIFIED'
  }

  /** Folds a page, an event at a time: what was one commit or many makes no difference to the fold. */
  tell(page: readonly StoredEvent[]): Folded {
    const all = new Page()
    for (const event of page) all.add(this.#tellOne(event))
    return all.folded({ state: this.#state, stateAt: this.#stateAt, events: this.next })
  }

  #tellOne({ position, source, event, isPresent, passedOver, receivedAt }: StoredEvent): Folded {
    const observation = readEvent(position, event)
    const seen = source === 'sent' ? this.#sent(observation, receivedAt) : observation
    const known = {
      state: this.#state,
      stateAt: this.#stateAt,
      version: position,
      events: position,
      ...this.#known(seen, source === 'sent'),
    }
    const fold = new Fold(known, receivedAt, chainParts)
    const passed = passedOver === null ? nothingPassedOver : (JSON.parse(passedOver) as PassedOver)
    fold.add(seen, source, { isPresent, passedOver: passed })
    const folded = fold.result()
    for (const message of folded.messages) this.#messages.set(message.id, withoutWords(message, chainParts))
    for (const [id, { newParts: _, ...artifact }] of folded.artifacts) this.#artifacts.set(id, artifact)
    this.#state = folded.state
    this.#stateAt = folded.stateAt
    this.#firstAt ??= receivedAt
    this.#lastAt = receivedAt
    this.contextId ??= seen.contextId === null ? null : storable(seen.contextId)
    this.next = position + 1
    return folded
  }

  /** What the event names of what is known: all that a fold needs. */
  #known(seen: Observation, isOwn: boolean) {
    const messages = new Map<string, KnownMessage>()
    for (const name of seen.messages.flatMap((message) => namesOf(message, chainParts, isOwn))) {
      const message = this.#messages.get(name)
      if (message) messages.set(name, message)
    }
    const artifacts = new Map<string, KnownArtifact>()
    for (const { artifactId } of seen.artifacts) {
      const artifact = this.#artifacts.get(artifactId)
      if (artifact) artifacts.set(artifactId, artifact)
    }
    return { messages, artifacts }
  }

  /** Our own words were said when the command was accepted, which stands in the command and not in the event. */
  #sent(seen: Observation, receivedAt: string): Observation {
    const ids = new Set(seen.messages.map(({ id }) => id))
    const mine = this.#commands.filter(({ messageId }) => ids.has(messageId))
    // A caller may give two commands one message id: the reply that was committed with the event tells them apart.
    const command = mine.find(({ repliedAt }) => repliedAt === receivedAt) ?? mine[0]
    if (this.next === 0 && command) this.opening = command
    if (!command) return seen
    return { ...seen, messages: seen.messages.map((said) => ({ ...said, timestamp: command.createdAt })) }
  }

  /** `createdAt`: what the row says, for a task of which neither a command nor an event is left to say it. */
  head(createdAt: string) {
    const opened = this.opening?.repliedAt ?? this.#firstAt ?? createdAt
    return {
      id: this.id,
      title: this.opening?.title ?? null,
      contextId: this.contextId,
      state: this.#state,
      stateAt: this.#stateAt,
      events: this.next,
      createdAt: opened,
      updatedAt: this.#lastAt ?? opened,
      commandId: this.opening?.id ?? null,
    }
  }
}

function readEvent(position: number, event: StoredEvent['event']): Observation {
  try {
    return observationOf(event, textDigest)
  } catch (error) {
    throw new EventUnreadable(position, error)
  }
}

/** What several events changed together, as one write: later parts over earlier ones. */
class Page {
  readonly #messages: Folded['messages'][number][] = []
  readonly #transitions: Folded['transitions'][number][] = []
  readonly #artifacts = new Map<string, FoldedArtifact>()
  readonly #stored = new Map<string, number>()

  add(folded: Folded): void {
    // One by one: arguments are on the stack, and one event may have a hundred thousand messages.
    for (const message of folded.messages) this.#messages.push(message)
    for (const transition of folded.transitions) this.#transitions.push(transition)
    for (const [digest, size] of folded.stored) this.#stored.set(digest, size)
    for (const [id, artifact] of folded.artifacts) {
      const earlier = this.#artifacts.get(id)
      const newParts = new Map(earlier?.newParts)
      for (const [position, part] of artifact.newParts) newParts.set(position, part)
      this.#artifacts.set(id, { ...artifact, newParts, isShorter: artifact.isShorter || earlier?.isShorter === true })
    }
  }

  /** `events`: how many there are up to the page's last; a version is one event. The events themselves are stored already. */
  folded({ state, stateAt, events }: { state: string; stateAt: string | null; events: number }): Folded {
    return {
      state,
      stateAt,
      version: events,
      eventCount: events,
      changed: true,
      events: [],
      messages: this.#messages,
      artifacts: this.#artifacts,
      transitions: this.#transitions,
      stored: this.#stored,
    }
  }
}
