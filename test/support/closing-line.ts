/**
 * The last line of a test run, `N passed, N failed`, for whoever counts without reading. A file that could not be loaded,
 * what goes before or after tests and threw, and an error outside any test count as failed; a test that was left out is in neither number. Vitest's own reporter says
 * everything else.
 */
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    let passed = 0
    let failed = unhandled.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        if (state === 'failed' || state === 'pending') failed += 1
      }
    }
    process.stdout.write(`${passed} passed, ${failed} failed\n`)
  }
}
