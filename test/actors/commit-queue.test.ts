/** A stream's words on their way into commits: all of them, in order, one commit at a time, and never more waiting than agreed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CommitQueue } from '../../actors/commit-queue.ts'
import type { ParsedEvent } from '../../actors/threads/messages.ts'

const event = (taskId: string, characters: number): ParsedEvent => ({
  kind: 'observation',
  observation: {
    kind: 'message',
    taskId,
    contextId: null,
    event: 'x'.repeat(characters),
    status: null,
    messages: [],
    artifacts: [],
    stored: [],
  },
  blobs: [],
})
const nameOf = (each: ParsedEvent): string => (each.kind === 'observation' ? String(each.observation.taskId) : '')
/** A turn of the event loop: what a database takes at least. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const limit = 256 * 1024

describe('a queue of commits', () => {
  it('commits everything once and in order, one commit at a time, whatever the pace', async () => {
    const chunks = fc.array(fc.array(fc.nat(100_000), { maxLength: 3 }), { maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(chunks, fc.nat(3), async (sizes, slowness) => {
        const committed: string[] = []
        let underWay = 0
        let waiting = 0
        const queue = new CommitQueue(async (events) => {
          underWay += 1
          expect(underWay).toBe(1)
          for (let n = 0; n <= slowness; n++) await turn()
          committed.push(...events.map(nameOf))
          waiting -= events.length
          underWay -= 1
        })
        const told: string[] = []
        for (const chunk of sizes) {
          const events = chunk.map((characters, i) => event(`${told.length + i}`, characters))
          told.push(...events.map(nameOf))
          waiting += events.length
          await queue.add(events)
        }
        await queue.settled()
        expect(committed).toEqual(told)
        expect(waiting).toBe(0)
      }),
      { seed: 3, numRuns: 50 },
    )
  })

  it('holds the reader back while more waits than agreed', async () => {
    const gate = Promise.withResolvers<void>()
    const sizes: number[] = []
    const queue = new CommitQueue(async (events) => {
      sizes.push(events.length)
      await gate.promise
    })
    await queue.add([event('first', 10)])
    await queue.add([event('second', limit - 1)])
    let added = false
    const third = queue.add([event('third', 1)]).then(() => (added = true))
    await turn()
    expect(added).toBe(false)
    gate.resolve()
    await third
    await queue.settled()
    expect(sizes).toEqual([1, 2])
  })

  it('tells a failure to whoever comes next, and commits nothing after it', async () => {
    let commits = 0
    const queue = new CommitQueue(async () => {
      commits += 1
      await turn()
      throw new Error('The lease is lost.')
    })
    await queue.add([event('a', 10)])
    await queue.add([event('b', 10)])
    await expect(queue.settled()).rejects.toThrow('The lease is lost.')
    await expect(queue.add([event('c', 10)])).rejects.toThrow('The lease is lost.')
    await expect(queue.settled()).rejects.toThrow('The lease is lost.')
    expect(commits).toBe(1)
  })
})
