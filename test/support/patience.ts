/** For how long a test may take, by its floor. Patience, not a promise: five files share two cores, and some start processes. */
import { relative, resolve, sep } from 'node:path'
import { expect, vi } from 'vitest'

const second = 1_000
const patient: Readonly<Record<string, { readonly test: number; readonly hook: number }>> = {
  bin: { test: 120 * second, hook: 60 * second },
  browser: { test: 90 * second, hook: 120 * second },
  chaos: { test: 300 * second, hook: 120 * second },
}
const usual = { test: 60 * second, hook: 60 * second }

const file = relative(resolve(import.meta.dirname, '..'), expect.getState().testPath ?? '')
const { test, hook } = patient[file.split(sep)[0] ?? ''] ?? usual
vi.setConfig({ testTimeout: test, hookTimeout: hook })
