/**
 * Pages of lists: how many rows, and behind which one. Cursors are for lists that are ordered by an instant and an id, and opaque to
 * callers, so that the order may change.
 */
import * as z from 'zod/mini'
import { Refusal, refusals } from '../domain/refusal.ts'

/** How many rows: a whole number as an address writes it, with one sentence for everything that is not. */
export function rowsUpTo(largest: number) {
  const error = `limit must be 1–${largest}.`
  const digits = z.string({ error }).check(
    z.regex(/^\d{1,4}$/, { error }),
    z.refine((limit) => Number(limit) >= 1 && Number(limit) <= largest, { error }),
  )
  return z.pipe(digits, z.transform(Number))
}

/** As a request brings it; `placeOf` reads it. A cursor that is there twice is broken like any other. */
export const CursorText = z.string({ error: refusals['cursor.invalid'] })

/** The last row's place in the order: a page stays where it was while new rows arrive. */
export interface Place {
  readonly at: string
  readonly id: string
}

/**
 * What `cursorOf` writes and nothing else: the database refuses days that are in no calendar, which Date.parse carries over,
 * and years that it has no words for.
 */
function isInstant(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3,6}Z$/.test(text) || text < '0001') return false
  const time = Date.parse(text)
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 23) === text.slice(0, 23)
}
const Cursor = z.tuple([z.string().check(z.refine(isInstant)), z.guid()])

export const cursorOf = ({ at, id }: Place): string => Buffer.from(JSON.stringify([at, id])).toString('base64url')

/** Refuses with `cursor.invalid` what this console has not made. */
export function placeOf(cursor: string): Place {
  const result = Cursor.safeParse(jsonOf(Buffer.from(cursor, 'base64url').toString('utf8')))
  if (!result.success) throw new Refusal('cursor.invalid')
  const [at, id] = result.data
  return { at, id }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal('cursor.invalid')
    throw error
  }
}
