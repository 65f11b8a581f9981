/** Writing folded tasks: whatever an agent says comes back as it was, long or short, alone or among others. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fold } from '../../domain/fold.ts'
import { longValue } from '../../domain/part-text.ts'
import { decodeText, encodeHuge, type JsonText } from '../../domain/json-text.ts'
import { withTexts } from '../../domain/observation.ts'
import { writeTasks, type TaskWrite } from '../../persistence/task-writes.ts'
import { wholePart } from '../../persistence/part-rows.ts'
import { chainParts } from '../../persistence/tasks.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { observe, partRowText, unseen } from '../support/observing.ts'

const at = '2026-11-21T12:00:00.000Z'
/** Around the length from which a text is a statement of its own, with everything that breaks lines, quotes and encodings. */
const text = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 20 }), fc.constantFrom(0, 1, 8_100, 31_000, 33_000, 300_000, 1_100_000))
  .map(([seed, length]) => `${seed}\n\r\u2028\\"'{},\u0000\ud800é😀${'x'.repeat(length)}`)

function writeOf(texts: readonly string[]): TaskWrite {
  const fold = new Fold(unseen, at, chainParts)
  const told = texts.map((said, n) => {
    const parts = [{ text: said }]
    const observation = observe(
      n % 2 === 0
        ? { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts }, append: n > 0 } }
        : { message: { messageId: `m${n}`, role: 'ROLE_AGENT', parts } },
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
              sql.type(Text)`
                select ${wholePart} as text from task_artifact_part p where p.task_id = ${id} order by p.position`,
            ),
          ])
          expect(events.map(digestible)).toEqual(folded.events.map(({ event }) => digestible(event)))
          expect(messages.map(digestible)).toEqual(folded.messages.map((said) => digestible(said.parts)))
          const eventAt = (position: number) => folded.events.find((event) => event.position === position)?.event ?? ''
          const folds = [...(folded.artifacts.get('a')?.newParts.values() ?? [])]
          expect(parts.map(digestible)).toEqual(folds.map((part) => digestible(partRowText(part, eventAt))))
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

  it('a value in its event is found by its bytes, and a row that an older server wrote over is whole', async () => {
    const { db } = fresh
    const said = `"\\\u0000😀é${'x'.repeat(longValue)}`
    const write = writeOf([said])
    await db.fly((flight) => writeTasks(flight, [write], at))
    const read = () =>
      db.pool.one(
        sql.type(z.object({ row: z.string(), whole: z.string() }))`
          select p.part as row, ${wholePart} as whole from task_artifact_part p where p.task_id = ${write.id}`,
      )
    const { row, whole } = await read()
    expect(row).toBe(' {"kind":"text","value":"","mediaType":"text/plain"}')
    expect(JSON.parse(whole)).toEqual({ kind: 'text', value: said, mediaType: 'text/plain' })
    // Nobody removes events; should somebody, the part has its place all the same (specs/damaged-views.spec.ts).
    await db.pool.query(sql.unsafe`update task_artifact_part set value_event = 7 where task_id = ${write.id}`)
    expect((await read()).whole).toBe('null')
    await db.pool.query(sql.unsafe`update task_artifact_part set value_event = 0 where task_id = ${write.id}`)
    expect(JSON.parse((await read()).whole)).toMatchObject({ value: said })
    for (const value of ['Another.', '', ' ']) {
      const other = JSON.stringify({ kind: 'text', value, mediaType: 'text/plain' })
      await db.pool.query(sql.unsafe`update task_artifact_part set part = ${other} where task_id = ${write.id}`)
      expect((await read()).whole).toBe(other)
    }
    // And one that takes its place has no value elsewhere.
    const short = writeOf(['Short.'])
    await db.fly((flight) =>
      writeTasks(flight, [{ ...short, id: write.id, folded: { ...short.folded, events: [] } }], at),
    )
    expect(JSON.parse((await read()).whole)).toMatchObject({ value: 'Short.' })
  })

  it('an artifact that becomes shorter keeps no part behind its end', async () => {
    const { db } = fresh
    const id = randomUUID()
    const told = (parts: number) =>
      observe({
        artifactUpdate: {
          taskId: 't',
          contextId: 'c',
          artifact: {
            artifactId: 'a',
            parts: Array.from({ length: parts }, (_, n) => ({ text: `${n} of ${parts}` })),
          },
        },
      })
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
  return json.length < 200 ? json : `${chainParts('', json)} ${json.length}`
}
