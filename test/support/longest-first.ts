/**
 * The order of the test files: those that take long begin, whatever their floor, and what waits stands beside what
 * computes. So a fresh clone, which has no durations to sort by, does not end with one worker on a minute's wait and the
 * others idle. Owns the order alone; everything that is not named follows in Vitest's own.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Some nine seconds and more where five share two cores. */
const longest = [
  'browser/console.test.ts',
  'chaos/crash-points.test.ts',
  'chaos/embedded.test.ts',
  'specs/dispatch.spec.ts',
  'specs/limits.spec.ts',
  'specs/agent-troubles.spec.ts',
  'chaos/workers.test.ts',
  'specs/debug.spec.ts',
  'browser/agent-troubles.test.ts',
  'chaos/kill.test.ts',
  'chaos/push-crash-points.test.ts',
  'browser/stuck.test.ts',
  'actors/long-history.test.ts',
  'bin/console.test.ts',
  'browser/outage.test.ts',
  'specs/torrents.spec.ts',
  'specs/outage.spec.ts',
  'chaos/external.test.ts',
  'chaos/hostile-following.test.ts',
  'bin/credentials.test.ts',
  'browser/send-again.test.ts',
  'chaos/outages.test.ts',
  'actors/subscription-rests.test.ts',
  'bin/replicas.test.ts',
  'bin/start-refusals.test.ts',
  'actors/push-agents.test.ts',
  'browser/actors.test.ts',
  'bin/provision.test.ts',
  'chaos/hostile-agents.test.ts',
  'specs/slow-readers.spec.ts',
  'specs/heavy-streams.spec.ts',
  'browser/task-page.test.ts',
  'persistence/rebuild.test.ts',
  'browser/settle.test.ts',
  'browser/accessibility.test.ts',
  'bin/launcher.test.ts',
  'specs/replacing.spec.ts',
  'actors/shares.test.ts',
  'actors/last-words.test.ts',
  'specs/push.spec.ts',
  'persistence/database-scripts.test.ts',
  'actors/parser-pool.test.ts',
  'actors/shared-discovery.test.ts',
  'actors/reconciliation.test.ts',
  'chaos/any-commit.test.ts',
  'specs/visibility.spec.ts',
  'browser/walks.test.ts',
  'specs/reconciliation.spec.ts',
  'browser/access.test.ts',
  'persistence/pglite.test.ts',
  'specs/replicas-pooler.spec.ts',
  'persistence/migrate.test.ts',
  'actors/agents-words.test.ts',
  'specs/heavy-views.spec.ts',
  'persistence/artifacts.test.ts',
  'browser/processes.test.ts',
  'bin/rebuild.test.ts',
  'specs/restart.spec.ts',
  'chaos/hostile-process.test.ts',
  'specs/stream.spec.ts',
  'actors/turns.test.ts',
  'actors/presumptions.test.ts',
  'actors/rhythms.test.ts',
  'browser/reflow.test.ts',
  'actors/changing-agents.test.ts',
  'actors/subscription-ends.test.ts',
  'actors/busy-database.test.ts',
  'specs/openapi-fuzz.spec.ts',
  'actors/credentials.test.ts',
  'browser/silent-workers.test.ts',
  'specs/sign-in-provider.spec.ts',
  'actors/agents-clocks.test.ts',
  'actors/stream-gaps.test.ts',
  'actors/hanging-tokens.test.ts',
  'actors/housekeeping-rounds.test.ts',
  'specs/hostile-network.spec.ts',
  'persistence/flight-lines.test.ts',
  'browser/nothing-there.test.ts',
  'actors/subscription-routes.test.ts',
  'specs/message.spec.ts',
  'actors/leases.test.ts',
  'actors/outbound-agents.test.ts',
  'actors/chunks-anew.test.ts',
  'specs/refused-bodies.spec.ts',
  'actors/clocks.test.ts',
  'specs/command.spec.ts',
  'specs/metrics.spec.ts',
  'actors/models/freshness.test.ts',
  'persistence/housekeeping.test.ts',
  'persistence/retention.test.ts',
  'persistence/drivers.test.ts',
  'actors/late-connections.test.ts',
  'persistence/lost-tasks.test.ts',
  'persistence/emptied-database.test.ts',
  'specs/large-bodies.spec.ts',
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
