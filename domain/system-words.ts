/**
 * How processes and the whole system stand, in words and a tone, by what is known of the queues and by what each process
 * told of itself. What is not known is said to be so, and never judged. Pure, by times that are handed in. Does not own the
 * numbers (domain/queue.ts) or how one queue or loop stands (domain/queue-words.ts).
 */
import { silentAfterMs, slowAnswerMs } from './patience.ts'
import {
  attentionCountLimit,
  queueCountLimit,
  type KindQueue,
  type QueuesAnswer,
  type SupervisorAnswer,
  type ToldProcess,
} from './queue.ts'
import {
  inside,
  kindTitle,
  loopTrouble,
  queueSentence,
  type Holders,
  type LoopTrouble,
  type Places,
  type Standing,
} from './queue-words.ts'

export type SeenQueues = Pick<QueuesAnswer, 'at' | 'kinds' | 'leases' | 'processes'>

/**
 * Why nothing is known of the queues now. `unasked`: no answer came yet. `late`: the last one is too old to be judged.
 * `since`: when they were last known, as the reader writes times; null: never.
 */
export interface Missing {
  readonly why: 'unasked' | 'late' | 'database' | 'console' | 'refused'
  readonly since: string | null
}

/** The queues as they are, or why that is not known. */
export type QueuesNews = { readonly known: SeenQueues } | { readonly missing: Missing }

const away: Readonly<Record<'database' | 'console' | 'refused', string>> = {
  database: 'The database does not answer',
  console: 'The console does not answer',
  refused: 'What waits could not be read',
}

export function missingStanding({ why, since }: Missing): Standing {
  if (why === 'unasked' || why === 'late')
    return { tone: 'quiet', words: since === null ? 'Not known yet' : `Not known since ${since}` }
  return { tone: 'warn', words: since === null ? away[why] : `${away[why]}; numbers as of ${since}` }
}

/**
 * `heardMs`, here and below: when what is known of others was read. Who is judged by a clock that runs on from there falls silent while
 * the next answer is on its way.
 */
const silenceMs = ({ seenAt }: ToldProcess, heardMs: number): number => heardMs - Date.parse(seenAt)
export const isSilent = (process: ToldProcess, heardMs: number): boolean => silenceMs(process, heardMs) >= silentAfterMs

/** What holds work, but for the process that answers, which is heard of by its answer. */
export const holdersOf = (
  { leases, processes }: Pick<QueuesAnswer, 'leases' | 'processes'>,
  own: SupervisorAnswer,
  heardMs: number,
): Holders => ({
  leases,
  silent: new Set(
    beside(own, processes)
      .filter((each) => isSilent(each, heardMs))
      .map(({ owner }) => owner),
  ),
})

const plainState = (value: SupervisorAnswer['supervisor']['value']): string =>
  typeof value === 'string' ? value : (Object.keys(value)[0] ?? '')
const isIn = ({ told }: ToldProcess, ...states: readonly string[]): boolean =>
  told !== null && states.includes(plainState(told.supervisor.value))

/** What the machine's present state means for whoever waits. */
const supervisorWords: Readonly<Record<string, Standing>> = {
  starting: { tone: 'quiet', words: 'Starting' },
  draining: { tone: 'warn', words: 'Draining: this process stops' },
  stopped: { tone: 'bad', words: 'Stopped' },
  broken: { tone: 'bad', words: 'Gave up: this process ends' },
}

type LoopSentence = readonly [LoopTrouble, Standing['tone'], one: string, many: string]

/** The worst first, with what is said of one loop and of several. */
const loopSentences: readonly LoopSentence[] = [
  ['off', 'bad', 'does not run', 'do not run'],
  ['restarting', 'warn', 'failed and starts again', 'failed and start again'],
  ['database', 'warn', 'waits for the database', 'wait for the database'],
  ['artifacts', 'warn', 'waits for the files’ directory', 'wait for the files’ directory'],
]
/** A loop's outage is told for a while after it; whoever has just read the queues knows that this one is over. */
const sentencesOnceRead = loopSentences.map((each): LoopSentence =>
  each[0] === 'database'
    ? ['database', 'warn', 'waited for the database just now', 'waited for the database just now']
    : each,
)

/** The worst of what there is to say of one process; null: nothing. `sentences`: of its loops. */
function troubleOf(
  { supervisor, process }: SupervisorAnswer,
  nowMs: number,
  sentences: readonly LoopSentence[],
): Standing | null {
  const whole = supervisorWords[plainState(supervisor.value)]
  if (whole) return whole
  for (const [trouble, tone, one, many] of sentences) {
    const [first, ...more] = process.loops.filter((loop) => loopTrouble(loop, nowMs) === trouble)
    if (!first) continue
    return more.length === 0
      ? { tone, words: `The ${first.name} loop ${one}` }
      : { tone, words: `${more.length + 1} loops ${many}` }
  }
  return null
}

/** For how long a process waits for an answer of the database, which is not always the database's doing: its own connections may be taken. */
function slowAnswers({ process: { database } }: SupervisorAnswer): Standing | null {
  const { answerMs = 0, waiting } = database
  if (answerMs < slowAnswerMs) return null
  const crowd = waiting === 0 ? '' : `, ${waiting} waiting for a connection`
  return { tone: 'warn', words: `Answers of the database take ${(answerMs / 1000).toFixed(1)} s${crowd}` }
}

/** The first of the worst. */
const worstOf = <T extends Pick<Standing, 'tone'>>(troubled: readonly T[]): T | undefined =>
  troubled.find(({ tone }) => tone === 'bad') ?? troubled[0]

/** The process that answers, as if it told of itself now. Where the others do not know it yet it is nobody's successor. */
export const toldNow = (own: SupervisorAnswer, all: readonly ToldProcess[], nowMs: number): ToldProcess => ({
  firstSeenAt: new Date(0).toISOString(),
  holds: false,
  ...all.find(({ owner }) => owner === own.process.owner),
  owner: own.process.owner,
  seenAt: new Date(nowMs).toISOString(),
  told: own,
})

/** The other processes on the database. */
export const beside = ({ process }: SupervisorAnswer, all: readonly ToldProcess[]): ToldProcess[] =>
  all.filter(({ owner }) => owner !== process.owner)

/** "45 s", "7 min": how long ago, for reading. */
const agoWords = (ms: number): string => (ms < 60_000 ? `${Math.floor(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min`)

/**
 * Who is silent and nobody need miss: they hold nothing any more, and for each of them another of its kind (one that works, or one
 * that only serves) was first heard of after it was heard of last. Whether that one lives is its own affair: if it ended too, it is the
 * one to be missed, unless it was replaced itself. `processes`: all of them, the one that answers among them.
 */
export function replacedOwners(processes: readonly ToldProcess[], heardMs: number): ReadonlySet<string> {
  const replaced = new Set<string>()
  for (const works of [true, false]) {
    const ofKind = processes.filter(({ told }) => told?.process.works === works)
    const since = ofKind
      .filter((each) => isIn(each, 'starting', 'running'))
      .map(({ owner, firstSeenAt }) => ({ owner, firstMs: Date.parse(firstSeenAt) }))
      .toSorted((a, b) => a.firstMs - b.firstMs)
    // Who drained is not missed anyway, so it needs no successor.
    const gone = ofKind.filter((each) => isSilent(each, heardMs) && !isIn(each, 'draining', 'stopped') && !each.holds)
    // The first to fall silent has the first that came after it.
    for (const { owner, seenAt } of gone.toSorted((a, b) => a.seenAt.localeCompare(b.seenAt))) {
      // Who told of itself once was heard of first and last at the same time.
      const successor = since.findIndex((each) => each.owner !== owner && each.firstMs >= Date.parse(seenAt))
      if (successor < 0) break
      since.splice(0, successor + 1)
      replaced.add(owner)
    }
  }
  return replaced
}

/** How a process stands by what it last told of itself; `isReplaced`: nobody need miss it. */
export function processStanding(process: ToldProcess, nowMs: number, isReplaced: boolean): Standing {
  const { told } = process
  if (isSilent(process, nowMs)) {
    const ago = agoWords(silenceMs(process, nowMs))
    if (isIn(process, 'draining', 'stopped'))
      return { tone: 'quiet', words: `Silent for ${ago}: it ended while it drained` }
    return isReplaced
      ? { tone: 'quiet', words: `Silent for ${ago}: it ended, holds nothing, and another was started since` }
      : { tone: 'warn', words: `Silent for ${ago}: it ended without a word, or does not reach the database` }
  }
  if (told === null) return { tone: 'quiet', words: 'Lives; it is of another release' }
  return (
    troubleOf(told, nowMs, sentencesOnceRead) ??
    slowAnswers(told) ?? {
      tone: 'ok',
      words: told.process.works ? 'Works' : 'Serves, and leaves the work to others',
    }
  )
}

/** What a process is, where there is room for a few letters: the end of a long host's name, which tells neighbours apart. */
export function shortOwner(owner: string): string {
  const [host = '', ...rest] = owner.split('/')
  return host.length > 16 ? [`…${host.slice(-12)}`, ...rest].join('/') : owner
}

/** The process whose loops are worth seeing: the one that answers, or a worker that lives where that one leaves the work to others. */
export function workingProcess(own: SupervisorAnswer, all: readonly ToldProcess[], heardMs: number): string {
  if (own.process.works) return own.process.owner
  const worker = beside(own, all).find((each) => !isSilent(each, heardMs) && each.told?.process.works)
  return worker?.owner ?? own.process.owner
}

/** One line for the whole: the worst of what there is to say. `nowMs` is for the process that answers alone. */
export function systemStanding(answer: SupervisorAnswer, news: QueuesNews, nowMs: number): Standing {
  const own = troubleOf(answer, nowMs, 'known' in news ? sentencesOnceRead : loopSentences)
  if ('missing' in news) {
    const { why } = news.missing
    // What this process says of itself needs no database; but that it does not answer is the cause of what only waits for it.
    const isLate = why === 'unasked' || why === 'late'
    const isTold = own !== null && why !== 'console' && (own.tone === 'bad' || isLate)
    if (isTold) return own
    return (isLate ? slowAnswers(answer) : null) ?? missingStanding(news.missing)
  }
  if (own?.tone === 'bad') return own
  const queues = news.known
  const others = beside(answer, queues.processes)
  const heardMs = Date.parse(queues.at)
  return (
    noWorker(answer, others, queues, heardMs) ??
    own ??
    othersTrouble(others, heardMs) ??
    together(
      silence(answer, queues.processes, heardMs),
      slowSomewhere(answer, others, heardMs) ?? queuesStanding(answer, queues, heardMs),
    )
  )
}

/** Who is silent is often why something waits: both are said. */
const together = (silent: Standing | null, queues: Standing): Standing =>
  silent === null || queues.tone !== 'warn'
    ? (silent ?? queues)
    : { tone: 'warn', words: `${silent.words}; ${inside(queues.words)}` }

function noWorker(
  { process }: SupervisorAnswer,
  others: readonly ToldProcess[],
  { leases }: SeenQueues,
  heardMs: number,
): Standing | null {
  if (process.works) return null
  const isWorker = (each: ToldProcess): boolean =>
    !isSilent(each, heardMs) && (each.told === null || (each.told.process.works && isIn(each, 'starting', 'running')))
  if (others.some(isWorker)) return null
  // A worker of an earlier release tells nothing of itself; its leases do.
  const told = new Set(others.map(({ owner }) => owner))
  if (leases.some(({ owner, held, expired }) => held > expired && !told.has(owner))) return null
  return { tone: 'bad', words: 'No worker runs: what was accepted waits until one does' }
}

/** Of the process that answers, or of another that lives. It is often why something waits, and said in the place of that. */
function slowSomewhere(own: SupervisorAnswer, others: readonly ToldProcess[], heardMs: number): Standing | null {
  const living = others.flatMap((each) => (each.told === null || isSilent(each, heardMs) ? [] : each.told))
  return [own, ...living].flatMap((each) => slowAnswers(each) ?? [])[0] ?? null
}

/** What those say that live. Others that start or drain are being replaced: that is how it is done. */
function othersTrouble(others: readonly ToldProcess[], heardMs: number): Standing | null {
  const troubled = others.flatMap((each) => {
    if (each.told === null || isSilent(each, heardMs) || isIn(each, 'starting', 'draining')) return []
    const trouble = troubleOf(each.told, heardMs, sentencesOnceRead)
    return trouble === null ? [] : [{ owner: each.owner, ...trouble }]
  })
  const worst = worstOf(troubled)
  return worst ? { tone: worst.tone, words: `${shortOwner(worst.owner)}: ${inside(worst.words)}` } : null
}

/**
 * Those that ended without a word. Who ended in order took its row along, who said that it drains is not missed, nor is who was
 * killed and replaced, so a rolling restart is no warning; a row that nobody renews is forgotten after ten minutes
 * (persistence/processes.ts), and the warning with it.
 */
function silence(own: SupervisorAnswer, all: readonly ToldProcess[], heardMs: number): Standing | null {
  const others = beside(own, all)
  const replaced = replacedOwners([toldNow(own, all, heardMs), ...others], heardMs)
  const expected = others.filter((each) => !isIn(each, 'draining', 'stopped') && !replaced.has(each.owner))
  const count = (all: readonly ToldProcess[], self: number, noun: string, nouns: string): Standing | null => {
    const silent = all.filter((each) => isSilent(each, heardMs)).length
    const of = all.length + self
    if (silent === 0) return null
    if (of === 1) return { tone: 'warn', words: `The only ${noun} is silent` }
    return { tone: 'warn', words: `${silent} of ${of} ${nouns} ${silent === 1 ? 'is' : 'are'} silent` }
  }
  const workers = expected.filter(({ told }) => told?.process.works)
  return count(workers, own.process.works ? 1 : 0, 'worker', 'workers') ?? count(expected, 1, 'process', 'processes')
}

function queuesStanding(answer: SupervisorAnswer, queues: SeenQueues, heardMs: number): Standing {
  const { kinds, processes } = queues
  const holders = holdersOf(queues, answer, heardMs)
  const late = kinds.flatMap((queue) => {
    const sentence = queueSentence(queue, holders, placesOf(answer, processes, queue.kind, heardMs), heardMs)
    return sentence === null ? [] : [{ kind: queue.kind, sentence }]
  })
  const [first] = late
  if (first && late.length === 1) return { tone: 'warn', words: first.sentence }
  if (first)
    return { tone: 'warn', words: `Waiting too long: ${late.map(({ kind }) => inside(kindTitle(kind))).join(', ')}` }
  const unseen = unseenWords(kinds)
  if (unseen !== null) return { tone: 'warn', words: unseen }
  const due = kinds.reduce((sum, queue) => sum + queue.due, 0)
  const more = due > queueCountLimit ? '+' : ''
  return { tone: 'ok', words: due === 0 ? 'Everything runs, nothing is due' : `Everything runs, ${due}${more} due` }
}

/** What the machinery is for does not come about, though all of it runs: agents' work goes on unseen. Null: nothing is known to. */
function unseenWords(kinds: readonly KindQueue[]): string | null {
  const unseen = (kind: string): number => kinds.find((queue) => queue.kind === kind)?.unseen ?? 0
  const tasks = unseen('subscription')
  const unread = unseen('reconciliation') > 0
  if (tasks === 0) return unread ? 'An agent cannot be read' : null
  const counted = tasks > attentionCountLimit ? `${attentionCountLimit}+` : tasks
  return `${counted} ${tasks === 1 ? 'task is' : 'tasks are'} not followed${unread ? ', an agent cannot be read' : ''}`
}

/**
 * Said beside how the whole stands, for most of it is no fault of the machinery: how many actors need attention. Not "a person": of a
 * task that is not followed there is only to know. Null: none is known to.
 */
export function needingStanding(news: QueuesNews): Standing | null {
  const needing = 'known' in news ? news.known.kinds.reduce((sum, { attention }) => sum + attention, 0) : 0
  if (needing === 0) return null
  return { tone: 'warn', words: `${needing} ${needing === 1 ? 'needs' : 'need'} attention` }
}

/** Places of a kind, in all processes that are known to live; null where none has any. */
export function placesOf(
  own: SupervisorAnswer,
  others: readonly ToldProcess[],
  kind: string,
  heardMs: number,
): Places | null {
  const alive = beside(own, others).filter((each) => !isSilent(each, heardMs))
  const places = [own.process, ...alive.map(({ told }) => told?.process)].flatMap(
    (each) => each?.loops.find(({ name }) => name === kind)?.places ?? [],
  )
  if (places.length === 0) return null
  return {
    taken: places.reduce((sum, each) => sum + each.taken, 0),
    limit: places.reduce((sum, each) => sum + each.limit, 0),
    perAgent: places.reduce((sum, each) => sum + each.perAgent, 0),
  }
}
