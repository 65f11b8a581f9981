/**
 * What both databases share: one node-postgres client, seen as Slonik wants to see it. Column types, prepared statement
 * names, results and cursors. It does not own connections: persistence/drivers/postgres.ts and persistence/drivers/pglite.ts do.
 */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import pg from 'pg'
import QueryStream from 'pg-query-stream'
import type { DriverClient, DriverQueryResult } from 'slonik'
import { namedError } from './sqlstate.ts'

type Parse = (text: string) => unknown
type RowStream = ReturnType<DriverClient['stream']>
interface StreamedRow {
  readonly fields: readonly DriverField[]
  readonly row: Record<string, unknown>
}
type DriverField = DriverQueryResult['fields'][number]

const isoTime: Parse = (text) => new Date(text).toISOString()

/** Built-in types have fixed ids, so nothing is asked of the server. Everything else is as node-postgres has it. */
const int8 = 20
const date = 1082
const timestamptz = 1184
/** Declared a number because the typed list of ids leaves arrays out. */
const textArray: number = 1009
const parsers = new Map<number, Parse>([
  [int8, Number],
  [date, (text) => text],
  [timestamptz, isoTime],
])
const arrayOf = new Map<number, number>([
  [1016, int8],
  [1182, date],
  [1185, timestamptz],
])

/** int8 → number (our counters stay below 2^53), timestamptz → ISO 8601 in UTC with milliseconds, date → `YYYY-MM-DD`. */
export const columnTypes: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary'): Parse {
    const parse = parsers.get(oid)
    if (parse) return parse
    const element = parsers.get(arrayOf.get(oid) ?? -1)
    if (!element) return pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text')
    const split: (text: string) => (string | null)[] = pg.types.getTypeParser(textArray, 'text')
    return (text) => split(text).map((item) => (item === null ? null : element(item)))
  },
}

/** How many texts may be prepared; a text built per request must not fill the server's memory with plans. */
const PREPARED_LIMIT = 400

/**
 * Names for statements worth preparing: those seen for the second time. The name comes from the text, so every
 * connection and every process gives one statement the same name. Behind a pooler they are used only where it
 * carries them (pooler.ts).
 */
export class StatementNames {
  readonly #names = new Map<string, string | undefined>()
  #generation = 0

  nameOf(sql: string): string | undefined {
    const name = this.#names.get(sql)
    if (name !== undefined) return name
    if (!this.#names.has(sql)) {
      if (this.#names.size < PREPARED_LIMIT) this.#names.set(sql, undefined)
      return undefined
    }
    const fresh = `s${this.#generation}_${createHash('sha256').update(sql).digest('hex').slice(0, 24)}`
    this.#names.set(sql, fresh)
    return fresh
  }

  /** After a change of schema: a statement prepared before it fails when its columns changed (0A000), so none is used again. */
  renew(): void {
    this.#generation += 1
    this.#names.clear()
  }
}

/** The extended protocol, always: it refuses several statements in one text, also when there are no values. */
interface ExtendedQuery extends pg.QueryConfig {
  readonly queryMode: 'extended'
}

export async function runStatement(
  client: pg.Client,
  sql: string,
  values: readonly unknown[],
  name: string | undefined,
): Promise<DriverQueryResult> {
  const query: ExtendedQuery = { text: sql, values: [...values], queryMode: 'extended', ...(name && { name }) }
  try {
    const result = await client.query<Record<string, unknown>>(query)
    return {
      command: commandOf(result.command),
      fields: result.fields.map(fieldOf),
      rowCount: result.rowCount,
      rows: result.rows,
    }
  } catch (error) {
    throw namedError(error, { sql })
  }
}

/** Several statements of ours in one round trip, by the simple protocol; the answer is the first one's. */
export async function runTogether(client: pg.Client, text: string): Promise<DriverQueryResult> {
  try {
    const answers: unknown = await client.query(text)
    const [first] = answers as pg.QueryResult[]
    if (!first) throw new Error('Several statements were asked and nothing was answered.')
    return { command: commandOf(first.command), fields: [], rowCount: first.rowCount, rows: [] }
  } catch (error) {
    throw namedError(error, { sql: text })
  }
}

const fieldOf = (field: pg.FieldDef): DriverField => ({ dataTypeId: field.dataTypeID, name: field.name })

/** Slonik types five commands and reads none of them; every other one (BEGIN, CREATE …) is passed through as it came. */
const commandOf = (command: string): DriverQueryResult['command'] => command as DriverQueryResult['command']

/** Rows a cursor fetches at a time: enough to hide the round trip, few enough that 16 KiB rows stay below 2 MiB. */
const CURSOR_ROWS = 100

/** One cursor over one statement. `done` runs once, when the rows are exhausted, abandoned or failed. */
export function streamRows(
  open: () => Promise<{ client: pg.Client; done: () => Promise<void> }>,
  sql: string,
  values: readonly unknown[],
): RowStream {
  async function* rows(): AsyncGenerator<StreamedRow> {
    const { client, done } = await open()
    const source = client.query(new QueryStream(sql, [...values], { batchSize: CURSOR_ROWS, types: columnTypes }))
    // Closing a cursor takes a round trip; the client is free only after its 'close'.
    const closed = new Promise<void>((resolve) => source.once('close', resolve))
    try {
      // pg-query-stream keeps the row description to itself; Slonik wants an array and reads nothing from it.
      for await (const row of source) yield { fields: [], row }
    } catch (error) {
      throw namedError(error, { sql })
    } finally {
      source.destroy()
      await closed
      await done()
    }
  }
  return Readable.from(rows()) as RowStream
}
