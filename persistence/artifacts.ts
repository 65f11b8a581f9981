/**
 * Bytes of artifacts: content-addressed files in one directory, written whole or not at all, verified when read. Replicas
 * share them by sharing the directory. Who may read them is in the rows (task_bytes), not here; what nobody refers to is
 * removed by persistence/artifact-sweep.ts.
 */
import { createHash } from 'node:crypto'
import { mkdir, open, rename, rm, stat, utimes, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { callbackify } from 'node:util'
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Connection } from './connection.ts'
import { held } from './visibility.ts'

/** Whoever is given it reads its bytes to the end or destroys them: until then a file is open. */
export interface StoredFile {
  readonly size: number
  readonly bytes: Readable
}

export interface NewBytes {
  /** SHA-256 of the bytes, lower-case hex. */
  readonly digest: string
  readonly bytes: Uint8Array
}

/**
 * The file system did not do what was asked: full (ENOSPC, EDQUOT), over a limit (EFBIG), read-only, failing. An outage:
 * nothing of it is kept, and the same may be asked again later.
 */
export class ArtifactsUnavailable extends Error {
  override readonly name = 'ArtifactsUnavailable'
  readonly code: string
  constructor(cause: Error & { readonly code: string }) {
    super(`The artifact directory failed (${cause.code}).`, { cause })
    this.code = cause.code
  }
}

/** A file that the sweep has set aside carries this behind its name until it is removed or put back. */
export const setAside = '.swept'

/** Twice as many as Node.js has threads for files. */
const putsAtOnce = 8

const digestShape = /^[0-9a-f]{64}$/
/** Two hexadecimal characters: 256 folders, so that a million files are four thousand in each. */
export const shardOf = (digest: string): string => digest.slice(0, 2)

export interface ArtifactClock {
  /** Names temporary files; must not repeat. */
  readonly newName: () => string
  readonly now: () => Date
}

export class ArtifactStore {
  readonly directory: string
  readonly #clock: ArtifactClock

  constructor(directory: string, clock: ArtifactClock) {
    this.directory = directory
    this.#clock = clock
  }

  /**
   * Stores bytes under their digest. Returns once file and name are on disk. Rejects with ArtifactsUnavailable, and then
   * nothing of it is left; with a refusal where the digest is none.
   */
  async put({ digest, bytes }: NewBytes): Promise<void> {
    const path = this.#path(digest)
    try {
      if (await this.#renewed(path, bytes)) return
      const folder = await this.#folder(dirname(path))
      await this.#write(path, bytes)
      await flushed(folder)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * Those of one event, some at a time: it may bring a hundred thousand, and each holds files open. Rejects as `put` does, once none
   * is at work; the others are not begun then.
   */
  async putAll(all: readonly NewBytes[]): Promise<void> {
    // Unlike an array's own iterator it is over for all lanes where one of them leaves it.
    const queue = (function* () {
      yield* all
    })()
    const lane = async (): Promise<void> => {
      for (const each of queue) await this.put(each)
    }
    const ends = await Promise.allSettled(Array.from({ length: Math.min(putsAtOnce, all.length) }, lane))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }

  /** The bytes of a digest, as they are taken; null when they are missing or are not what their name says. */
  async open(digest: string): Promise<StoredFile | null> {
    const path = this.#path(digest)
    try {
      // In this order, the first one twice: the sweep moves a file aside, and back, by renaming it.
      const file = (await openIfThere(path)) ?? (await openIfThere(path + setAside)) ?? (await openIfThere(path))
      return file && (await verified(file, digest))
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * Whether these bytes are there already; then their file is young again, which keeps the sweep away until whoever asked
   * has committed. The look comes after the touch: a sweep that renamed the file in between is seen by the one or sees the other.
   * A file that holds anything else was damaged, and is written anew.
   */
  async #renewed(path: string, bytes: Uint8Array): Promise<boolean> {
    const now = this.#clock.now()
    const there = await ifThere(utimes(path, now, now).then(() => stat(path)))
    if (there?.size !== bytes.byteLength || !(await ifThere(holds(path, bytes)))) return false
    // Another process may have renamed it into place and not yet flushed the name.
    await flushed(dirname(path))
    return true
  }

  /** A name is durable once the folder that holds it is: whatever had to be made is flushed from the inside out. */
  async #folder(folder: string): Promise<string> {
    const first = await mkdir(folder, { recursive: true, mode: 0o700 })
    if (first === undefined) return folder
    for (let made = folder; made.length >= first.length; made = dirname(made)) await flushed(dirname(made))
    return folder
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.${this.#clock.newName()}`
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(bytes)
        // By the writer's clock, as every touch is: a file server's own may be off, and the sweep compares the two.
        const now = this.#clock.now()
        await file.utimes(now, now)
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

  #path(digest: string): string {
    if (!digestShape.test(digest)) throw new Refusal('artifact.identity')
    return join(this.directory, shardOf(digest), digest)
  }
}

/** fsync of a directory: what was created in it, renamed into it or removed from it survives a loss of power. */
async function flushed(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const pieceBytes = 1024 * 1024

/** Read in pieces: another 16 MiB a delivery would be memory for nothing. */
async function holds(path: string, bytes: Uint8Array): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(1, bytes.byteLength)))
    for (let at = 0; at < bytes.byteLength;) {
      const { bytesRead } = await file.read(piece, 0, piece.length, at)
      if (bytesRead === 0 || !piece.subarray(0, bytesRead).equals(bytes.subarray(at, at + bytesRead))) return false
      at += bytesRead
    }
    return true
  } finally {
    await file.close()
  }
}

const openIfThere = (path: string): Promise<FileHandle | null> => ifThere(open(path, 'r'))

/** Of a file that somebody takes at their own pace there is one piece in memory, and another on its way. */
const takenBytes = 64 * 1024

/** Read twice, from one handle: what was verified is what is sent, whatever takes its name meanwhile, and it is never held whole. */
async function verified(file: FileHandle, digest: string): Promise<StoredFile | null> {
  try {
    const hash = createHash('sha256')
    const piece = Buffer.allocUnsafe(takenBytes)
    let size = 0
    for (let bytesRead = -1; bytesRead !== 0; size += bytesRead) {
      ;({ bytesRead } = await file.read(piece, 0, piece.length, size))
      hash.update(piece.subarray(0, bytesRead))
    }
    if (hash.digest('hex') === digest) return { size, bytes: bytesOf(file, size) }
  } catch (error) {
    await file.close()
    throw error
  }
  await file.close()
  return null
}

/** Closes the file at its end and when it is destroyed. A file that has become shorter is an error: its end would pass for the whole. */
function bytesOf(file: FileHandle, size: number): Readable {
  let at = 0
  const next = async (): Promise<Buffer | null> => {
    if (at === size) return null
    const piece = Buffer.allocUnsafeSlow(Math.min(takenBytes, size - at))
    const { bytesRead } = await file.read(piece, 0, piece.length, at)
    if (bytesRead === 0) throw new Error('A stored file has become shorter than it was.')
    at += bytesRead
    return piece.subarray(0, bytesRead)
  }
  return new Readable({
    highWaterMark: takenBytes,
    read() {
      next().then(
        (piece) => this.push(piece),
        (error: unknown) => this.destroy(error as Error),
      )
    },
    destroy(error, done) {
      callbackify(() => file.close())((failed) => done(error ?? failed))
    },
  })
}

/** Null where the file is not there. */
export async function ifThere<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

const codeOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null

/** What the file system said, as an outage; anything else as it came. */
export function unavailable(error: unknown): unknown {
  if (error instanceof Error && 'errno' in error && 'code' in error && typeof error.code === 'string')
    return new ArtifactsUnavailable(Object.assign(error, { code: error.code }))
  return error
}

/** Whether a task that the viewer may read refers to these bytes. */
export async function isReferenced(db: Connection, viewer: Viewer, digest: string): Promise<boolean> {
  return db.oneFirst(sql.type(z.object({ yes: z.boolean() }))`
    select exists (
      select 1 from task_bytes b join task t on t.id = b.task_id
      where b.digest = ${digest} and t.organization_id = ${viewer.organizationId}
        and ${held(viewer, 'read', sql.fragment`t.agent_id`, sql.fragment`t.skill_id`)}) as yes`)
}
