/**
 * F12 where the database is PostgreSQL: the disk that holds its tables and its log is full, again and again. The console beside it is never
 * restarted. The embedded database's disk is embedded.test.ts.
 */
import { describe, expect, it } from 'vitest'
import { startPostgres, unprivileged } from '../support/postgres.ts'
import { hasDisks, makeDisk } from './disk.ts'
import { freshUrlOn } from './server-faults.ts'
import { expectMostSucceeded, expectNoDoubt, sayLeftOut, storm, usualWords } from './storm.ts'
import { isLong } from '../support/pass.ts'

const senders = 8
const rounds = 10
const megabytes = 192
/** Its log has two segments from the beginning, and needs no third one soon: tables are the first that find no place. */
const settings = ['synchronous_commit=on', 'min_wal_size=32MB', 'max_wal_size=32MB', 'shared_buffers=16MB']

const user = unprivileged()
const isPlayed = hasDisks(user)
const name = 'full disk of PostgreSQL'
if (!isPlayed && isLong) sayLeftOut(name, 'this system lets nobody mount a tmpfs of their own (unshare --user --mount)')

/** In the short pass: a disk of a PostgreSQL that is full once, in test/specs/outage.spec.ts. */
describe.runIf(isPlayed && isLong)('F12: a PostgreSQL whose disk is full', () => {
  it('is waited for: what is asked is refused with 503, nothing is lost or in doubt, and all goes on by itself', async () => {
    const disk = await makeDisk(megabytes, user)
    const postgres = await startPostgres({ settings, dataDirectory: `${disk.path}/db`, respawns: true })
    try {
      const history = await storm(
        name,
        { database: 'postgresql', serverUrl: await freshUrlOn(postgres) },
        async (stage, chance) => {
          const console_ = await stage.console()
          const load = await stage.load(() => [console_.url], chance, usualWords)
          const stop = load.begin(senders)
          for (let round = 0; round < rounds; round++) {
            await load.reached(load.accepted + 20)
            const before = load.refused
            await stage.broken('disk full', async () => {
              disk.fill(chance.whole(0, 4) * 64 * 1024)
              await stage.until(() => load.refused > before)
              disk.free()
            })
            await load.reached(load.accepted + 10)
          }
          await stop()
          return { load, figures: { refused: load.refused } }
        },
      )
      expectMostSucceeded(history)
      expectNoDoubt(history)
      expect(history.processes).toHaveLength(1)
    } finally {
      await postgres.stop()
      await disk.remove()
    }
  })
})
