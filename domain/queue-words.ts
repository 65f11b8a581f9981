/**
 * How queues, loops and the whole system stand, in words and a tone: what is said beside a number so that a colour never
 * stands alone. Pure, by times that are handed in. Does not own the numbers (domain/queue.ts).
 */
import { stuckAfterMs } from './actor-explanation.ts'
import {
  queueCountLimit,
  type HeldLeases,
  type KindQueue,
  type LoopView,
  type QueuesAnswer,
  type SupervisorAnswer,
  type ToldProcess,
} from './queue.ts'

export interface Standing {
  readonly tone: 'ok' | 'quiet' | 'warn' | 'bad'
  readonly words: string
}

/** "12", or "10,000+" where counting stopped. */
export const countWords = (count: number, limit: number, format: (count: number) => string): string =>
  count > limit ? `${format(limit)}+` : format(count)

/** How long the oldest has been due, milliseconds; null where nothing is. */
export const oldestAgeMs = ({ oldestDueAt }: Pick<KindQueue, 'oldestDueAt'>, nowMs: number): number | null =>
  oldestDueAt === null ? null : Math.max(0, nowMs - Date.parse(oldestDueAt))

type Places = Pick<NonNullable<LoopView['places']>, 'taken' | 'limit'>

/** Every loop looks at least once a second, so what has been due for long waits for room or for a worker. */
export function queueStanding(
  queue: KindQueue,
  leases: readonly HeldLeases[],
  places: Places | null,
  nowMs: number,
): Standing {
  const ageMs = oldestAgeMs(queue, nowMs)
  if (ageMs === null) return { tone: 'ok', words: 'Nothing waits' }
  if (ageMs < stuckAfterMs) return { tone: 'quiet', words: 'Being taken' }
  const holders = leases.filter(({ kind }) => kind === queue.kind)
  const expired = holders.reduce((sum, each) => sum + each.expired, 0)
  if (expired > 0)
    return {
      tone: 'warn',
      words: `Stuck: ${expired} ${expired === 1 ? 'lease' : 'leases'} ran out and nobody took over`,
    }
  if (holders.length === 0) return { tone: 'warn', words: 'Stuck: nobody works on it' }
  if (places !== null && places.taken >= places.limit)
    return { tone: 'warn', words: `Waits for room: ${places.taken} of ${places.limit} places are taken` }
  return { tone: 'warn', words: 'Waits: for room, or for an agent that has all its places taken' }
}

/** An outage is over when a loop has gone on for longer than it waited, and a person had time to read of it. */
const outageToldMs = 30_000

export function loopStanding(loop: LoopView, nowMs: number): Standing {
  const { state, lastFailure, lastOutage } = loop
  if (state === 'off') return { tone: 'bad', words: 'Not running' }
  if (state === 'left') return { tone: 'quiet', words: 'Left to workers' }
  if (state === 'restarting') return { tone: 'warn', words: 'Failed, starting again' }
  if (lastOutage !== null && nowMs - Date.parse(lastOutage.at) < lastOutage.pauseMs + outageToldMs)
    return { tone: 'warn', words: 'Waiting for the database' }
  return lastFailure === null ? { tone: 'ok', words: 'Up' } : { tone: 'quiet', words: 'Up again' }
}

const purposes: Readonly<Record<string, string>> = {
  leases: 'renews what this process holds',
  command: 'finds agents and delivers',
  subscription: 'follows tasks',
  ownership: 'rings when a task is due',
  reconciliation: 'asks agents for what was missed',
  scopes: 'wakes whoever has something to ask for',
  push: 'asks agents to call',
  audit: 'links the audit trail and sees that it holds',
  freshness: 'sees what other processes committed',
  housekeeping: 'keeps the database small',
  presence: 'tells the other processes of this one',
}

/** What a loop is for; empty for one that this build has no words for. */
export const loopWords = (name: string): string => purposes[name] ?? ''

const plainState = (value: SupervisorAnswer['supervisor']['value']): string =>
  typeof value === 'string' ? value : (Object.keys(value)[0] ?? '')

/** What the machine's present state means for whoever waits. */
const supervisorWords: Readonly<Record<string, Standing>> = {
  starting: { tone: 'quiet', words: 'Starting' },
  draining: { tone: 'warn', words: 'Draining: this process stops' },
  stopped: { tone: 'bad', words: 'Stopped' },
  broken: { tone: 'bad', words: 'Gave up: this process ends' },
}

/** The worst of what there is to say of one process; null: nothing. */
function troubleOf({ supervisor, process }: SupervisorAnswer, nowMs: number): Standing | null {
  const whole = supervisorWords[plainState(supervisor.value)]
  if (whole) return whole
  const troubled = process.loops.flatMap((loop) => {
    const { tone, words } = loopStanding(loop, nowMs)
    return tone === 'warn' || tone === 'bad' ? [{ name: loop.name, tone, words }] : []
  })
  const worst = worstOf(troubled)
  if (!worst) return null
  const alike = troubled.filter(({ words }) => words === worst.words)
  const who = alike.length === 1 ? worst.name : `${alike.length} loops`
  return { tone: worst.tone, words: `${who}: ${inside(worst.words)}` }
}

/** The first of the worst. */
const worstOf = <T extends Pick<Standing, 'tone'>>(troubled: readonly T[]): T | undefined =>
  troubled.find(({ tone }) => tone === 'bad') ?? troubled[0]

const inside = (words: string): string => `${words.charAt(0).toLowerCase()}${words.slice(1)}`

/** Three times that it did not tell of itself. */
const silentAfterMs = 15_000
const silenceMs = ({ seenAt }: ToldProcess, nowMs: number): number => nowMs - Date.parse(seenAt)
const isSilent = (process: ToldProcess, nowMs: number): boolean => silenceMs(process, nowMs) >= silentAfterMs

/** The other processes that told of themselves lately. */
const livingBeside = ({ process }: SupervisorAnswer, all: readonly ToldProcess[], nowMs: number): ToldProcess[] =>
  all.filter((other) => other.owner !== process.owner && !isSilent(other, nowMs))

/** How a process stands by what it last told of itself. */
export function processStanding(process: ToldProcess, nowMs: number): Standing {
  const { told } = process
  if (isSilent(process, nowMs)) {
    const seconds = Math.floor(silenceMs(process, nowMs) / 1000)
    return { tone: 'warn', words: `Silent for ${seconds} s: it ended without a word, or does not reach the database` }
  }
  if (told === null) return { tone: 'quiet', words: 'Lives; it is of another release' }
  return (
    troubleOf(told, nowMs) ?? {
      tone: 'ok',
      words: told.process.works ? 'Works' : 'Serves, and leaves the work to others',
    }
  )
}

type SeenQueues = Pick<QueuesAnswer, 'kinds' | 'leases' | 'processes'>

/** One line for the whole: the worst of what there is to say. */
export function systemStanding(answer: SupervisorAnswer, queues: SeenQueues | undefined, nowMs: number): Standing {
  const own = troubleOf(answer, nowMs)
  if (own) return own
  const others = livingBeside(answer, queues?.processes ?? [], nowMs)
  const isWorker = ({ told }: ToldProcess): boolean =>
    told === null || (told.process.works && ['starting', 'running'].includes(plainState(told.supervisor.value)))
  // A worker of an earlier release tells nothing of itself; its leases do.
  const somebodyWorks = others.some(isWorker) || queues?.leases.some(({ held, expired }) => held > expired)
  if (queues && !answer.process.works && !somebodyWorks)
    return { tone: 'bad', words: 'No worker runs: what was accepted waits until one does' }
  const troubled = others.flatMap(({ owner, told }) => {
    const trouble = told === null ? null : troubleOf(told, nowMs)
    // Others that start or drain are being replaced: that is how it is done.
    const isPassing = told !== null && ['starting', 'draining'].includes(plainState(told.supervisor.value))
    return trouble === null || isPassing ? [] : [{ owner, ...trouble }]
  })
  const worst = worstOf(troubled)
  if (worst) return { tone: worst.tone, words: `${worst.owner}: ${inside(worst.words)}` }
  return queuesStanding(answer, queues, nowMs)
}

function queuesStanding(answer: SupervisorAnswer, queues: SeenQueues | undefined, nowMs: number): Standing {
  const stuck = (queues?.kinds ?? []).flatMap((queue) => {
    const places = placesOf(answer, queues?.processes ?? [], queue.kind, nowMs)
    const { tone, words } = queueStanding(queue, queues?.leases ?? [], places, nowMs)
    return tone === 'warn' ? [{ kind: queue.kind, words }] : []
  })
  const [first] = stuck
  if (first && stuck.length === 1) return { tone: 'warn', words: `${first.kind}: ${inside(first.words)}` }
  if (first) return { tone: 'warn', words: `Waiting too long: ${stuck.map(({ kind }) => kind).join(', ')}` }
  const due = (queues?.kinds ?? []).reduce((sum, queue) => sum + queue.due, 0)
  const more = due > queueCountLimit ? '+' : ''
  const words = due === 0 ? 'Everything runs, nothing waits' : `Everything runs, ${due}${more} due`
  const needing = (queues?.kinds ?? []).reduce((sum, queue) => sum + queue.attention, 0)
  if (needing === 0) return { tone: 'ok', words }
  return { tone: 'ok', words: `${words}; ${needing} ${needing === 1 ? 'needs' : 'need'} a person` }
}

/** Places of a kind, in all processes that are known to live; null where none has any. */
export function placesOf(
  own: SupervisorAnswer,
  others: readonly ToldProcess[],
  kind: string,
  nowMs: number,
): Places | null {
  const alive = livingBeside(own, others, nowMs)
  const places = [own.process, ...alive.map(({ told }) => told?.process)].flatMap(
    (each) => each?.loops.find(({ name }) => name === kind)?.places ?? [],
  )
  if (places.length === 0) return null
  return {
    taken: places.reduce((sum, each) => sum + each.taken, 0),
    limit: places.reduce((sum, each) => sum + each.limit, 0),
  }
}
