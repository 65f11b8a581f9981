/**
 * How a test starts a script as a process of its own: the product's as a user runs it, built, and a test's own script over
 * the same built product. Owns Node.js's options and which file stands for a source, not the processes.
 */
import { isAbsolute, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const product = /^bin\/(.+)\.ts$/

/**
 * Node.js's arguments for a script of the repository. A built script starts in two thirds of the time of its sources, whose
 * types each process and each of its threads would strip again; the run builds what is stale first (global.ts).
 *
 * A started process lives for seconds: V8's optimizing compilers, that for WebAssembly and that for JavaScript, would still be at work
 * when it ends; 2 s of a processor where it has the embedded database, a seventh of a start where it has not. A user's process runs with both.
 */
export function childArgs(script: string, ...args: readonly string[]): string[] {
  const path = relative(root, isAbsolute(script) ? script : join(root, script))
  const name = product.exec(path)?.[1]
  const entry =
    name === undefined
      ? ['--import', join(import.meta.dirname, 'built-product.ts'), join(root, path)]
      : [join(root, 'dist/bin', `${name}.js`)]
  return ['--liftoff-only', '--no-opt', ...entry, ...args]
}

/** What a script needs that is to find nothing else of this process' environment: programs, and what was compiled of it before. */
export const bareEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
})
