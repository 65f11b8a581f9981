/** Writing folded tasks: whatever an agent says comes back as it was, long or short, alone or among others. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fold, type KnownTask } from '../../domain/fold.ts'
import { decodeText, encodeHuge, type JsonText } from '../../domain/json-text.ts'
import { observationFrom, withTexts } from '../../domain/observation.ts'
import { writeTasks, type TaskWrite } from '../../persistence/task-writes.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const at = '2026-11-21T12:00:00.000Z'
const unseen: KnownTask = {
  state: 'TASK_STATE_UNSPECIFIED',
  stateAt: null,
  version: 0,
  events: 0,
  messages: new Set(),
  artifacts: new Map(),
}
/** Around the length from which a text is a statement of its own, with everything that breaks lines, quotes and encodings. */
const text = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 20 }), fc.constantFrom(0, 1, 31_000, 33_000, 300_000))
  .map(([seed, length]) => `${seed}\n\r\u2028\\"'{},\u0000\ud800é😀${'x'.repeat(length)}`)

function writeOf(texts: readonly string[]): TaskWrite {
  const fold = new Fold(unseen, at, chainParts)
  const told = texts.map((said, n) => {
    const parts = [{ text: said }]
    const observation = observationFrom(
      n % 2 === 0
        ? { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts }, append: n > 0 } }
        : { message: { messageId: `m${n}`, role: 'ROLE_AGENT', parts } },
      () => ({ digest: '', size: 0, href: '' }),
    )
    // As it comes from a parsing thread.
    return withTexts(observation, encodeHuge)
  })
  for (const observation of told) fold.add(observation, 'stream')
  return { id: randomUUID(), fresh: null, contextId: null, folded: fold.result() }
}

const Text = z.object({ text: z.string() })

describe.each(bothDatabases)('on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())

  it('what is written in one flight is what was folded', { timeout: 60_000 }, async () => {
    const { db } = fresh
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(text, { maxLength: 6 }), { maxLength: 3 }), async (tasks) => {
        const writes = tasks.map(writeOf)
        await db.fly((flight) => writeTasks(flight, writes, at))
        for (const { id, folded } of writes) {
          const [events, messages, parts] = await Promise.all([
            db.pool.anyFirst(
              sql.type(Text)`select event as text from task_event where task_id = ${id} order by position`,
            ),
            db.pool.anyFirst(
              sql.type(Text)`select parts as text from task_message where task_id = ${id} order by position`,
            ),
            db.pool.anyFirst(
              sql.type(Text)`select part as text from task_artifact_part where task_id = ${id} order by position`,
            ),
          ])
          expect(events.map(digestible)).toEqual(folded.events.map(({ event }) => digestible(event)))
          expect(messages.map(digestible)).toEqual(folded.messages.map((said) => digestible(said.parts)))
          expect(parts.map(digestible)).toEqual(
            [...(folded.artifacts.get('a')?.newParts.values() ?? [])].map(digestible),
          )
        }
      }),
      { numRuns: 8 },
    )
  })

  it('what a flight failed to write another writes as it was', async () => {
    const { db } = fresh
    const write = writeOf(['\u{1f682}'.repeat(40_000)])
    const failing = db.fly(async (flight) => {
      await writeTasks(flight, [write], at)
      throw new Error('A conflict.')
    })
    await expect(failing).rejects.toThrow('A conflict.')
    await db.fly((flight) => writeTasks(flight, [write], at))
    const [event] = await db.pool.anyFirst(
      sql.type(Text)`select event as text from task_event where task_id = ${write.id}`,
    )
    expect(digestible(event ?? '')).toBe(digestible(write.folded.events[0]?.event ?? 'none'))
  })

  it('an artifact that becomes shorter keeps no part behind its end', async () => {
    const { db } = fresh
    const id = randomUUID()
    const told = (parts: number) =>
      observationFrom(
        {
          artifactUpdate: {
            taskId: 't',
            contextId: 'c',
            artifact: {
              artifactId: 'a',
              parts: Array.from({ length: parts }, (_, n) => ({ text: `${n} of ${parts}` })),
            },
          },
        },
        () => ({ digest: '', size: 0, href: '' }),
      )
    let known = unseen
    for (const parts of [5, 2, 3]) {
      const fold = new Fold(known, at, chainParts)
      fold.add(told(parts), 'stream')
      const folded = fold.result()
      await db.fly((flight) => writeTasks(flight, [{ id, fresh: null, contextId: null, folded }], at))
      known = { ...known, version: folded.version, events: folded.eventCount, artifacts: folded.artifacts }
      expect(
        await db.pool.oneFirst(
          sql.type(z.object({ count: z.number() }))`select count(*) from task_artifact_part where task_id = ${id}`,
        ),
      ).toBe(parts)
    }
  })
})

/** A failure should not print a megabyte. */
const digestible = (text: JsonText): string => {
  const json = decodeText(text)
  return json.length < 200 ? json : `${chainParts('', json, null)} ${json.length}`
}
