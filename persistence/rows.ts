/**
 * Rows as their statement's schema says. A statement whose rows need no check (hot, ours, and covered by a test) is written
 * with `sql.unsafe`, which skips this at no cost.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { SchemaValidationError, sql } from 'slonik'

/** The parser that Slonik gives to every `sql.unsafe`: one object, so that recognising it costs a comparison. */
const unvalidated = sql.unsafe`select 1`.parser

/** The row as the schema returns it. Throws a SchemaValidationError where it does not fit: a defect, never the data's fault. */
export function validRow<S extends StandardSchemaV1>(
  { parser, sql: text }: { readonly parser?: S; readonly sql: string },
  row: unknown,
): StandardSchemaV1.InferOutput<S> {
  if (!parser || parser === unvalidated) return row as StandardSchemaV1.InferOutput<S>
  const result = parser['~standard'].validate(row)
  if (result instanceof Promise) throw new TypeError('A row schema must be synchronous.')
  // Slonik's error would carry the row and the values, which may be secrets, into the log; the issues name the columns.
  if (result.issues) throw new SchemaValidationError({ sql: text, values: [] }, {}, result.issues)
  return result.value as StandardSchemaV1.InferOutput<S>
}
