/**
 * Death between the bytes of an artifact and the commit that names them. Watches this process's own renames for those by which a whole
 * file comes to its digest's name, and no other. Lies below the product, which has no hook for it and needs none.
 */
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import type { Doom } from './doom.ts'

const digestName = /\/[0-9a-f]{64}$/

export function watchFiles(doom: Doom): void {
  const { rename } = promises
  const watched: typeof rename = async (from, to) => {
    await rename(from, to)
    if (digestName.test(String(to))) doom.reach('artifact/stored')
  }
  Object.defineProperty(promises, 'rename', { value: watched, writable: true, configurable: true, enumerable: true })
  // Whoever imported it by its name has it, too.
  syncBuiltinESMExports()
}
