/**
 * The long pass: whatever plays more in it than in the test command (test/support/pass.ts), one at a time, so that one does not disturb
 * the other's clocks. About an hour. `SIGNALBOX_CHAOS_SEED` chooses another storm.
 */
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

const root = resolve(import.meta.dirname, '../..')
const hour = 3_600_000

/** Storms, and every other file with a longer form. */
const isOfIt = (file: string): boolean =>
  file.startsWith('test/chaos/') ||
  file.startsWith('test/actors/models/') ||
  /\b(?:isLong|sized|eitherDatabase)\b/.test(readFileSync(resolve(root, file), 'utf8'))

export default defineConfig({
  root,
  test: {
    name: 'storm',
    include: globSync('test/**/*.{test,spec}.ts', { cwd: root }).filter(isOfIt),
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
