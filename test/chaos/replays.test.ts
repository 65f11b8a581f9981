/**
 * F14: one key means one command, however often and by however many callers at once it is asked for, and other content under
 * the key is a conflict, exactly then.
 */
import { describe, expect, it } from 'vitest'
import { eitherDatabase } from '../support/databases.ts'
import { storm } from './storm.ts'
import { sized } from '../support/pass.ts'

const atOnce = 64
const keysCount = 20

/** What a key means is said by the same statements on both, and tried on both in test/specs/command.spec.ts; here hundreds ask at once. */
describe.each(eitherDatabase)('F14: replays on %s', (database) => {
  it('of one key are one command; other content is refused, also among twins that come first at once', async () => {
    const replays = sized(200, 10_000)
    await storm(`replays, ${database}`, { database }, async (stage, chance) => {
      const console_ = await stage.console()
      const load = await stage.load(
        () => [console_.url],
        chance,
        () => 'message',
      )
      const wishes = Array.from({ length: keysCount }, () => load.wish())
      // Which of two first twins wins is a race; who has the key's content gets the command, the other one 409.
      const conflicts = { expected: 0, seen: 0 }
      let left = replays
      const caller = async (): Promise<void> => {
        while (left-- > 0) {
          const wish = wishes[chance.whole(0, keysCount - 1)] ?? load.wish()
          const isKnown = wish.attempts.some(({ commandId }) => commandId !== null)
          if (!isKnown || chance.next() < 0.8) await load.ask(wish)
          else {
            conflicts.expected += 1
            if ((await load.askOtherwise(wish)) === 409) conflicts.seen += 1
          }
        }
      }
      await Promise.all(Array.from({ length: atOnce }, caller))
      expect(conflicts.seen).toBe(conflicts.expected)
      return { load, figures: { replays, conflicts: conflicts.seen, keys: keysCount } }
    })
  })
})
