/** A running system on a fresh database of either kind, for tests below HTTP. Logs go where the test looks. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Viewer } from '../../domain/access.ts'
import type { CommandBody } from '../../domain/command-body.ts'
import { isFinished, type Command } from '../../domain/command.ts'
import type { TaskView } from '../../domain/task.ts'
import { System, type SystemOptions } from '../../actors/system.ts'
import type { Log } from '../../actors/log.ts'
import type { Database } from '../../persistence/database.ts'
import { readUntil } from './changes.ts'
import { freshDatabase } from './databases.ts'
import { readView } from './views.ts'

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Record<string, unknown>
}

export function capturedLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: LogLine['level']) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level, message, fields })
  return { log: { info: at('info'), warn: at('warn'), error: at('error') }, lines }
}

export interface RunningSystem {
  readonly system: System
  readonly db: Database
  readonly viewer: Viewer
  readonly lines: LogLine[]
  send(agentId: string, body: Partial<CommandBody>, key?: string): Promise<Command>
  /** The command once it is finished; fails after a bound. */
  finished(id: string): Promise<Command>
  /** The task once a predicate holds of it; fails after a bound. */
  task(localId: string, until: (view: TaskView) => boolean): Promise<TaskView>
  close(): Promise<void>
}

const boundMs = 45_000
let keys = 0

/** A system on a database that somebody else opened and will close. */
export async function systemOn(db: Database, options: Partial<SystemOptions> = {}): Promise<RunningSystem> {
  const artifactDirectory = mkdtempSync(join(tmpdir(), 'signalbox-artifacts-'))
  const { log, lines } = capturedLog()
  const system = new System({
    db,
    log,
    works: true,
    artifactDirectory,
    policy: { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] },
    extensionHost: 'signalbox.example',
    sidebandUris: [],
    parserThreads: 1,
    ...options,
  })
  await system.start()
  const viewer = await system.localAdministrator()
  return {
    system,
    db,
    viewer,
    lines,
    send: async (agentId, body, key = `key-${++keys}`) => {
      const asked = { agentId, body: { action: 'send' as const, tenant: '', ...body }, idempotencyKey: key }
      return (await system.commands.accept(viewer, asked)).command
    },
    finished: async (id) => {
      const read = () => system.commands.find(viewer, id)
      const command = await readUntil(system.changes, boundMs, read, ({ status }) => isFinished(status))
      if (!isFinished(command.status)) throw new Error(`The command is still ${command.status}.`)
      return command
    },
    task: async (localId, until) => {
      const read = () => readView(db.pool, viewer, localId)
      const view = await readUntil(system.changes, boundMs, read, (seen) => seen !== null && until(seen))
      if (view && until(view)) return view
      throw new Error(`The task never came so far: ${JSON.stringify(view)?.slice(0, 2000)}`)
    },
    close: async () => {
      await system.stop()
      rmSync(artifactDirectory, { recursive: true, force: true })
    },
  }
}

export async function freshSystem(
  kind: 'pglite' | 'postgresql',
  options: Partial<SystemOptions> = {},
): Promise<RunningSystem> {
  const fresh = await freshDatabase(kind)
  const running = await systemOn(fresh.db, options)
  return {
    ...running,
    close: async () => {
      await running.close()
      await fresh.close()
    },
  }
}
