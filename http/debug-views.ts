/**
 * An actor's row and log as they may be shown: titles, attention, edges, and only those values of a context or an event
 * that are named here. A context is never passed raw: what a machine learns to hold tomorrow must not appear by itself.
 */
import {
  activeNodes,
  edgesTaken,
  liveLeaves,
  onlyEdge,
  whatCanHappen,
  type ActorDetail,
  type ActorStep,
  type ActorSummary,
  type ChartEdge,
  type ChartNode,
  type NextEvent,
  type StateValue,
} from '../domain/chart.ts'
import type { LivingChart } from '../actors/charts.ts'
import { isDoubted, type Kind } from '../actors/loop/kinds.ts'
import type { ActorWait, DeliveryRecord } from '../domain/actor.ts'
import { isAbandoned } from '../domain/patience.ts'
import { shownCause } from '../domain/lost-answer.ts'
import { eventWords, guardWords } from '../domain/next-words.ts'
import type { ActorRecord, AttentionState, LogRecord } from '../persistence/actor-views.ts'
import type { Snapshot } from '../persistence/actors.ts'
import type { StoredWait } from '../persistence/queue-views.ts'
import type { SendRecord } from '../persistence/unsettled-sends.ts'
import { isUuid } from '../domain/uuid.ts'

/** Definitions by `<kind>@<version>`; an actor of a version that is not there is shown without edges. */
export type Definitions = ReadonlyMap<string, LivingChart>

export const definitionKey = (kind: string, version: string): string => `${kind}@${version}`

const shownContext: Readonly<Record<string, readonly string[]>> = {
  command: ['attempts', 'error'],
  subscription: ['failures', 'open', 'reads', 'reason', 'answered', 'missing'],
  ownership: ['assignee', 'claimedAt', 'dueAt', 'level', 'escalatedAt'],
  reconciliation: ['failures', 'reason', 'listReason', 'listUnread', 'passes'],
  push: ['failures', 'reason', 'settled'],
}
const shownEvent: ReadonlySet<string> = new Set([
  'at',
  'dueAt',
  'inMs',
  'claimedAt',
  'membershipId',
  'targetMembershipId',
])
const shownOutput: ReadonlySet<string> = new Set(['kind', 'reason', 'message', 'cause'])
const textLimit = 500

/** A value that is small by its type; anything with an inside is left out. */
function plain(value: unknown): unknown {
  if (typeof value === 'string') return value.length > textLimit ? `${value.slice(0, textLimit)}…` : value
  return value === null || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function pick(from: unknown, keys: Iterable<string>): Record<string, unknown> {
  if (!isRecord(from)) return {}
  const shown = [...keys].map((key) => [key, plain(Object.hasOwn(from, key) ? from[key] : undefined)] as const)
  return Object.fromEntries(shown.filter(([, value]) => value !== undefined))
}

type Happened = Readonly<Record<string, unknown>> & { readonly type: string }
const isEvent = (value: unknown): value is Happened => isRecord(value) && typeof value['type'] === 'string'

/** The log keeps an event as JSON text. What was told without an event (observations under a lease) has none: null. */
function happenedIn({ event }: LogRecord): Happened | null {
  const happened: unknown = JSON.parse(event)
  return isEvent(happened) ? happened : null
}

/** What of an event may be shown. */
function eventOf(event: Happened | null): ActorStep['event'] {
  if (!event) return { type: 'facts told' }
  const output = pick(event['output'], shownOutput)
  // The log keeps what an agent wrote there; of that only our own sentences are shown.
  if (typeof output['cause'] === 'string') output['cause'] = shownCause(output['cause'])
  return { type: event.type, ...pick(event, shownEvent), ...(Object.keys(output).length > 0 ? { output } : {}) }
}

/** Why it waits, with the places that a process has for its kind. */
export const placesOf = (
  wait: StoredWait | null,
  kind: Kind | undefined,
  context: Snapshot['context'],
): ActorWait | null =>
  wait && kind
    ? {
        ...wait,
        places: kind.concurrency,
        perAgent: kind.laneLimit,
        ...(kind.doubt && isDoubted(kind, context) ? { perDoubted: kind.doubt.places } : {}),
      }
    : null

/** Every state that a machine of ours marks for a person to look at, as its rows store it. */
export const attentionStates = (definitions: Definitions): readonly AttentionState[] =>
  [...definitions].flatMap(([key, { root }]) => {
    const kind = key.slice(0, key.lastIndexOf('@'))
    return marked(root).map((value) => ({ kind, state: JSON.stringify(value) }))
  })

/** The values of the marked leaves below a state; a parallel state's other regions are left open. */
function marked(node: ChartNode): readonly StateValue[] {
  return node.children.flatMap((child): readonly StateValue[] => {
    if (child.children.length === 0) return child.tags.includes('attention') ? [child.key] : []
    return marked(child).map((inner) => ({ [child.key]: inner }))
  })
}

const lostWorker = ({ work, workStartedAt, leaseOwner, leaseUntil, seenAt }: ActorRecord): boolean =>
  isAbandoned(
    {
      work: work === null ? null : { id: work, startedAt: workStartedAt },
      lease: leaseOwner === null || leaseUntil === null ? null : { owner: leaseOwner, until: leaseUntil },
    },
    Date.parse(seenAt),
  )

export function summaryOf(record: ActorRecord, definitions: Definitions): ActorSummary {
  const { kind, id, snapshot, work, revision, machineVersion, updatedAt, movedAt, settledAt, title } = record
  const definition = definitions.get(definitionKey(kind, machineVersion))
  const leaves = definition ? liveLeaves(activeNodes(definition, snapshot.value)) : []
  const marked = settledAt === null && leaves.some((node) => node.tags.includes('attention'))
  const { value, status } = snapshot
  const lost = lostWorker(record)
  return {
    kind,
    id,
    value,
    status,
    revision,
    machineVersion,
    updatedAt,
    movedAt,
    attention: lost || record.failsForLong || record.isLeftBehind || marked,
    // Until its lease is over it heals by itself, so that alone needs nobody.
    silent: lost || (work !== null && record.isHolderSilent),
    waits: record.isUntaken,
    title: title ?? '',
  }
}

export function detailOf(record: ActorRecord, definitions: Definitions): ActorDetail {
  const { kind, snapshot, machineVersion, work, workStartedAt, timers, leaseOwner, leaseUntil } = record
  const definition = definitions.get(definitionKey(kind, machineVersion))
  const next = definition ? whatCanHappen(definition, snapshot.value) : []
  return {
    ...summaryOf(record, definitions),
    createdAt: record.createdAt,
    context: pick(snapshot.context, shownContext[kind] ?? []),
    work: work === null ? null : { id: work, startedAt: workStartedAt },
    timers: Object.entries(timers)
      .map(([id, { dueAt }]) => ({ id, dueAt }))
      .toSorted((a, b) => a.dueAt.localeCompare(b.dueAt)),
    lease: leaseOwner === null || leaseUntil === null ? null : { owner: leaseOwner, until: leaseUntil },
    next: next.map(nextOf),
    agentId: record.agentId,
    agentName: record.agentName,
    taskId: record.taskId,
  }
}

/** The names are the chart's; the label says the same to a person. */
function nextOf({ event, guard }: NextEvent): ActorDetail['next'][number] {
  const label = eventWords(event)
  return guard === undefined ? { event, label } : { event, label: `${label}, if ${guardWords(guard)}`, guard }
}

const endings: Readonly<Record<string, DeliveryRecord['ended']>> = {
  replied: 'replied',
  refused: 'refused',
  unsent: 'unsent',
  crossed: 'crossed',
  unknown: 'unknown',
}

/** When a command's request may have left and how that ended, by its log: the step that marks it begun precedes every byte. */
export function deliveryOf(
  { action, localId, createdAt, error }: SendRecord,
  log: readonly LogRecord[],
): DeliveryRecord {
  const left = log.findIndex(({ value }) => value === 'dispatching')
  const last = log.at(-1)
  const record = { action, localId, acceptedAt: createdAt, leftAt: log[left]?.at ?? null }
  if (!last || (last.value !== 'succeeded' && last.value !== 'failed' && last.value !== 'uncertain'))
    return { ...record, endedAt: null, ended: null, cause: null }
  const { type, ...event } = eventOf(happenedIn(last))
  const { kind: output, cause, message } = isRecord(event['output']) ? event['output'] : {}
  const ended =
    left < 0
      ? 'undelivered'
      : type === 'interrupted'
        ? 'interrupted'
        : ((typeof output === 'string' ? endings[output] : undefined) ?? 'unknown')
  // Of a success the row alone knows what is to be said: its machine went the usual way. Of a search, what its last try came to.
  const said = last.value === 'succeeded' ? error : output === 'missed' ? message : cause
  return { ...record, endedAt: last.at, ended, cause: typeof said === 'string' ? said : null }
}

/** People among the causes of a log; everything else that causes a step is a word: `worker`, `timer`, `reaction`. */
export const peopleOf = (log: readonly LogRecord[]): ReadonlySet<string> =>
  new Set(log.map((entry) => entry.cause).filter((cause) => isUuid(cause)))

/** By the whole event, of which only a part is shown. */
function edgesOf(
  chart: LivingChart,
  previous: LogRecord | null,
  { revision, value }: LogRecord,
  happened: Happened,
): string[] {
  const refused = (edge: ChartEdge): boolean => chart.refused(edge, happened)
  return previous && previous.revision < revision - 1
    ? onlyEdge(chart, happened.type, value, refused)
    : edgesTaken(chart, previous?.value ?? null, happened.type, value, refused)
}

/** `before` is the entry that precedes the first of `log`; null where the log begins. */
export function stepsOf(
  kind: string,
  before: LogRecord | null,
  log: readonly LogRecord[],
  definitions: Definitions,
  names: ReadonlyMap<string, string>,
): readonly ActorStep[] {
  return log.map((entry, index) => {
    const { revision, at, value, facts, machineVersion, cause } = entry
    const happened = happenedIn(entry)
    const definition = definitions.get(definitionKey(kind, machineVersion))
    const edges = definition && happened ? edgesOf(definition, log[index - 1] ?? before, entry, happened) : []
    const by = names.get(cause) ?? (isUuid(cause) ? 'a person' : cause)
    return { revision, at, event: eventOf(happened), cause: by, value, facts, edges, machineVersion }
  })
}
