/**
 * Bytes of artifacts: content-addressed files in one directory, written whole or not at all, verified when read. Replicas
 * share them by sharing the directory. Who may read them is in the rows (task_bytes), not here.
 */
import { createHash } from 'node:crypto'
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './database.ts'

export interface NewBytes {
  readonly digest: string
  readonly bytes: Uint8Array
}

export class ArtifactStore {
  readonly #directory: string
  readonly #newName: () => string

  /** `newName` names temporary files; it must not repeat. */
  constructor(directory: string, newName: () => string) {
    this.#directory = directory
    this.#newName = newName
  }

  /** Stores bytes under their SHA-256. Returns once they are on disk; bytes that are there already cost one look. */
  async put({ digest, bytes }: NewBytes): Promise<void> {
    const path = this.#path(digest)
    const there = await stat(path).then(
      (found) => found.size === bytes.byteLength,
      () => false,
    )
    if (there) return
    await mkdir(join(path, '..'), { recursive: true, mode: 0o700 })
    const temporary = `${path}.${this.#newName()}`
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(bytes)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
  }

  /** The bytes of a digest; null when they are missing or are not what their name says. */
  async get(digest: string): Promise<Uint8Array | null> {
    let bytes: Uint8Array
    try {
      bytes = await readFile(this.#path(digest))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
      throw error
    }
    return createHash('sha256').update(bytes).digest('hex') === digest ? bytes : null
  }

  #path(digest: string): string {
    if (!/^[0-9a-f]{64}$/.test(digest)) throw new Error('Invalid artifact identity.')
    return join(this.#directory, digest.slice(0, 2), digest)
  }
}

/** Whether a task of the organization refers to these bytes. */
export async function isReferenced(db: Connection, organizationId: string, digest: string): Promise<boolean> {
  return db.oneFirst(sql.type(z.object({ yes: z.boolean() }))`
    select exists (
      select 1 from task_bytes b join task t on t.id = b.task_id
      where b.digest = ${digest} and t.organization_id = ${organizationId}) as yes`)
}
