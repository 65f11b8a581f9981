/**
 * F8, F12, F13 on the embedded database: acknowledgements that are lost between the driver and its caller, a disk that is
 * full, and a clock that jumps.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { hasDisks, makeDisk } from './disk.ts'
import { expectMostSucceeded, expectNoDoubt, sayLeftOut, storm, usualWords } from './storm.ts'
import { sized } from '../support/pass.ts'

const senders = 12
const minuteMs = 60_000

describe('F8, F13: acknowledgements that are lost while the clock jumps', () => {
  it('repeat nothing, end no lease and leave nothing behind: ten minutes forward, twenty back', async () => {
    const history = await storm('clock and acknowledgements', { database: 'pglite' }, async (stage, chance) => {
      const clock = join(stage.directory, 'clock')
      const jump = (ms: number): void => writeFileSync(clock, String(ms))
      jump(0)
      const console_ = await stage.console({
        storm: ['--seed', String(chance.seed)],
        before: ['--import', join(import.meta.dirname, 'doomed/clock.ts')],
        env: { SIGNALBOX_CHAOS_CLOCK: clock },
      })
      const load = await stage.load(() => [console_.url], chance, usualWords)
      await load.run(sized(0, 200), senders)
      const beforeBytes = await console_.heldBytes()
      for (const ms of [10 * minuteMs, -10 * minuteMs, 0]) {
        await console_.tell({ loseCommits: 0.05 })
        // Answers that are under way while it jumps.
        const running = load.run(sized(20, 700), senders)
        await load.insist(load.wish('message 700'))
        jump(ms)
        await running
        await console_.tell({ loseCommits: 0 })
      }
      const afterBytes = await stage.weighAgain(console_, beforeBytes)
      return { load, figures: { jumps: 3, beforeBytes, afterBytes } }
    })
    expectNoDoubt(history)
  })
})

describe('F12: a disk that is full', () => {
  const megabytes = 96
  // A limit on the size of files does not stand in for the disk: PostgreSQL has a word for ENOSPC (53100) and none for EFBIG.
  const isPlayed = hasDisks()
  if (!isPlayed) sayLeftOut('full disk', 'this system lets nobody mount a tmpfs of their own (unshare --user --mount)')

  it.skipIf(!isPlayed)('refuses with 503, loses nothing, and goes on when there is space again', async () => {
    const disk = await makeDisk(megabytes)
    try {
      const history = await storm(
        'full disk',
        { database: 'pglite', dataDirectory: disk.path },
        async (stage, chance) => {
          let console_ = await stage.console()
          const load = await stage.load(() => [console_.url], chance, usualWords)
          for (let round = 0; round < sized(1, 10); round++) {
            await load.run(20, senders)
            const stop = load.begin(senders)
            // Where its log finds no place, the database ends, and the process with it: then it is as after a kill.
            console_.allow('1')
            await stage.broken(
              'disk full',
              async () => {
                const before = load.refused
                disk.fill(256 * 1024)
                await stage.until(() => load.refused > before || console_.report().ended !== null)
                disk.free()
              },
              5_000,
            )
            if (console_.report().ended !== null) console_ = await stage.console()
            await load.reached(load.accepted + 10)
            await stop()
          }
          return { load, figures: { refused: load.refused } }
        },
      )
      expectMostSucceeded(history)
    } finally {
      await disk.remove()
    }
  })
})
