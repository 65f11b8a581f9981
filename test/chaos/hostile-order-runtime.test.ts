/**
 * F11 through the real runtime: two tasks are told at once, in shuffled, repeated, interleaved batches from
 * a stream, a push and a poll, each batch with a word about the other task in it. What is promised is written in
 * hostile-order.test.ts; here besides: what a source says of a task that it does not read changes nothing.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { StreamResponse } from '../../a2a/messages.ts'
import type { Operation } from '../../actors/loop/operation.ts'
import type { Report, ToldFact } from '../../domain/fact.ts'
import { findRemoteTask } from '../../persistence/task-views.ts'
import { eitherDatabase } from '../support/databases.ts'
import { observe } from '../support/observing.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { answering } from '../actors/models/stage.ts'
import { deliveries, endOf, renamed, stories, storyOf, type Delivery, type Story } from './hostile-stories.ts'
import { readView } from '../support/views.ts'
import { sized } from '../support/pass.ts'

const numRuns = sized(15, 300)

/** What a reply does: it alone may bring a task that nobody knows. */
const tell: Operation<ToldFact, null> = {
  name: 'tell',
  run: (_batch, facts) =>
    Promise.resolve(facts.map((fact) => ({ kind: 'done' as const, result: null, effects: { told: [fact] } }))),
}

const report = (
  agentId: string,
  taskId: string,
  source: Report['source'],
  events: readonly StreamResponse[],
): Report => ({
  agentId,
  tenant: '',
  source,
  command: null,
  remoteTaskId: taskId,
  observations: events.map((event) => observe(event)),
})

describe.each(eitherDatabase)('two tasks told in any order on %s', (kind) => {
  let running: RunningSystem
  let agentId: string
  let tellerId: string
  let names = 0
  beforeAll(async () => {
    running = await freshSystem(kind, { works: false })
    agentId = (await running.system.agents.register(running.viewer, 'http://agent.example/card.json')).id
    // A report comes from a living actor; this task is never finished.
    tellerId = await begun(storyOf({ beats: [], end: 'TASK_STATE_COMPLETED' }, 'teller'))
  })
  afterAll(() => running.close())

  /** A task that was just answered, as its first event shows it. Resolves with its local id. */
  async function begun({ taskId, events }: Story): Promise<string> {
    const { organizationId } = running.viewer
    const command = answering()
    const said = { ...report(agentId, taskId, 'reply', events.slice(0, 1)), command, remoteTaskId: null }
    const fact = { type: 'agent.reported' as const, report: said }
    await running.system.runtime.perform(tell, { organizationId, subjectId: command.id, fact })
    const found = await findRemoteTask(running.db.pool, running.viewer, { agentId, tenant: '', remoteId: taskId })
    if (!found) throw new Error('The task was not made.')
    return found.localId
  }

  /** One report a source: what a batch says, in its order. `foreign` is said under this task's name and is another's. */
  async function told(story: Story, batch: readonly Delivery[], foreign: readonly StreamResponse[]): Promise<void> {
    const bySource = Map.groupBy(batch, ({ source }) => source)
    await Promise.all(
      [...bySource].map(([source, said]) => {
        const events = [...foreign, ...said.map(({ event }) => event)]
        const fact = { type: 'agent.reported' as const, report: report(agentId, story.taskId, source, events) }
        const ref = { kind: 'subscription', id: tellerId }
        return running.system.runtime.step({ ref, event: null, told: [fact], lease: null, cause: 'test' })
      }),
    )
  }

  async function viewOf(id: string) {
    const view = await readView(running.db.pool, running.viewer, id)
    if (!view) throw new Error('There is no such task.')
    const { state, messages, artifacts, version } = view
    const shown = {
      state,
      messages: messages.map((message) => message.id).toSorted(),
      artifacts: artifacts
        .map(({ artifactId, parts }) => [artifactId, parts.map(({ value }) => value)] as const)
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    }
    return { shown, version }
  }

  const plots = fc.record({ one: stories, two: stories }).chain(({ one, two }) => {
    const name = (): string => `task-${++names}`
    const told = [one, two].map((plot) => storyOf(plot, 't')).map(({ events }) => deliveries(events))
    return fc.record({ plots: fc.constant([one, two]), batches: fc.tuple(...told), name: fc.constant(name) })
  })

  it('both end as if each had been told alone and in order; neither hears the words of the other', async () => {
    await fc.assert(
      fc.asyncProperty(plots, async ({ plots: [one, two], batches, name }) => {
        const shuffled = [one, two].map((plot) => storyOf(plot ?? { beats: [], end: '' }, name()))
        const ordered = [one, two].map((plot) => storyOf(plot ?? { beats: [], end: '' }, name()))
        const ids = await Promise.all(shuffled.map(begun))
        const orderedIds = await Promise.all(ordered.map(begun))
        const rounds = Math.max(...batches.map((each) => each.length))
        for (let round = 0; round < rounds; round++)
          await Promise.all(
            shuffled.map((story, i) => {
              const batch = batches[i]?.[round] ?? []
              const mine = batch.map(({ source, event }) => ({ source, event: renamed(event, story.taskId) }))
              return told(story, mine, shuffled[1 - i]?.events ?? [])
            }),
          )
        for (const story of shuffled) await told(story, [endOf(story)], [])
        for (const story of ordered) {
          await told(
            story,
            story.events.map((event) => ({ source: 'stream', event })),
            [],
          )
          await told(story, [endOf(story)], [])
        }
        for (const [i, id] of ids.entries()) {
          const { shown, version } = await viewOf(id)
          expect(shown).toEqual((await viewOf(orderedIds[i] ?? '')).shown)
          // Told again after its end, it is no news.
          const story = shuffled[i]
          if (story) await told(story, [endOf(story), ...statuses(story)], [])
          expect(await viewOf(id)).toEqual({ shown, version })
        }
      }),
      { numRuns, seed: 11, endOnFailure: true },
    )
  })
})

const statuses = (story: Story): Delivery[] =>
  story.events.filter((event) => 'statusUpdate' in event).map((event) => ({ source: 'push', event }))
