/** How the tests run: five files at a time, whatever their floor, each with a real PostgreSQL of its own (test/support/global.ts). */
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import LongestFirst from './test/support/longest-first.ts'

/** A run starts some hundreds of processes of the same built files: compiled once, each starts in a seventh less of a processor. */
process.env['NODE_COMPILE_CACHE'] ??= resolve(import.meta.dirname, 'node_modules/.cache/signalbox/compiled')

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    include: ['test/**/*.{test,spec}.ts'],
    globalSetup: ['test/support/global.ts'],
    setupFiles: ['test/support/patience.ts'],
    /**
     * PGlite lives for some seconds in a test: V8's optimizing compiler for WebAssembly is still at work when it ends. Without
     * it a file on PGlite takes some tenths of a second of a processor less, more on a busy machine. Processes that a test starts are told as well (test/support/child.ts).
     */
    execArgv: ['--liftoff-only'],
    /**
     * Files share a worker and what it imported, its browser and its databases: nothing there is replaced, and what a file starts it
     * ends. A worker of its own costs a file 1.5 s of a processor, and one is ended where the next file is another project's: so there is one project.
     */
    isolate: false,
    provide: { sharesModules: true },
    // For two cores: six keep both busy, too, and take an eighth more of them, in each other's way. A PGlite takes 0.5 GB.
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    expect: { poll: { timeout: 10_000 } },
    // A browser's 90 s (patience.ts) alone, once in some runs on two busy processors. No press uses them up, each fails by itself after
    // 30 s; what else was waited for is not known, and 979 walks beside other work did not show it.
    retry: { count: 1, condition: /Test timed out in 90000ms/ },
    // The published push sender tells every call on the console; the OpenID provider, and Lit, that they are none for production.
    onConsoleLog: (log) =>
      /^(?:Push notification sent|oidc-provider |Lit is in dev mode)/.test(log) ? false : undefined,
  },
})
