/** How the tests run: one project a floor, five files at a time, each with a real PostgreSQL of its own (test/support/global.ts). */
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import LongestFirst from './test/support/longest-first.ts'

/**
 * PGlite lives for some seconds in a test: V8's optimizing compiler for WebAssembly is still at work when it ends. Without
 * it a file on PGlite takes some tenths of a second of a processor less, more on a busy machine. A process of the product that a test starts is not told.
 */
const execArgv = ['--liftoff-only']

/** A run starts some hundreds of processes of the same built files: compiled once, each starts in a seventh less of a processor. */
process.env['NODE_COMPILE_CACHE'] ??= resolve(import.meta.dirname, 'node_modules/.cache/signalbox/compiled')

/** One project a floor, so that a floor's promises can be run alone. */
const project = (name: string, extra = {}) => ({
  test: {
    name,
    include: [`test/${name}/**/*.{test,spec}.ts`],
    // Patience, not a promise: five files share two cores. Vitest's own second for a poll is short for that.
    testTimeout: 60_000,
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 60_000,
    execArgv,
    provide: { sharesModules: false },
    ...extra,
  },
})

/**
 * Files of a floor share a worker and what it imported, a fifth of what they took, its browser and its databases: nothing there is
 * replaced, and what a file starts it ends. Where processes are started, a file's end ends what it forgot.
 */
const together = { isolate: false, provide: { sharesModules: true } }

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/global.ts'],
    // For two cores: of what two took a third was waiting for the product's own clocks, of what four took a fifth. A PGlite takes 0.5 GB.
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    // The published push sender tells every call on the console; the OpenID provider, and Lit, that they are none for production.
    onConsoleLog: (log) =>
      /^(?:Push notification sent|oidc-provider |Lit is in dev mode)/.test(log) ? false : undefined,
    projects: [
      { test: { name: 'tidy', include: ['test/tidy.test.ts'] } },
      project('a2a', together),
      project('domain', together),
      project('machines', together),
      project('persistence', together),
      project('actors', together),
      project('specs', together),
      project('bin', { testTimeout: 120_000 }),
      project('browser', { ...together, testTimeout: 90_000, hookTimeout: 120_000 }),
      project('chaos', { testTimeout: 300_000, hookTimeout: 120_000 }),
    ],
  },
})
