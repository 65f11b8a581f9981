/**
 * F11: one task's events from a stream, a push and a poll, in any order and any number, among another task's. On the pure
 * fold; through the real runtime it is hostile-order-runtime.test.ts.
 *
 * What is promised, exactly. Once the whole task has been read after its end (the one GetTask when a stream ends), the view
 * is the one that ordered delivery gives: its state, the words (each once; their order is that of arrival), every artifact's
 * parts. Whatever comes after that, from any source, changes nothing. A finished task never reopens, at any point. Before
 * that GetTask, chunks that came shuffled or twice may stand wrongly: A2A numbers none of them.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isTerminal } from '../../domain/task.ts'
import { delivered, deliveries, endOf, storyOf, stories, Telling, viewOf } from './hostile-stories.ts'
import { sized } from '../support/pass.ts'

const runs = sized(1_000, 25_000)

describe('a task told in any order', () => {
  it('ends as if it had been told in order, once it was read whole; and what comes late changes nothing', () => {
    const shuffled = stories.chain((plot) => {
      const story = storyOf(plot)
      return fc.record({
        story: fc.constant(story),
        before: deliveries(story.events),
        late: deliveries([...story.events, story.whole]),
      })
    })
    fc.assert(
      fc.property(shuffled, ({ story, before, late }) => {
        const ordered = new Telling()
        ordered.tell(delivered(story.events, 'stream'))
        ordered.tell([endOf(story)])

        const told = new Telling()
        for (const batch of before) told.tell(batch)
        told.tell([endOf(story)])
        expect(viewOf(told)).toEqual(viewOf(ordered))

        const { version } = told
        for (const batch of late) told.tell(batch)
        expect(viewOf(told)).toEqual(viewOf(ordered))
        expect(told.version).toBe(version)
      }),
      { numRuns: runs, seed: 11 },
    )
  })

  it('never leaves its end, whatever is said before or after it', () => {
    const anything = stories.chain((plot) => deliveries(storyOf(plot).events))
    fc.assert(
      fc.property(anything, fc.array(anything, { maxLength: 2 }), (batches, more) => {
        const told = new Telling()
        let end: string | null = null
        for (const batch of [...batches, ...more.flat()]) {
          told.tell(batch)
          if (end !== null) expect(told.state).toBe(end)
          else if (isTerminal(told.state)) end = told.state
        }
      }),
      { numRuns: runs, seed: 11 },
    )
  })
})
