/**
 * The long pass: the same scenarios at a night's sizes (`sized` in seed.ts), one at a time, so that one does not disturb the
 * other's clocks. About an hour. `SIGNALBOX_CHAOS_SEED` chooses another storm.
 */
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

const hour = 3_600_000

export default defineConfig({
  root: resolve(import.meta.dirname, '../..'),
  test: {
    name: 'storm',
    include: [
      'test/chaos/**/*.{test,storm}.ts',
      'test/actors/models/*.test.ts',
      'test/persistence/rebuild.test.ts',
      'test/specs/{freshness-streams,torrents,visibility}.spec.ts',
      'test/browser/accessibility.test.ts',
    ],
    globalSetup: ['test/support/global.ts'],
    provide: { sharesModules: false },
    env: { SIGNALBOX_CHAOS_PASS: 'long' },
    maxWorkers: 1,
    testTimeout: hour,
    hookTimeout: hour,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['verbose'],
  },
})
