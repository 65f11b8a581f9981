/** The version that this process was installed as: package.json's. Built, this file lies one directory deeper. */
import { readFileSync } from 'node:fs'

const manifest = import.meta.url.endsWith('.js') ? '../../package.json' : '../package.json'

export const { version: packageVersion }: { readonly version: string } = JSON.parse(
  readFileSync(new URL(manifest, import.meta.url), 'utf8'),
)
