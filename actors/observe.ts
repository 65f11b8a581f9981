/**
 * What an agent said becomes what is known of its tasks: command reply, stream, push and poll come through this one door.
 * Reads and locks once, folds in memory, writes once, for all reports of a batch. Does not fetch anything.
 */
import type { Fact, Report, ToldFact } from '../domain/fact.ts'
import { Fold, isLater } from '../domain/fold.ts'
import type { Observation } from '../domain/observation.ts'
import type { Standing } from '../domain/overtaken.ts'
import type { KnownMessage, SaidMessage } from '../domain/same-id.ts'
import { storable } from '../domain/storable.ts'
import { isTerminal, isWaiting } from '../domain/task.ts'
import type { ActorRef } from '../persistence/actors.ts'
import { writeTasks, type NewTask, type TaskWrite } from '../persistence/task-writes.ts'
import {
  chainParts,
  isOfAnother,
  lockTasks,
  readKnown,
  type LockedTask,
  type RemoteTask,
} from '../persistence/tasks.ts'
import { readToldArtifacts, artifactKey, type ToldQuestion } from '../persistence/told-artifacts.ts'
import type { Effects } from './loop/step.ts'
import type { BatchContext } from './loop/kinds.ts'
import { claimsAnother } from './skill-boundary.ts'

/** Said of a success: the agent has answered, and who began something new is to know that nothing was begun here. */
export const answeredByFinished =
  'The agent answered with a task that is finished already, and a finished task is not reopened.'

interface Told {
  readonly organizationId: string
  /** The actor in whose name it is told. */
  readonly teller: string
  readonly report: Report
}

/** A task in the making: its row as it was, or the one it will get, and everything folded in so far. */
interface Subject {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
  readonly skillId: string | null
  readonly fresh: NewTask | null
  readonly fold: Fold
  readonly before: { readonly state: string; readonly stateAt: string | null }
  contextId: string | null
  readonly sources: Set<Report['source']>
  /** Ways in which something came that claims another skill, and was not kept. */
  readonly crossed: Set<Report['source']>
  isSeenAgain: boolean
  /** How its end was told, once it has one. */
  end: Pick<Fact & { type: 'task.settled' }, 'byFollower' | 'isPartial'> | null
}

/** What a poll finds it finds again in fifteen seconds: that it was not kept is told of what is said once. */
const saidOnce: ReadonlySet<Report['source']> = new Set(['stream', 'push'])

const keyOf = (task: RemoteTask): string => JSON.stringify([task.agentId, task.tenant, task.remoteId])

/** The task that an observation of a report names; null for a direct reply. */
const namedBy = (report: Report): string | null =>
  report.remoteTaskId ?? report.observations.find(({ taskId }) => taskId !== null)?.taskId ?? null

/** The task that a report speaks of: a message that answers a task and does not name it is of that task. */
const remoteIdOf = (report: Report): string | null => namedBy(report) ?? report.command?.continues ?? null

/** A task that is not known, or of another skill, is nothing that a message could stand in without naming it. */
const isDirect = (report: Report, row: LockedTask | undefined): boolean =>
  namedBy(report) === null && row?.skillId !== report.command?.skillId

/**
 * Locks the tasks that reports name, before anything else of the batch is locked, and names the actors that may be moved by
 * what becomes of them: so that a stream (subscription, then task) and a reply (task, then subscription) cannot wait for
 * each other in a circle.
 */
export async function foresee(batch: BatchContext, told: readonly Fact[]): Promise<readonly ActorRef[]> {
  const named = told.flatMap((fact): RemoteTask[] => {
    const remoteId = fact.type === 'agent.reported' ? remoteIdOf(fact.report) : null
    return fact.type === 'agent.reported' && remoteId !== null ? [{ ...fact.report, remoteId }] : []
  })
  const refs: ActorRef[] = []
  for (const task of await lockTasks(batch.tx, named)) {
    batch.tasks.set(keyOf(task), task)
    refs.push(...['ownership', 'push', 'subscription'].map((kind) => ({ kind, id: task.id })))
  }
  return refs
}

export async function observe(batch: BatchContext, told: readonly ToldFact[]): Promise<Effects> {
  const reports = told.flatMap(({ organizationId, subjectId: teller, fact }): Told[] =>
    fact.type === 'agent.reported' ? [{ organizationId, teller, report: fact.report }] : [],
  )
  const locked = batch.tasks
  const subjects = new Map<string, Subject>()
  const known = await readKnown(batch.tx, namesIn(reports, locked))
  const overtaken = await readToldArtifacts(batch.tx, overtakingOf(batch, reports))
  for (const { organizationId, teller, report } of reports) {
    const spokenOf = remoteIdOf(report)
    const spoken = spokenOf === null ? undefined : locked.get(keyOf({ ...report, remoteId: spokenOf }))
    const remoteId = isDirect(report, spoken) ? null : spokenOf
    const key = remoteId === null ? `direct ${batch.newToken()}` : keyOf({ ...report, remoteId })
    const row = remoteId === null ? undefined : spoken
    // Only a reply to our own command may bring a task we do not know: everybody else speaks of strangers.
    if (!row && !subjects.has(key) && report.command === null) continue
    const subject =
      subjects.get(key) ?? (row ? knownSubject(batch, row, known) : newSubject(batch, organizationId, report, remoteId))
    // Whoever delivered looked for this (skill-boundary.ts). A task that came to be known meanwhile, by another command even of this
    // batch, is kept apart all the same.
    if (report.command && report.command.skillId !== subject.skillId) continue
    subjects.set(key, subject)
    const remark = isOver(subject, report.command, remoteId) ? answeredByFinished : null
    foldIn(subject, report, teller, overtaken)
    if (report.command)
      batch.replies.set(report.command.id, { taskId: subject.id, reply: report.command.reply, remark })
  }
  return settle(batch, [...subjects.values()])
}

/** Whether a message was answered with a task that it was not sent to, and that is finished: it may have ended while the answer was on its way. */
const isOver = ({ fold }: Subject, command: Report['command'], remoteId: string | null): boolean =>
  command !== null && command.sent !== null && command.continues !== remoteId && isTerminal(fold.state)

function namesIn(reports: readonly Told[], locked: ReadonlyMap<string, LockedTask>) {
  const messages: [string, SaidMessage, boolean][] = []
  const artifacts: [string, string][] = []
  for (const { report } of reports) {
    const remoteId = remoteIdOf(report)
    const id = remoteId === null ? undefined : locked.get(keyOf({ ...report, remoteId }))?.id
    if (id === undefined) continue
    for (const observation of sayings(report)) {
      const isOwn = observation === report.command?.sent
      for (const message of observation.messages) messages.push([id, message, isOwn])
      for (const artifact of observation.artifacts) artifacts.push([id, artifact.artifactId])
    }
  }
  return { messages, artifacts }
}

/** Everything a report says, our own words first. */
const sayings = (report: Report): readonly Observation[] =>
  report.command?.sent ? [report.command.sent, ...report.observations] : report.observations

function knownSubject(batch: BatchContext, row: LockedTask, known: Awaited<ReturnType<typeof readKnown>>): Subject {
  const { messages, artifacts } = known.get(row.id) ?? {
    messages: new Map<string, KnownMessage>(),
    artifacts: new Map(),
  }
  const fold = new Fold({ ...row, messages, artifacts }, batch.at.toISOString(), chainParts)
  const { id, organizationId, agentId, skillId, contextId } = row
  const own = { id, organizationId, agentId, skillId, contextId }
  return {
    ...own,
    fresh: null,
    fold,
    before: row,
    sources: new Set(),
    crossed: new Set(),
    isSeenAgain: false,
    end: null,
  }
}

const unseen = { state: 'TASK_STATE_UNSPECIFIED', stateAt: null, version: 0, events: 0 }

function newSubject(batch: BatchContext, organizationId: string, report: Report, remoteId: string | null): Subject {
  const id = batch.newToken()
  const kind = remoteId === null ? 'message' : 'task'
  const state = kind === 'message' ? 'MESSAGE_ONLY' : unseen.state
  const { agentId, tenant, command } = report
  const fresh: NewTask = {
    id,
    organizationId,
    agentId,
    tenant,
    remoteId,
    kind,
    contextId: null,
    skillId: command?.skillId ?? null,
    title: command?.title ?? null,
    references: command?.referenceTaskIds ?? [],
    commandId: command?.id ?? null,
  }
  const known = { ...unseen, state, messages: new Map<string, KnownMessage>(), artifacts: new Map() }
  const fold = new Fold(known, batch.at.toISOString(), chainParts)
  return {
    id,
    organizationId,
    agentId,
    skillId: fresh.skillId,
    fresh,
    fold,
    before: known,
    contextId: null,
    sources: new Set(),
    crossed: new Set(),
    isSeenAgain: false,
    end: null,
  }
}

function foldIn(subject: Subject, report: Report, teller: string, overtaken: ReadonlySet<string>): void {
  // Asked before anything of it is folded: our own words, which come with a reply, are no news of the agent's.
  const standing = standingOf(report, subject, overtaken)
  // A context counts where its event is kept, so that a rebuild finds it again; our own words carry that of the reply.
  const told = (observation: Observation, source: Report['source']): void => {
    const wasOver = isTerminal(subject.fold.state)
    if (subject.fold.add(observation, source, standing))
      subject.contextId ??= observation.contextId === null ? null : storable(observation.contextId)
    if (wasOver || !isTerminal(subject.fold.state)) return
    // Of the actors that have the task's id only its subscription follows it.
    const byFollower = teller === subject.id && (source === 'stream' || source === 'poll')
    // Pushes come in any order and may be lost; who looks sees a whole task, unless it is too large (reconciliation.ts).
    const isPartial =
      source === 'push' ||
      (source === 'reply' && isBare(observation)) ||
      (source === 'poll' && observation.kind === 'statusUpdate')
    subject.end = { byFollower, isPartial }
  }
  const from = subject.fold.version
  if (report.command?.sent) told(report.command.sent, 'sent')
  for (const observation of report.observations) {
    if (report.remoteTaskId !== null && observation.taskId !== report.remoteTaskId && !isUnnamed(observation, report))
      continue
    if (isForeign(observation, subject.contextId, report.source)) continue
    // What leaves its skill is nobody's to see here, and no news of this task.
    const claim = report.ahead ? { event: report.ahead.of } : observation
    if (!claimsAnother(claim, subject.skillId)) told(observation, report.source)
    else if (!report.ahead && saidOnce.has(report.source)) subject.crossed.add(report.source)
  }
  report.ahead?.folded(from, subject.fold.version)
  subject.sources.add(report.source)
  subject.isSeenAgain ||= report.isSeenAgain === true
}

/** A message need not name its task [a2a.proto v1.0.1, Message.task_id is optional]: on a task's own stream it is of that one. */
const isUnnamed = ({ kind, taskId }: Observation, { source }: Report): boolean =>
  kind === 'message' && taskId === null && source === 'stream'

/**
 * An event of another conversation, whatever task it names: an agent has mixed up what it tells. What we asked for by the task's own
 * name is that task, whatever its context is called by now.
 */
const isForeign = (observation: Observation, contextId: string | null, source: Report['source']): boolean =>
  (source === 'stream' || source === 'push') && isOfAnother(observation.contextId, contextId)

/** The stream that told of an artifact lately tells the rest of it, too. */
const latelyEvents = 100

/**
 * What has to be known of the artifacts that answers show: whether more was told of them since the agent was asked. What a task makes is told in
 * order by its stream, and an answer to what was said meanwhile may as well be ahead of that: then it is asked of the time before, too.
 */
function overtakingOf(batch: BatchContext, reports: readonly Told[]): ToldQuestion[] {
  return reports.flatMap(({ report }): ToldQuestion[] => {
    const remoteId = remoteIdOf(report)
    const row = remoteId === null ? undefined : batch.tasks.get(keyOf({ ...report, remoteId }))
    if (!row || report.asked === undefined) return []
    const isStreamed = report.source === 'reply' && batch.isAtWork({ kind: 'subscription', id: row.id }, 'follow')
    const since = isStreamed ? Math.max(0, report.asked - latelyEvents) : report.asked
    if (since >= row.version) return []
    const shown = new Set(report.observations.flatMap(({ artifacts }) => artifacts.map(({ artifactId }) => artifactId)))
    return [...shown].map((artifactId) => ({ taskId: row.id, artifactId, since }))
  })
}

/** Whether the task stands as it did when the agent was asked: what it answered is newer then, and may be older otherwise. */
function standingOf({ overrules, asked }: Report, { id, fold }: Subject, told: ReadonlySet<string>): Standing {
  const isPresent = overrules === fold.version
  if (asked === undefined) return { isPresent }
  // What came with the same commit is newer, too, than what was asked for before it.
  const isOvertaken = (artifactId: string): boolean =>
    told.has(artifactKey(id, artifactId)) || fold.told.has(artifactId)
  return { isPresent, answer: { asked, isBehind: asked !== fold.version, isOvertaken } }
}

/** It shows a state and no more; what stands in the status is the state's own word. */
const isBare = ({ artifacts, messages }: Observation): boolean =>
  artifacts.length === 0 && messages.every(({ fromStatus }) => fromStatus)

/** Tells what changed, and has it written with the batch. A reply is told even when it changed nothing: it means that somebody answered. */
function settle(batch: BatchContext, subjects: readonly Subject[]): Effects {
  const writes: TaskWrite[] = []
  const told: ToldFact[] = []
  for (const subject of subjects) {
    const folded = subject.fold.result()
    const { id, fresh, contextId, organizationId, agentId } = subject
    const sources = [...subject.sources]
    if (folded.changed || fresh) writes.push({ id, fresh: fresh && { ...fresh, contextId }, contextId, folded })
    const tell = (fact: Fact): void => void told.push({ organizationId, subjectId: id, fact })
    for (const source of subject.crossed) tell({ type: 'task.crossed', source })
    if (subject.isSeenAgain) tell({ type: 'task.seen_again', state: folded.state })
    if (!folded.changed && !fresh && !subject.sources.has('reply')) continue
    const { state, stateAt, version } = folded
    const { before } = subject
    // With an older time than the one that was known it is no other question: its agent's clock says so (second-looks.ts).
    const isAskedLater = stateAt !== null && isLater(stateAt, before.stateAt)
    const asksAnew = isWaiting(state) && (state !== before.state || isAskedLater)
    const asking = { asksAnew, ...(isWaiting(before.state) && { wasAsking: true as const }) }
    tell({ type: 'task.observed', state, version, sources, created: fresh !== null, ...asking, agentId })
    if (subject.end) tell({ type: 'task.settled', state, sources, created: fresh !== null, agentId, ...subject.end })
  }
  if (writes.length > 0) batch.writes.push(() => writeTasks(batch.tx, writes, batch.at.toISOString()))
  return { told }
}
