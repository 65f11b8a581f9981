/**
 * Whether files could be stored in the artifact directory and read again, tried out: modes, mounts and quotas are known to
 * whoever tries. Does not decide what follows (bin/composition.ts).
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ArtifactsUnavailable, unavailable } from './artifacts.ts'

/**
 * Makes the directory where it is missing, and leaves no file in it. Null: nothing is in the way. `name`: no other probe's, for
 * replicas that share the directory may start at once.
 */
export async function probeArtifacts(directory: string, name: string): Promise<ArtifactsUnavailable | null> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const file = join(directory, `probe.${name}`)
    try {
      await writeFile(file, 'a probe', { flag: 'wx', mode: 0o600, flush: true })
      await readFile(file)
      await readdir(directory)
    } finally {
      await rm(file, { force: true })
    }
    return null
  } catch (error) {
    const cause = unavailable(error)
    if (cause instanceof ArtifactsUnavailable) return cause
    throw error
  }
}
