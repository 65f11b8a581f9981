/** How much an embedded database takes: its directory, and one of its tables. Owns no expectation. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'slonik'
import { z } from 'zod'
import type { Database } from '../../persistence/database.ts'

export const bytesIn = (directory: string): number =>
  readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

export const bytesOf = (db: Database, table: string): Promise<number> =>
  db.pool.oneFirst(
    sql.type(z.object({ bytes: z.number() }))`select pg_total_relation_size(${table}::regclass) as bytes`,
  )
