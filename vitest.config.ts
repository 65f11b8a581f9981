/** How the tests run: one project a floor, two at a time, with one real PostgreSQL for all of them. */
import { defineConfig } from 'vitest/config'

/** One project a floor, so that a floor's promises can be run alone. Two workers: the machine has two cores and a PGlite takes 0.5 GB. */
const project = (name: string, extra = {}) => ({
  test: { name, include: [`test/${name}/**/*.{test,spec}.ts`], testTimeout: 30_000, hookTimeout: 60_000, ...extra },
})

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/global.ts'],
    maxWorkers: 2,
    // The published push sender tells every call on the console.
    onConsoleLog: (log) => (log.startsWith('Push notification sent') ? false : undefined),
    projects: [
      { test: { name: 'tidy', include: ['test/tidy.test.ts'] } },
      project('a2a'),
      project('domain'),
      project('machines'),
      project('persistence'),
      project('actors'),
      project('specs'),
      project('bin', { testTimeout: 120_000 }),
      project('browser', { testTimeout: 90_000, hookTimeout: 120_000 }),
      project('chaos', { testTimeout: 300_000, hookTimeout: 120_000 }),
    ],
  },
})
