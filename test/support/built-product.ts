/** Loaded before a test's own script: what it imports of the product's sources, it gets as it was built. */
import { registerHooks } from 'node:module'

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = pathToFileURL(`${resolve(import.meta.dirname, '../..')}/`).href
const source = /^(?:a2a|actors|bin|domain|http|machines|persistence)\/.*\.ts$/

registerHooks({
  resolve(specifier, context, nextResolve) {
    const found = nextResolve(specifier, context)
    const path = found.url.startsWith(root) ? found.url.slice(root.length) : ''
    if (!source.test(path)) return found
    return { ...found, url: `${root}dist/${path.slice(0, -'.ts'.length)}.js`, format: 'module' }
  },
})
