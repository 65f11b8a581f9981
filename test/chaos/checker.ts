/**
 * The judge: from what the callers were told, what the agent wrote down, what the database holds and when something was
 * broken, it says which promises were kept. A pure function over joined logs; owns the promises I1 to I8, and no way of
 * making or reading a history (load.ts, agent.ts, books.ts).
 *
 * I1 every accepted command is readable and ends. I2 no message id, and no cancel of a task, is in the agent's log twice. I3 succeeded means one
 * receipt and the agent's own answer stored; failed means none, unless the agent wrote down that it refused; uncertain means
 * none or one. I4 uncertain only where a fault overlapped the dispatch. I5 a status never goes back, and no revision,
 * version or audit row is missing, and the audit chain links every row. I6 a key gives the same command for ever. I7 the tasks known here are as the agent has
 * them. I8 no 5xx but 502, 503 and 504, no unhandled rejection, no process that ends by itself, memory back to +20 %.
 */
import type { AgentTask, Receipt } from './agent.ts'
import type { Books } from './books.ts'
import { faultWords } from '../../domain/audit-chain.ts'

export interface Attempt {
  /** Milliseconds since the epoch. */
  readonly sentAt: number
  /** Null: the connection broke before an answer was whole. */
  readonly status: number | null
  readonly commandId: string | null
}

/** One thing that a caller wanted, and every time it asked for it, always under the same key and with the same content. */
export interface Ask {
  readonly key: string
  readonly messageId: string
  readonly attempts: Attempt[]
}

export interface FinalCommand {
  readonly id: string
  readonly messageId: string
  readonly status: string
  /** The id of the agent's message or task, and its words where it has some. */
  readonly answer: { readonly id: string; readonly text: string | null } | null
}

export interface SeenStatus {
  readonly commandId: string
  readonly at: number
  readonly status: string
}

/** Something was broken from one instant to another (milliseconds since the epoch), its consequences included. */
export interface Fault {
  readonly what: string
  readonly from: number
  readonly to: number
}

export interface ProcessEnd {
  readonly name: string
  readonly output: string
  /** Null while it runs. A signal's name or an exit code. */
  readonly ended: string | null
  /** What its end was meant to be; null: it was to go on. */
  readonly expected: string | null
}

export interface MemoryMark {
  readonly name: string
  readonly beforeBytes: number
  readonly afterBytes: number
}

export interface History {
  readonly asks: readonly Ask[]
  readonly receipts: readonly Receipt[]
  readonly agentTasks: readonly AgentTask[]
  /** Where their agents are; tasks of others are not judged by them. */
  readonly agentOrigin: string
  /** By command id, read over HTTP at the end. A command that cannot be read is not here. */
  readonly finals: ReadonlyMap<string, FinalCommand>
  readonly seen: readonly SeenStatus[]
  readonly books: Books
  readonly faults: readonly Fault[]
  /** Statuses of every other request that was made while it stormed. */
  readonly otherStatuses: readonly number[]
  readonly processes: readonly ProcessEnd[]
  readonly memory: readonly MemoryMark[]
}

const ranks: Readonly<Record<string, number>> = { pending: 0, dispatching: 1, succeeded: 2, failed: 2, uncertain: 2 }
const terminal = new Set(['succeeded', 'failed', 'uncertain'])
/** A process is as large after a storm as before it, but for what it learned. */
export const memoryGrowthMax = 1.2

/** Every broken promise, in words; none when all were kept. */
export function violations(history: History): string[] {
  const known = join(history)
  return [
    ...known.flatMap(endless),
    ...twice(history.receipts),
    ...unasked(history),
    ...known.flatMap(untrue),
    ...known.flatMap((command) => groundless(command, history.faults)),
    ...backwards(history),
    ...gaps(history.books),
    ...history.books.chains.flatMap(unchained),
    ...history.asks.flatMap(forgetful),
    ...differing(history),
    ...history.books.astray.map((words) => `I7: ${words}`),
    ...unhealthy(history),
  ]
}

/** All that is known of one command. */
interface Joined {
  readonly id: string
  readonly ask: Ask
  readonly final: FinalCommand | undefined
  readonly receipts: readonly Receipt[]
  readonly log: readonly Books['log'][number][]
}

const acceptedIds = (ask: Ask): string[] => [
  ...new Set(ask.attempts.flatMap(({ commandId }) => (commandId === null ? [] : [commandId]))),
]

function join({ asks, finals, receipts, books }: History): Joined[] {
  const receiptsOf = Map.groupBy(receipts, (receipt) => receipt.messageId)
  const logOf = Map.groupBy(
    books.log.filter((entry) => entry.kind === 'command'),
    (entry) => entry.actorId,
  )
  return asks.flatMap((ask) =>
    acceptedIds(ask).map((id) => ({
      id,
      ask,
      final: finals.get(id),
      receipts: receiptsOf.get(ask.messageId) ?? [],
      log: logOf.get(id) ?? [],
    })),
  )
}

function endless({ id, ask, final }: Joined): string[] {
  if (!final) return [`I1: ${id} (key ${ask.key}) was accepted and cannot be read.`]
  return terminal.has(final.status) ? [] : [`I1: ${id} (key ${ask.key}) is still ${final.status}.`]
}

function twice(receipts: readonly Receipt[]): string[] {
  return [...Map.groupBy(receipts, (receipt) => receipt.messageId)].flatMap(([messageId, { length }]) =>
    length > 1 ? [`I2: ${messageId} reached the agent ${length} times.`] : [],
  )
}

/** What nobody asked for was delivered, or what was never answered by a command. */
function unasked({ asks, receipts }: History): string[] {
  const asked = new Map(asks.map((ask) => [ask.messageId, ask]))
  return receipts.flatMap(({ messageId }) => {
    const ask = asked.get(messageId)
    if (!ask) return [`I2: ${messageId} reached the agent and nobody had asked for it.`]
    return acceptedIds(ask).length === 0 ? [`I2: ${messageId} reached the agent and its key gives no command.`] : []
  })
}

function untrue({ id, ask, final, receipts }: Joined): string[] {
  if (!final) return []
  const at = `${id} (${ask.messageId})`
  if (final.messageId !== ask.messageId) return [`I3: ${at} holds the message ${final.messageId}.`]
  const [receipt] = receipts
  if (final.status === 'succeeded') {
    if (!receipt) return [`I3: ${at} succeeded and the agent has no receipt.`]
    if (final.answer?.id !== receipt.answer)
      return [`I3: ${at} stores ${final.answer?.id ?? 'nothing'}, the agent answered ${receipt.answer}.`]
    const words = receipt.answer.startsWith('answer-') ? `Answer to ${ask.messageId}.` : null
    if (words !== null && final.answer.text !== words) return [`I3: ${at} stores the words "${final.answer.text}".`]
  }
  // An agent may read a message and decline it: then the receipt itself says so, and "failed" is the truth.
  if (final.status === 'failed' && receipt && receipt.answer !== 'refused')
    return [`I3: ${at} failed and the agent answered ${receipt.answer}.`]
  return []
}

const dispatched = (value: unknown): boolean => value === 'dispatching'

/** A verdict of doubt needs a reason: something was broken between its dispatch and its end. */
function groundless({ id, ask, final, log }: Joined, faults: readonly Fault[]): string[] {
  if (final?.status !== 'uncertain') return []
  const from = log.find((entry) => dispatched(entry.value))?.at
  const to = log.at(-1)?.at
  if (from === undefined || to === undefined) return [`I4: ${id} is uncertain and was never dispatched.`]
  const reason = faults.some((fault) => fault.from <= to && fault.to >= from)
  if (reason) return []
  const span = `${new Date(from).toISOString()} to ${new Date(to).toISOString()}`
  return [`I4: ${id} (${ask.messageId}) is uncertain, and nothing was broken from ${span}.`]
}

const statusOf = (value: unknown): string => (typeof value === 'string' ? value : 'pending')

function backwards({ seen, finals, books }: History): string[] {
  const found: string[] = []
  const look = (id: string, states: readonly string[], where: string): void => {
    states.forEach((status, i) => {
      const before = states[i - 1]
      if (before === undefined || before === status) return
      if ((ranks[status] ?? -1) <= (ranks[before] ?? -1))
        found.push(`I5: ${id} went from ${before} to ${status} (${where}).`)
    })
  }
  const log = books.log.filter((entry) => entry.kind === 'command')
  for (const [id, entries] of Map.groupBy(log, (entry) => entry.actorId)) {
    const states = entries.map(({ value }) => statusOf(value))
    look(id, states, 'log')
    const final = finals.get(id)
    if (final && states.at(-1) !== final.status)
      found.push(`I5: ${id} reads ${final.status}, its log ends with ${states.at(-1)}.`)
  }
  for (const [id, marks] of Map.groupBy(seen, (mark) => mark.commandId)) {
    const states = marks.toSorted((a, b) => a.at - b.at).map(({ status }) => status)
    look(id, [...states, ...(finals.get(id) ? [finals.get(id)?.status ?? ''] : [])], 'seen')
  }
  return found
}

/** Numbers that have to be 1, 2, 3 and so on, whoever was killed between two of them. */
function gaps({ log, versions, events, tasks, audits, commands }: Books): string[] {
  const found: string[] = []
  for (const [id, entries] of Map.groupBy(log, ({ kind, actorId }) => `${kind}/${actorId}`)) {
    const revisions = entries.map(({ revision }) => revision)
    // What others do over and over (a poll that finds nothing) leaves no entry; every step of a command does.
    const why = id.startsWith('command/') ? notCounting(revisions) : notGrowing(revisions)
    found.push(...why.map((each) => `I5: the log of ${id} ${each}.`))
  }
  const kept = Map.groupBy(events, ({ taskId }) => taskId)
  const told = Map.groupBy(versions, ({ taskId }) => taskId)
  for (const { id, version } of tasks) {
    const positions = (kept.get(id) ?? []).map(({ position }) => position)
    found.push(...notCounting(positions).map((why) => `I5: the events of task ${id} ${why}.`))
    if (positions.length !== version)
      found.push(`I5: task ${id} has version ${version} and ${positions.length} events.`)
    // One fact may tell of several events, and of none when it repeats what is known; it never goes back.
    const said = (told.get(id) ?? []).map((each) => each.version)
    if (said.some((each, n) => each < (said[n - 1] ?? 0))) found.push(`I5: the versions told of task ${id} go back.`)
    if (said.at(-1) !== version) found.push(`I5: task ${id} has version ${version}, its facts end at ${said.at(-1)}.`)
  }
  const audited = Map.groupBy(audits, ({ subjectId }) => subjectId)
  for (const { id } of commands) {
    const rows = audited.get(id)?.length ?? 0
    if (rows !== 1) found.push(`I5: command ${id} has ${rows} audit rows of its acceptance.`)
  }
  for (const id of audited.keys())
    if (!commands.some((command) => command.id === id))
      found.push(`I5: the audit knows command ${id}, which is not there.`)
  return found
}

/** Whoever was killed between a row and its link: whoever came next has linked it, and nothing else. */
function unchained({ organizationId, rows, links, fault }: Books['chains'][number]): string[] {
  const at = `I5: the audit chain of ${organizationId}`
  if (fault) return [`${at} does not hold: ${faultWords(fault)}`]
  return rows === links ? [] : [`${at} has ${links} links of ${rows} rows.`]
}

function notCounting(numbers: readonly number[]): string[] {
  const first = numbers[0]
  if (first === undefined) return ['are empty']
  if (first > 1) return [`begin with ${first}`]
  const at = numbers.findIndex((number, i) => number !== first + i)
  return at === -1 ? [] : [`go from ${numbers[at - 1]} to ${numbers[at]}`]
}

const notGrowing = (numbers: readonly number[]): string[] =>
  numbers.some((number, i) => number <= (numbers[i - 1] ?? -1)) ? [`repeats or goes back: ${numbers.join(', ')}`] : []

function forgetful(ask: Ask): string[] {
  const ids = acceptedIds(ask)
  if (ids.length > 1) return [`I6: key ${ask.key} gave ${ids.join(' and ')}.`]
  return ids.length === 0 ? [`I6: key ${ask.key} never gave a command.`] : []
}

function differing({ agentTasks, agentOrigin, books, finals }: History): string[] {
  const ours = new Map(books.tasks.map((task) => [task.remoteId, task]))
  const answered = new Set([...finals.values()].map(({ answer }) => answer?.id))
  const found: string[] = []
  for (const theirs of agentTasks) {
    const task = ours.get(theirs.id)
    if (!task) {
      // A delivery whose answer was lost made a task that nobody here may have heard of: its command says that it is in doubt.
      if (answered.has(theirs.id)) found.push(`I7: task ${theirs.id} was answered and is not known here.`)
      continue
    }
    const state = `TASK_STATE_${theirs.state.toUpperCase().replace('-', '_')}`
    if (task.state !== state) found.push(`I7: task ${theirs.id} is ${task.state} here and ${state} at the agent.`)
    else if (task.text !== theirs.chunks.join(''))
      found.push(`I7: task ${theirs.id} reads "${task.text}" here and "${theirs.chunks.join('')}" at the agent.`)
  }
  const told = new Set(agentTasks.map(({ id }) => id))
  const theirs = books.tasks.filter(({ cardUrl }) => cardUrl.startsWith(`${agentOrigin}/`))
  for (const { remoteId } of theirs)
    if (remoteId !== null && !told.has(remoteId)) found.push(`I7: task ${remoteId} is known here, and no agent has it.`)
  return found
}

const allowed5xx = new Set([502, 503, 504])
const unhandled = /unhandled|uncaught|"msg":"a loop failed"|The supervisor gave up/i

function unhealthy({ asks, otherStatuses, processes, memory }: History): string[] {
  const statuses = [...asks.flatMap((ask) => ask.attempts.map(({ status }) => status ?? 0)), ...otherStatuses]
  const wrong = statuses.filter((status) => status >= 500 && !allowed5xx.has(status))
  const found = wrong.length === 0 ? [] : [`I8: ${wrong.length} answers with ${[...new Set(wrong)].join(', ')}.`]
  for (const { name, output, ended, expected } of processes) {
    const line = output.split('\n').find((each) => unhandled.test(each))
    if (line !== undefined) found.push(`I8: ${name} wrote: ${line.slice(0, 500)}`)
    if (ended !== expected)
      found.push(`I8: ${name} ended with ${ended ?? 'nothing'}, expected ${expected ?? 'nothing'}.`)
  }
  for (const { name, beforeBytes, afterBytes } of memory) {
    if (afterBytes > beforeBytes * memoryGrowthMax)
      found.push(`I8: ${name} holds ${mebibytes(afterBytes)} MiB after ${mebibytes(beforeBytes)} MiB.`)
  }
  return found
}

const mebibytes = (bytes: number): number => Math.round(bytes / 1024 / 1024)
