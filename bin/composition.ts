/**
 * From a configuration to a running system: locks, database, schema. Shared by the processes that open a database to
 * serve or to work (console.ts, worker.ts). Does not listen, and does not read the environment.
 */
import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import type { Log } from '../actors/log.ts'
import { System, type SystemOptions } from '../actors/system.ts'
import { newToken } from '../actors/tokens.ts'
import { probeArtifacts } from '../persistence/artifact-probe.ts'
import type { Backend } from '../persistence/drivers/backend.ts'
import { openDatabase, type Database } from '../persistence/database.ts'
import { migrateUp, requireSchema } from '../persistence/migrate.ts'
import { migrations } from '../persistence/migrations/all.ts'
import { ConfigError, type WorkerConfig } from './config.ts'
import { lockDataDirectory } from './directory-lock.ts'
import { launchersKeyRing } from './launcher-secrets.ts'
import { requireUsableKeys } from './trusted-keys.ts'
import { packageVersion } from './version.ts'

export interface Running {
  readonly db: Database
  readonly system: System
  readonly log: Logger
  close(): Promise<void>
}

/** Parts that another composition root lays in: the fault suite's are clocks that jump, drivers and sockets that fail, a crowd's limits. */
export interface Parts extends Pick<SystemOptions, 'instruments' | 'outbound' | 'rhythm' | 'limits'> {
  /** Stands between the pool and its driver. */
  readonly backend?: (backend: Backend) => Backend
}

/** Opens and starts everything below HTTP. Throws ConfigError, SecretsUnusable, DirectoryLocked, SchemaMismatch, or what the database says. */
export async function openSystem(
  config: WorkerConfig,
  log: Logger,
  works: boolean,
  migrates: boolean,
  parts: Parts = {},
): Promise<Running> {
  const { backend, ...laidIn } = parts
  await requireUsableKeys(config.cards)
  const vault = config.vault ?? launchersKeyRing(config.directories.data)
  const release = takeDirectories(config)
  try {
    await requireArtifactDirectory(config.directories.artifacts, log)
    const db = await openDatabase(
      config.database.profile === 'pglite'
        ? { kind: 'pglite', dataDir: config.database.directory }
        : { kind: 'postgresql', url: config.database.url },
      backend,
    )
    try {
      await db.raw(async (client) => {
        if (migrates && config.database.autoMigrate) await migrateUp(client, migrations)
        await requireSchema(client, migrations)
      })
      const system = new System({
        ...laidIn,
        db,
        log,
        works,
        release: packageVersion,
        artifactDirectory: config.directories.artifacts,
        keeping: config.keeping,
        policy: config.network,
        vault,
        cards: config.cards,
        extensionHost: config.agents.extensionHost,
        sidebandUris: config.agents.sidebandExtensionUris,
        ...(config.push ? { push: config.push } : {}),
        // One thread beside the main one on a small machine; parsing is bursty, so more than four would mostly sleep.
        parserThreads: Math.min(4, Math.max(1, availableParallelism() - 1)),
      })
      await system.start()
      const close = async (): Promise<void> => {
        await system.stop()
        await db.close()
        release()
      }
      return { db, system, log, close }
    } catch (error) {
      await db.close()
      throw error
    }
  } catch (error) {
    release()
    throw error
  }
}

/**
 * The embedded database's directory is what must have one owner; the data directory carries the pid file that people look
 * for. Both are held for the life of the process.
 */
function takeDirectories(config: WorkerConfig): () => void {
  const { database } = config
  // On PostgreSQL any number of processes may share a machine; what a launcher started still owns its data directory.
  if (database.profile === 'postgresql' && !process.channel) return () => undefined
  const data = lockDataDirectory(config.directories.data)
  if (database.profile === 'postgresql') return () => data.release()
  try {
    const files = lockDataDirectory(database.directory)
    return () => {
      files.release()
      data.release()
    }
  } catch (error) {
    data.release()
    throw error
  }
}

/** A disk that is full has room again without anybody's changing a variable; until then what needs none is done. */
const fullDisk: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

/** Every process stores files, also one that only serves: agents push them. Without this the first one would be lost to tell of it. */
export async function requireArtifactDirectory(
  directory: string,
  log: Pick<Log, 'warn'>,
  probe: typeof probeArtifacts = probeArtifacts,
): Promise<void> {
  const unusable = await probe(directory, newToken())
  if (unusable === null) return
  if (!fullDisk.has(unusable.code))
    throw new ConfigError(
      `A2A_ARTIFACT_DATA_DIR must be a directory that can be read and written: ${directory} (${unusable.code}).`,
    )
  log.warn({ err: unusable, directory }, 'there is no room for files of agents')
}
