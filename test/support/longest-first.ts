/**
 * The order of the test files: those that take long begin, whatever their floor, and what waits stands beside what
 * computes. So a fresh clone, which has no durations to sort by, does not end with one worker on a minute's wait and the
 * others idle. Owns the order alone; everything that is not named follows in Vitest's own.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Some twenty-five seconds and more where six share two cores. */
const longest = [
  'chaos/crash-points.test.ts',
  'chaos/workers.test.ts',
  'actors/subscription-rests.test.ts',
  'specs/torrents.spec.ts',
  'specs/heavy-views.spec.ts',
  'browser/accessibility.test.ts',
  'persistence/rebuild.test.ts',
  'specs/agent-troubles.spec.ts',
  'specs/visibility.spec.ts',
  'specs/limits.spec.ts',
  'actors/shares.test.ts',
  'browser/stuck.test.ts',
  'browser/agent-troubles.test.ts',
  'specs/restart.spec.ts',
  'chaos/push-crash-points.test.ts',
  'bin/start-refusals.test.ts',
  'chaos/hostile-agents.test.ts',
  'specs/heavy-streams.spec.ts',
  'chaos/kill.test.ts',
  'browser/outage.test.ts',
  'chaos/outages.test.ts',
  'specs/unstored-answer.spec.ts',
  'browser/statechart.test.ts',
  'persistence/database-scripts.test.ts',
  'browser/actors.test.ts',
  'browser/settle.test.ts',
  'chaos/hostile-following.test.ts',
  'specs/slow-readers.spec.ts',
  'specs/debug.spec.ts',
  'bin/provision.test.ts',
  'actors/agents-words.test.ts',
  'bin/credentials.test.ts',
  'browser/reflow.test.ts',
  'browser/send-again.test.ts',
  'chaos/external.test.ts',
  'specs/outage.spec.ts',
  'browser/console.test.ts',
  'actors/push-agents.test.ts',
  'browser/silent-workers.test.ts',
  'specs/dispatch.spec.ts',
  'browser/task-page.test.ts',
  'bin/replicas.test.ts',
  'chaos/embedded.test.ts',
  'bin/console.test.ts',
  'persistence/task-views.test.ts',
  'specs/push.spec.ts',
  'specs/replacing.spec.ts',
  'persistence/migrate.test.ts',
  'actors/last-words.test.ts',
  'actors/shared-discovery.test.ts',
  'browser/access.test.ts',
  'browser/processes.test.ts',
  'bin/rebuild.test.ts',
  'actors/subscription-ends.test.ts',
  'actors/turns.test.ts',
  'chaos/hostile-process.test.ts',
  'specs/reconciliation.spec.ts',
  'actors/agents-clocks.test.ts',
  'persistence/emptied-database.test.ts',
  'actors/hanging-tokens.test.ts',
  'specs/openapi-fuzz.spec.ts',
  'chaos/replays.test.ts',
  'chaos/any-commit.test.ts',
  'specs/replicas-pooler.spec.ts',
  'persistence/pglite.test.ts',
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
