/**
 * Who asks the light route: a process of its own that does nothing else, on the clock, so that what is measured is the console's
 * wait and not the asker's. A child process.
 */
import { answerParent } from './child.ts'
import { sharedClock } from './figures.ts'
import { Hands } from './hands.ts'

/**
 * The light route is asked on the clock, whether or not the last answer has come: one asker who waits for each would ask least
 * while the route stands still, and 750 times a second while it does not, which is a load of its own.
 */
const everyMs = 5
/** More than are ever under way: at the worst seen, 140 ms, it is 28. */
const askers = 64
const path = '/api/auth/session'

let hands: Hands
let asking: NodeJS.Timeout
let asked: Promise<number>[] = []

async function ask(): Promise<number> {
  const askedMs = sharedClock()
  await hands.get(path, 200)
  return sharedClock() - askedMs
}

const methods = {
  open: ({ origin }: { origin: string }) => {
    hands = new Hands(origin, askers)
  },
  begin: (_: null) => {
    asked = []
    asking = setInterval(() => {
      const answer = ask()
      answer.catch(() => undefined)
      asked.push(answer)
    }, everyMs)
  },
  /** Milliseconds, each. */
  end: async (_: null) => {
    clearInterval(asking)
    return Promise.all(asked)
  },
}
export type AskerMethods = typeof methods

answerParent(methods, () => hands.close())
