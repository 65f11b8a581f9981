/**
 * A disk of a few megabytes, for filling: a tmpfs in a mount namespace of its own, which takes no privilege where the system
 * lets users have such namespaces. It is reached through the process that holds it, and ends with it.
 */
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const namespace = ['--user', '--map-root-user', '--mount']

/** Whether this system lets us have one. */
export const hasDisks = (): boolean =>
  spawnSync('unshare', [...namespace, 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' }).status === 0

export interface Disk {
  readonly path: string
  /** Leaves so many bytes free. */
  fill(leftBytes: number): void
  free(): void
  remove(): Promise<void>
}

export async function makeDisk(megabytes: number): Promise<Disk> {
  const script = `mount -t tmpfs -o size=${megabytes}m,mode=0700 none /mnt && echo mounted && exec cat`
  const holder: ChildProcessWithoutNullStreams = spawn('unshare', [...namespace, '/bin/sh', '-c', script])
  await once(createInterface(holder.stdout), 'line')
  const path = join('/proc', String(holder.pid), 'root', 'mnt')
  const ballast = join(path, 'ballast')
  return {
    path,
    fill(leftBytes) {
      const { bavail, bsize } = statfsSync(path)
      writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)))
    },
    free: () => rmSync(ballast, { force: true }),
    async remove() {
      const ended = once(holder, 'exit')
      holder.stdin.end()
      await ended
    },
  }
}
