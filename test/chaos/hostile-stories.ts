/**
 * What an agent may say of one task, as fast-check data: plots, the events they give, and ways to deliver those events. Owns
 * the stories and the reading of what was folded. Does not own what must hold of it (hostile-order*.test.ts).
 */
import fc from 'fast-check'
import { decodeText } from '../../domain/json-text.ts'
import type { Message, StreamResponse, TaskStatus } from '../../a2a/messages.ts'
import type { Source } from '../../domain/fact.ts'
import { Fold, type KnownArtifact } from '../../domain/fold.ts'
import type { KnownMessage } from '../../domain/same-id.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { observe } from '../support/observing.ts'

const startMs = Date.parse('2026-11-21T12:00:00.000Z')
const at = new Date(startMs).toISOString()

/** One thing the agent does, a second after the last. `snapshot`: it shows the whole task as it is then. */
type Beat =
  | { readonly kind: 'says'; readonly state: string; readonly text: string | null }
  | { readonly kind: 'chunk'; readonly artifact: string; readonly text: string; readonly anew: boolean }
  | { readonly kind: 'snapshot' }

export interface Plot {
  readonly beats: readonly Beat[]
  readonly end: string
}

export interface Story {
  readonly taskId: string
  /** In the order in which they happened. */
  readonly events: readonly StreamResponse[]
  /** The task after its end, as GetTask shows it. */
  readonly whole: StreamResponse
}

const beat: fc.Arbitrary<Beat> = fc.oneof(
  fc.record({
    kind: fc.constant('says' as const),
    state: fc.constantFrom('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'),
    text: fc.option(fc.constantFrom('one', 'two', 'three'), { nil: null }),
  }),
  fc.record({
    kind: fc.constant('chunk' as const),
    artifact: fc.constantFrom('a', 'b'),
    text: fc.constantFrom('x', 'y', 'z'),
    anew: fc.boolean(),
  }),
  fc.constant({ kind: 'snapshot' as const }),
)

export const stories: fc.Arbitrary<Plot> = fc.record({
  beats: fc.array(beat, { maxLength: 8 }),
  end: fc.constantFrom('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'),
})

/** Plays a plot as an honest agent would: every status has its own instant, and a snapshot shows what was said so far. */
export function storyOf(plot: Plot, taskId = 't', contextId = 'c'): Story {
  const events: StreamResponse[] = []
  const parts = new Map<string, { text: string }[]>()
  const history: Message[] = []
  let status: TaskStatus = { state: 'TASK_STATE_SUBMITTED', timestamp: at }
  const whole = (): StreamResponse => ({
    task: {
      id: taskId,
      contextId,
      status,
      history: [...history],
      artifacts: [...parts].map(([artifactId, said]) => ({ artifactId, parts: [...said] })),
    },
  })
  const say = (state: string, text: string | null, second: number): void => {
    const message = { messageId: `m${second}`, role: 'ROLE_AGENT' as const, parts: [{ text: text ?? '' }] }
    if (status.message) history.push(status.message)
    status = {
      state,
      timestamp: new Date(startMs + second * 1000).toISOString(),
      ...(text === null ? {} : { message }),
    }
    events.push({ statusUpdate: { taskId, contextId, status } })
  }
  events.push(whole())
  plot.beats.forEach((each, i) => {
    if (each.kind === 'says') say(each.state, each.text, i + 1)
    else if (each.kind === 'snapshot') events.push(whole())
    else {
      const { artifact: artifactId, text } = each
      const append = parts.has(artifactId) && !each.anew
      const said = append ? (parts.get(artifactId) ?? []) : []
      parts.set(artifactId, [...said, { text }])
      events.push({ artifactUpdate: { taskId, contextId, artifact: { artifactId, parts: [{ text }] }, append } })
    }
  })
  say(plot.end, 'the end', plot.beats.length + 1)
  return { taskId, events, whole: whole() }
}

/** One event on its way, by the source that brings it. */
export interface Delivery {
  readonly source: Extract<Source, 'stream' | 'push' | 'poll'>
  readonly event: StreamResponse
}

export const delivered = (events: readonly StreamResponse[], source: Delivery['source']): Delivery[] =>
  events.map((event) => ({ source, event }))

export const endOf = ({ whole }: Story): Delivery => ({ source: 'poll', event: whole })

/** Stories are drawn under one name and told under another: a database remembers the runs before, and agents name tasks themselves. */
export function renamed(event: StreamResponse, taskId: string, contextId = 'c'): StreamResponse {
  if ('task' in event) return { task: { ...event.task, id: taskId, contextId } }
  if ('statusUpdate' in event) return { statusUpdate: { ...event.statusUpdate, taskId, contextId } }
  if ('artifactUpdate' in event) return { artifactUpdate: { ...event.artifactUpdate, taskId, contextId } }
  return event
}

const sources = fc.constantFrom<Delivery['source']>('stream', 'push', 'poll')

/** Some of these events, some of them several times, by any source, in any order, in batches. */
export const deliveries = (events: readonly StreamResponse[]): fc.Arbitrary<Delivery[][]> =>
  fc.array(
    fc.array(fc.record({ source: sources, event: fc.constantFrom(...events) }), { minLength: 1, maxLength: 6 }),
    { maxLength: 4 },
  )

/** A task folded batch by batch, its rows kept as persistence/tasks.ts keeps them. */
export class Telling {
  state = 'TASK_STATE_UNSPECIFIED'
  version = 0
  readonly messages = new Map<string, KnownMessage>()
  readonly parts = new Map<string, string[]>()
  #stateAt: string | null = null
  #events = 0
  readonly #artifacts = new Map<string, KnownArtifact>()

  tell(batch: readonly Delivery[]): void {
    const { state, version, messages } = this
    const known = { state, stateAt: this.#stateAt, version, events: this.#events, messages, artifacts: this.#artifacts }
    const fold = new Fold(known, at, chainParts)
    for (const { event, source } of batch) fold.add(observe(event), source)
    const folded = fold.result()
    this.state = folded.state
    this.#stateAt = folded.stateAt
    this.version = folded.version
    this.#events = folded.eventCount
    for (const message of folded.messages) {
      const { id } = message
      if (messages.has(id)) throw new Error(`The message ${id} was folded twice.`)
      messages.set(id, message)
    }
    for (const [id, { newParts, ...artifact }] of folded.artifacts) {
      this.#artifacts.set(id, artifact)
      const rows = (this.parts.get(id) ?? []).slice(0, artifact.partCount)
      for (const [position, part] of newParts) if (position < artifact.partCount) rows[position] = decodeText(part.json)
      this.parts.set(id, rows)
    }
  }
}

/** What a person sees of it; the order of words is that of arrival and is left out. */
export const viewOf = ({ state, messages, parts }: Telling) => ({
  state,
  messages: [...messages.keys()].toSorted(),
  artifacts: [...parts].map(([id, rows]) => [id, rows] as const).toSorted(([a], [b]) => (a < b ? -1 : 1)),
})
