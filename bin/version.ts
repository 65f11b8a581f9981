/** The version that this process was installed as: package.json's. Built, this file lies one directory deeper. */
import { readFileSync } from 'node:fs'

export function packageVersion(): string {
  const manifest = import.meta.url.endsWith('.js') ? '../../package.json' : '../package.json'
  const { version }: { version: string } = JSON.parse(readFileSync(new URL(manifest, import.meta.url), 'utf8'))
  return version
}
