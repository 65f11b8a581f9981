/**
 * Builds the console twice: the page at `/` with its lazy chunks, and one self-contained module under a name that never
 * changes, `embed/signalbox-console.js`, for pages without a bundler. Owns the size budget of the first load.
 *
 * No module-preload polyfill and no inlined assets: both would need `'unsafe-inline'` or `data:` in the strict CSP.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import { build, defineConfig, type Plugin, type UserConfig } from 'vite'

const home = dirname(fileURLToPath(import.meta.url))
const out = join(home, 'dist/ui')
/** Initial JavaScript, gzip, in bytes. Measured 2026-11; raising it is a decision. */
const initialBudget = 45_000

/**
 * What the console is made of before a page is chosen, and what nearly every page needs: one file, with all that they import. Left to
 * itself the bundler cuts it anew with each import, into files of a few hundred bytes that compress badly and are a request each.
 */
const everyPage = /\/ui\/(?:console|states|elements\/fetching|controllers\/(?:clock|keep-focus|rows))\.ts$/

const target: NonNullable<UserConfig['build']> = {
  target: 'es2023',
  modulePreload: { polyfill: false },
  assetsInlineLimit: 0,
  reportCompressedSize: false,
}

/** Adds up what `/tasks`, the first page, loads before anything is clicked, prints it, and fails the build over the budget. */
function budget(): Plugin {
  return {
    name: 'signalbox-budget',
    writeBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((file) => file.type === 'chunk')
      const initial = new Set<string>()
      const collect = (name: string): void => {
        if (initial.has(name)) return
        initial.add(name)
        for (const next of chunks.find((chunk) => chunk.fileName === name)?.imports ?? []) collect(next)
      }
      const firstPage = join(home, 'ui/pages/tasks.ts')
      for (const chunk of chunks) if (chunk.isEntry || chunk.facadeModuleId === firstPage) collect(chunk.fileName)
      let bytes = 0
      for (const name of initial) bytes += gzipSync(readFileSync(join(out, name)), { level: 9 }).length
      const line = `console: ${(bytes / 1000).toFixed(1)} kB gzip of initial JavaScript (budget ${initialBudget / 1000})`
      if (bytes > initialBudget) this.error(line)
      process.stdout.write(`${line}\n`)
    },
  }
}

/** Builds the embeddable module after the page, so that one `vite build` makes both. */
function embeddable(): Plugin {
  return {
    name: 'signalbox-embeddable',
    apply: 'build',
    async closeBundle() {
      await build({
        configFile: false,
        root: join(home, 'ui'),
        publicDir: false,
        logLevel: 'warn',
        build: {
          ...target,
          outDir: join(out, 'embed'),
          emptyOutDir: true,
          lib: { entry: join(home, 'ui/define.ts'), formats: ['es'], fileName: () => 'signalbox-console.js' },
          rolldownOptions: { output: { codeSplitting: false, minify: true } },
        },
      })
    },
  }
}

export default defineConfig({
  root: join(home, 'ui'),
  base: '/',
  plugins: [budget(), embeddable()],
  build: {
    ...target,
    outDir: out,
    emptyOutDir: true,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'console', test: everyPage }] } } },
  },
})
