/**
 * Parts as rows, read whole. The value of a long one stands in its event (domain/part-text.ts), and the row says where. Owns how both
 * are put together, and what is shown of a row that is damaged; does not write them (task-writes.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { elsewhere, valueStart, type StoredPart } from '../domain/part-text.ts'
import type { Part } from '../domain/task.ts'

/** JSON of what has no part to be read: no part is written so. */
const unread = 'null'

/** What is shown in its place: those behind it keep theirs, and everything else is shown as it is. */
export const unreadable: StoredPart = {
  kind: 'unknown',
  value: "This part cannot be read where it is kept. It can be rebuilt from the task's events, if they are there.",
  mediaType: 'text/plain',
}

/**
 * Of `task_artifact_part p`: the part as JSON text. By bytes: by characters 24 MiB would be counted through twice. The event is a
 * subplan and no join, for of 20,000 short parts a join reads every event of the task. A row that says where a value stands without
 * saying that it stands elsewhere was written over by a server that does not know of this (migration 17), and is whole.
 *
 * A row may be damaged, and an error here would take the page of everybody whose task is on it. A value's JSON begins and ends with
 * a character of one byte; where bytes do, no character is cut, and they can be decoded. Whether they are JSON is for who parses
 * them to find. `offset 0` keeps the event from being read once for each time that its bytes are named.
 */
export const wholePart: FragmentSqlToken = sql.fragment`
  case when left(p.part, ${elsewhere.length}) = ${elsewhere}
    then coalesce(overlay(substr(p.part, ${elsewhere.length + 1}) placing (
        select case when length(v.bytes) = p.value_bytes and get_byte(v.bytes, 0) < 128 and get_byte(v.bytes, length(v.bytes) - 1) < 128
          then convert_from(v.bytes, 'UTF8') end
        from (
          select substring(convert_to(e.event, 'UTF8') from p.value_from + 1 for p.value_bytes) as bytes
          from task_event e where e.task_id = p.task_id and e.position = p.value_event
            and p.value_from between 0 and ${2 ** 31 - 2} and p.value_bytes > 0
          offset 0) v)
      from ${valueStart + 1} for 2), ${unread})
    else p.part end`

/** Between two of them in a list: it stands in none, for within JSON's strings a line's end is written as two characters. */
const between = ',\n'

/**
 * The parts of one owner as one JSON text: node-postgres reads an array of texts by the character, half a second for what JSON.parse
 * reads in some thirty milliseconds. `part` is of `p`.
 */
export const listed = (part: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`'[' || string_agg(${part}, ${between} order by p.position) || ']'`

/** The texts in such a list, whatever they say. */
export const textsOf = (list: string): string[] => list.slice(1, -1).split(between)

/**
 * Parts from such a text, or from a message's, with their ids: the owner's and the place, of which the first is `from`. `damaged` is told how
 * many cannot be read.
 */
export function partsOf(owner: string, json: string, damaged: (parts: number) => void, from = 0): Part[] {
  const stored = parsed(json)
  const read = Array.isArray(stored) ? stored : textsOf(json).map(parsed)
  const unreadParts = read.filter((part) => !isPart(part)).length
  if (unreadParts > 0) damaged(unreadParts)
  return read.map((part, index) => ({ id: `${owner}:${from + index}`, ...(isPart(part) ? part : unreadable) }))
}

/** Undefined where it is no JSON: of a damaged row it need not be. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** As much as tells a part from what a wrong place makes of one. */
const isPart = (part: unknown): part is StoredPart =>
  typeof part === 'object' &&
  part !== null &&
  'kind' in part &&
  'value' in part &&
  'mediaType' in part &&
  (part.kind !== 'text' || typeof part.value === 'string')
