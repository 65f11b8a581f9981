/** Folding pushes: in any order, any number of times, beside the stream, they never make less or more of an artifact than there is. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { StreamResponse } from '../../a2a/messages.ts'
import type { Source } from '../../domain/fact.ts'
import { Fold } from '../../domain/fold.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { observe, unseen } from '../support/observing.ts'

const at = '2026-11-21T12:00:00.000Z'
const place = { taskId: 't', contextId: 'c' }
const texts = (upTo: number): { text: string }[] => Array.from({ length: upTo }, (_, i) => ({ text: `chunk ${i + 1}` }))
const count = 4

const status = (state: string, second: number): StreamResponse => ({
  statusUpdate: { ...place, status: { state, timestamp: new Date(Date.parse(at) + second * 1000).toISOString() } },
})
const chunk = (n: number): StreamResponse => ({
  artifactUpdate: {
    ...place,
    artifact: { artifactId: 'a', parts: texts(n).slice(-1) },
    append: n > 1,
    lastChunk: n === count,
  },
})
/** The whole task as an agent of 0.3 pushes it after `n` chunks; with all of them it has ended. */
const whole = (n: number): StreamResponse => ({
  task: {
    id: 't',
    contextId: 'c',
    status: { state: n === count ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING', timestamp: at },
    artifacts: [{ artifactId: 'a', parts: texts(n) }],
  },
})
const chunks = texts(count).map((_, i) => i + 1)
const streamed = [status('TASK_STATE_WORKING', 0), ...chunks.map(chunk), status('TASK_STATE_COMPLETED', 1)]

const foldAll = (events: readonly (readonly [StreamResponse, Source])[]) => {
  const fold = new Fold(unseen, at, chainParts)
  for (const [event, source] of events) fold.add(observe(event), source)
  return fold.result()
}

it.each([
  ['every event', [...streamed]],
  // The last of them ends the task, and with it the stream: that is the story below.
  ['the whole task', chunks.slice(0, -1).map(whole)],
])('a stream with pushes of %s strewn in folds to what the stream alone folds to', (_, pushed) => {
  const alone = foldAll(streamed.map((event) => [event, 'stream']))
  const strewn = fc.array(fc.tuple(fc.nat(streamed.length), fc.constantFrom(...pushed)), { maxLength: 12 })
  fc.assert(
    fc.property(strewn, (extra) => {
      const told = streamed.flatMap((event, i): [StreamResponse, Source][] => [
        ...extra.flatMap(([before, push]): [StreamResponse, Source][] => (before === i ? [[push, 'push']] : [])),
        [event, 'stream'],
      ])
      const late = extra.flatMap(([before, push]): [StreamResponse, Source][] =>
        before === streamed.length ? [[push, 'push']] : [],
      )
      const folded = foldAll([...told, ...late])
      expect(folded.state).toBe('TASK_STATE_COMPLETED')
      expect(folded.artifacts.get('a')?.partsDigest).toBe(alone.artifacts.get('a')?.partsDigest)
    }),
  )
})

it('pushes in any order and number, with some of a stream among them, and one look at the end make the view of the agent', () => {
  const pushes = fc.array(fc.constantFrom(...streamed, ...chunks.map(whole)), { maxLength: 20 })
  const asRead = foldAll([[whole(count), 'poll']])
  fc.assert(
    fc.property(pushes, fc.nat(streamed.length), fc.nat(20), pushes, (early, chunksSeen, cut, after) => {
      const pushed = early.map((event): [StreamResponse, Source] => [event, 'push'])
      const heard = streamed.slice(0, chunksSeen).map((event): [StreamResponse, Source] => [event, 'stream'])
      const late = after.map((event): [StreamResponse, Source] => [event, 'push'])
      const folded = foldAll([...pushed.slice(0, cut), ...heard, ...pushed.slice(cut), [whole(count), 'poll'], ...late])
      expect(folded.state).toBe('TASK_STATE_COMPLETED')
      expect(folded.artifacts.get('a')?.partsDigest).toBe(asRead.artifacts.get('a')?.partsDigest)
      expect(folded.artifacts.get('a')?.complete).toBe(true)
    }),
  )
})
