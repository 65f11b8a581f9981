/**
 * A disk of a few megabytes, for filling: a tmpfs in a mount namespace of its own, which takes no privilege where the system
 * lets users have such namespaces. It is reached through the process that holds it, and ends with it.
 */
import { execFileSync, spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const namespace = ['--user', '--map-root-user', '--mount']

/** Whether this system lets us, or that user, have one. */
export const hasDisks = (user?: DiskUser): boolean =>
  spawnSync('unshare', [...namespace, 'mount', '-t', 'tmpfs', 'none', '/mnt'], { ...user, stdio: 'ignore' }).status ===
  0

export interface DiskUser {
  readonly uid: number
  readonly gid: number
}

export interface Disk {
  readonly path: string
  /** Leaves so many bytes free. */
  fill(leftBytes: number): void
  free(): void
  remove(): Promise<void>
}

/** `user`: whose it is, and nobody else's, where that is not who runs the tests. */
export async function makeDisk(megabytes: number, user?: DiskUser): Promise<Disk> {
  const script = `mount -t tmpfs -o size=${megabytes}m,mode=0700 none /mnt && echo mounted && exec cat`
  const holder: ChildProcessWithoutNullStreams = spawn('unshare', [...namespace, '/bin/sh', '-c', script], { ...user })
  await once(createInterface(holder.stdout), 'line')
  const path = join('/proc', String(holder.pid), 'root', 'mnt')
  const ballast = join(path, 'ballast')
  return {
    path,
    fill(leftBytes) {
      const { bavail, bsize } = statfsSync(path)
      // By its user: to that namespace whoever runs the tests may be nobody. What is written meanwhile takes some of it, and then it is full.
      const bytes = Math.max(0, bavail * bsize - leftBytes)
      execFileSync(
        '/bin/sh',
        ['-c', 'head -c "$1" /dev/zero > "$2" 2>/dev/null || :', 'fill', String(bytes), ballast],
        { ...user },
      )
    },
    free: () => rmSync(ballast, { force: true }),
    async remove() {
      const ended = once(holder, 'exit')
      holder.stdin.end()
      await ended
    },
  }
}
