/**
 * How queues, loops and the whole system stand, in words and a tone: what is said beside a number so that a colour never
 * stands alone. Pure, by times that are handed in. Does not own the numbers (domain/queue.ts).
 */
import { stuckAfterMs } from './explanation.ts'
import { queueCountLimit, type HeldLeases, type KindQueue, type LoopView, type SupervisorAnswer } from './queue.ts'

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

/** Every loop looks at least once a second, so what has been due for long waits for room or for a worker. */
export function queueStanding(
  queue: KindQueue,
  leases: readonly HeldLeases[],
  places: LoopView['places'],
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
    return { tone: 'warn', words: `Waits for room: ${places.taken} of ${places.limit} places here are taken` }
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

/** One line for the whole: the worst of what there is to say. */
export function systemStanding(
  answer: SupervisorAnswer,
  queues: { readonly kinds: readonly KindQueue[]; readonly leases: readonly HeldLeases[] } | undefined,
  nowMs: number,
): Standing {
  const own = supervisorWords[plainState(answer.supervisor.value)]
  if (own) return own
  const { loops } = answer.process
  const troubled = loops.flatMap((loop) => {
    const { tone, words } = loopStanding(loop, nowMs)
    return tone === 'warn' || tone === 'bad' ? [{ name: loop.name, tone, words }] : []
  })
  const [worst] = troubled.toSorted((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
  if (worst) {
    const alike = troubled.filter(({ words }) => words === worst.words)
    const who = alike.length === 1 ? worst.name : `${alike.length} loops`
    return { tone: worst.tone, words: `${who}: ${worst.words.toLowerCase()}` }
  }
  const stuck = (queues?.kinds ?? []).flatMap((queue) => {
    const { tone, words } = queueStanding(queue, queues?.leases ?? [], placesOf(loops, queue.kind), nowMs)
    return tone === 'warn' ? [{ kind: queue.kind, words }] : []
  })
  const [first] = stuck
  if (first && stuck.length === 1)
    return { tone: 'warn', words: `${first.kind}: ${first.words.charAt(0).toLowerCase()}${first.words.slice(1)}` }
  if (first) return { tone: 'warn', words: `Waiting too long: ${stuck.map(({ kind }) => kind).join(', ')}` }
  const due = (queues?.kinds ?? []).reduce((sum, queue) => sum + queue.due, 0)
  const more = due > queueCountLimit ? '+' : ''
  return { tone: 'ok', words: due === 0 ? 'Everything runs, nothing waits' : `Everything runs, ${due}${more} due` }
}

export const placesOf = (loops: readonly LoopView[], kind: string): LoopView['places'] =>
  loops.find(({ name }) => name === kind)?.places ?? null
