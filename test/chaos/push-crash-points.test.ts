/**
 * F3 of push: death around everything by which a task's agent comes to call, and around the commit of what it delivers, on both
 * databases (in the short pass on PostgreSQL, for a start of the embedded one costs 2 s of a processor). The witness calls and does not stream, in both versions and
 * bindings, repeats what was not answered 2xx, and shows a task to nobody who asks until its end was delivered: what is known of it
 * came by a call, once. Invariants are checker.ts's.
 */
import { describe, expect, it } from 'vitest'
import { eitherDatabase } from '../support/databases.ts'
import type { AgentTask, Call } from './agent.ts'
import type { History } from './checker.ts'
import { deathAt, heir } from './deaths.ts'
import { dialects } from './dialects.ts'
import type { CrashPoint } from './doomed/doom.ts'
import type { Member } from './fleet.ts'
import type { Load } from './load.ts'
import { storm } from './storm.ts'
import type { Stage } from './stage.ts'
import { isLong } from '../support/pass.ts'

interface Case {
  readonly point: CrashPoint
  /** The event that is delivered when the process dies. Null: it registers. */
  readonly event: Event | null
  /** How often the agent is told of the callback. */
  readonly told: 1 | 2
  /** Also in the short pass. */
  readonly brief?: true
}

/** What becomes of a task, in the witness's order (callbacks.ts). A second chunk is no news of a push, and is taken all the same. */
const events = ['turned', 'turned back', 'chunk', 'second chunk', 'end'] as const
type Event = (typeof events)[number]

const ofRegistering: readonly Case[] = [
  { point: 'callback/before-commit', event: null, told: 1 },
  // Nobody was told of the row; whoever comes next tells of that one and not of another.
  { point: 'callback/after-commit', event: null, told: 1, brief: true },
  { point: 'register/before-commit', event: null, told: 2, brief: true },
  // Every task comes by here: what a death there could cost, each of the others would lack.
  { point: 'register/after-commit', event: null, told: 1 },
]
const ofDeliveries = events.flatMap((event): readonly Case[] => [
  { point: 'push/before-commit', event, told: 1, ...(event === 'turned' ? { brief: true } : {}) },
  { point: 'push/after-commit', event, told: 1, ...(event === 'end' ? { brief: true } : {}) },
])
/** The end of a task takes its callback back. */
const ofRemoving: readonly Case[] = [
  { point: 'remove/before-commit', event: 'end', told: 1 },
  { point: 'remove/after-commit', event: 'end', told: 1 },
]
const cases: readonly Case[] = [...ofRegistering, ...ofDeliveries, ...ofRemoving]

/** A task under death: what is to be true of it is in its case. */
interface Victim extends Case {
  readonly taskId: string
  /** An agent that also answers who asks: what is learned by which way is then a race, and what is known is the same. */
  readonly isOpen: boolean
}

describe.each(eitherDatabase)('death around a push on %s', (database) => {
  const played = cases.filter(({ brief }) => isLong || brief)
  const passes = isLong ? ['called', 'called-openly', 'called', 'called-openly'] : ['called']
  const kills = passes.length * played.length

  it(`applies each delivery once and has one callback a task, at each of ${kills} deaths`, async () => {
    const victims: Victim[] = []
    let calls: readonly Call[] = []
    const options = { database, agentCalls: true }
    const history = await storm(`push crash points, ${database}`, options, async (stage, chance) => {
      let console_ = await stage.console({ storm: [] })
      const load = await stage.load(
        () => [console_.url],
        chance,
        () => 'called',
      )
      const agentIds = await stage.agents(console_.url)
      for (const [pass, words] of passes.entries()) {
        for (const [n, each] of played.entries()) {
          // Shifted by one a pass, so that a death does not meet the same version and binding for ever.
          const wish = load.wish(words, agentIds[(n + pass) % agentIds.length])
          const victim = { ...each, taskId: `task-${wish.messageId}`, isOpen: words !== 'called' }
          victims.push(victim)
          console_ = await play(stage, console_, load, victim, wish)
        }
      }
      const over = (): boolean => victims.every(({ taskId }) => live(stage.agent.calls(), taskId) === 0)
      await stage.until(over)
      calls = stage.agent.calls()
      return { load, figures: { kills, ...figuresOf(calls) } }
    })
    for (const victim of victims) judge(victim, history, calls)
  })
})

/** Leads one task from its beginning to its end over one death. Returns the process that lives after it. */
async function play(stage: Stage, first: Member, load: Load, victim: Victim, wish: ReturnType<Load['wish']>) {
  const { point, taskId } = victim
  let console_ = first
  if (victim.event === null) {
    await deathAt(stage, console_, point, () => load.ask(wish))
    console_ = await heir(stage)
  }
  const localId = await begun(load, wish)
  await stage.until(() => isRegistered(console_, localId))
  for (const event of events) {
    if (event !== victim.event) {
      await stage.agent.next(taskId)
      continue
    }
    let delivered = Promise.resolve()
    const work = (): Promise<void> => {
      delivered = stage.agent.next(taskId)
      // A process that never dies is reported first, and this is not left without anybody who listens.
      delivered.catch(() => undefined)
      return Promise.resolve()
    }
    // The last task's callback may be taken back only now.
    await deathAt(stage, console_, point, work, point.startsWith('remove/') ? localId : undefined)
    console_ = await heir(stage)
    await delivered
  }
  return console_
}

async function begun(load: Load, wish: ReturnType<Load['wish']>): Promise<string> {
  const id = await load.insist(wish)
  if (id === null) throw new Error('The command was not accepted.')
  const { result, status } = await load.ended(id)
  if (!result) throw new Error(`The command is ${status}.`)
  return result.localId
}

/** The outcome of the registration is committed, and not only the agent told: what follows is then no race with it. */
async function isRegistered(console_: Member, localId: string): Promise<boolean> {
  const response = await fetch(`${console_.url}/api/actors/push/${localId}`)
  if (!response.ok) return false
  const { actor } = (await response.json()) as { actor: { value: unknown } }
  return actor.value === 'registered'
}

const live = (calls: readonly Call[], taskId: string): number => {
  const ids = new Set<string>()
  for (const call of calls) {
    if (call.taskId !== taskId) continue
    if (call.what === 'configured') ids.add(call.id)
    if (call.what === 'forgotten') ids.delete(call.id)
  }
  return ids.size
}

type Delivered = Extract<Call, { what: 'delivered' }>

/** What was tried of each delivery, in the order of their first tries. */
const triesOf = (calls: readonly Call[]): readonly (readonly Delivered[])[] => [
  ...Map.groupBy(
    calls.filter((call) => call.what === 'delivered'),
    ({ deliveryId }) => deliveryId,
  ).values(),
]

function figuresOf(calls: readonly Call[]): Record<string, number> {
  const deliveries = triesOf(calls)
  return {
    registrations: calls.filter(({ what }) => what === 'configured').length,
    deliveries: deliveries.length,
    tries: deliveries.flat().length,
  }
}

/**
 * What is written of a task that only calls tell of: that it was sent, the answer, each event that is news, once however often it
 * was delivered, and what one look at the whole adds, where the end was told without it.
 */
function sourcesOf({ dialect }: Pick<AgentTask, 'dialect'>): readonly string[] {
  const told = ['sent', 'reply', 'push', 'push', 'push', 'push']
  return dialects[dialect].version === '1.0' ? [...told, 'poll'] : told
}

function judge(victim: Victim, { books, agentTasks }: History, calls: readonly Call[]): void {
  const { point, event, taskId, isOpen } = victim
  const at = { point, event, taskId, isOpen }
  const mine = calls.filter((call) => call.taskId === taskId)
  const configured = mine.filter((call) => call.what === 'configured')
  const same = new Set(configured.map(({ id, url, token, credentials }) => [id, url, token, credentials].join(' ')))
  const told = { times: configured.length, callbacks: same.size, live: Math.max(...configured.map(({ live }) => live)) }
  expect({ ...at, ...told }).toEqual({ ...at, times: victim.told, callbacks: 1, live: 1 })

  const deliveries = triesOf(mine)
  expect({ ...at, deliveries: deliveries.length }).toEqual({ ...at, deliveries: events.length })
  deliveries.forEach((tries, i) => {
    const statuses = tries.map(({ status }) => status)
    const broken = statuses.filter((status) => status === null).length
    const taken = statuses.filter((status) => status === 204).length
    // What broke was repeated until it was taken, and was taken once more behind the next one.
    const isVictim = point.startsWith('push/') && events[i] === event
    const wanted = isVictim && event !== 'end' ? 2 : 1
    const others = statuses.length - broken - taken
    expect({ ...at, i, taken, isBroken: broken > 0, others }).toEqual({
      ...at,
      i,
      taken: wanted,
      isBroken: isVictim,
      others: 0,
    })
  })

  const task = books.tasks.find(({ remoteId }) => remoteId === taskId)
  const theirs = agentTasks.find(({ id }) => id === taskId)
  if (!task || !theirs) throw new Error(`${taskId} is not known on both sides.`)
  const sources = books.events.flatMap((each) => (each.taskId === task.id ? [each.source] : []))
  // Who is answered when they ask may know an event before it is delivered.
  if (!isOpen) expect({ ...at, sources }).toEqual({ ...at, sources: sourcesOf(theirs) })
}
