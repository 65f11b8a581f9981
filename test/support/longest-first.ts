/**
 * The order of the test files: those that take long begin, whatever their project, and what waits stands beside what
 * computes. So a fresh clone, which has no durations to sort by, does not end with one worker on a minute's wait and the
 * others idle. Owns the order alone; everything that is not named follows in Vitest's own.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Twenty seconds and more on a quiet machine of two cores. No two browsers stand side by side. */
const longest = [
  'specs/limits.spec.ts',
  'chaos/crash-points.test.ts',
  'browser/agent-troubles.test.ts',
  'actors/subscription-ends.test.ts',
  'specs/agent-troubles.spec.ts',
  'chaos/hostile-agents.test.ts',
  'browser/accessibility.test.ts',
  'chaos/workers.test.ts',
  'specs/unstored-answer.spec.ts',
  'chaos/external.test.ts',
  'specs/restart.spec.ts',
  'specs/heavy-streams.spec.ts',
  'specs/torrents.spec.ts',
  'actors/push-agents.test.ts',
  'actors/shared-discovery.test.ts',
  'bin/launcher.test.ts',
  'browser/stuck.test.ts',
  'actors/turns.test.ts',
  'chaos/outages.test.ts',
  'bin/console.test.ts',
  'browser/outage.test.ts',
  'chaos/push-crash-points.test.ts',
  'specs/debug.spec.ts',
  'actors/agents-words.test.ts',
  'browser/access.test.ts',
  'chaos/embedded.test.ts',
  'specs/visibility.spec.ts',
  'bin/provision.test.ts',
  'browser/console.test.ts',
  'persistence/rebuild.test.ts',
  'specs/dispatch.spec.ts',
  'chaos/kill.test.ts',
  'browser/actors.test.ts',
  'bin/replicas.test.ts',
  'specs/slow-readers.spec.ts',
  'specs/heavy-views.spec.ts',
  'chaos/hostile-following.test.ts',
  'browser/settle.test.ts',
  'persistence/database-scripts.test.ts',
  'specs/push.spec.ts',
].map((name) => resolve(import.meta.dirname, '..', name))

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = longest.filter((name) => !existsSync(name))
    if (missing.length > 0) throw new Error(`Named in ${import.meta.filename}, and not there: ${missing.join(', ')}`)
    const place = ({ moduleId }: TestSpecification): number => {
      const at = longest.indexOf(moduleId)
      return at === -1 ? longest.length : at
    }
    // Sorting is stable: what is not named keeps the order that Vitest gave it.
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}
