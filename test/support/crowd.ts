/** Rate limits for suites and benches whose one person is a crowd: counted as ever, and never reached. */
import { rateLimits, type RateLimits } from '../../actors/rate-counter.ts'

const enough = 1_000_000_000
export const crowd: RateLimits = {
  ...rateLimits,
  read: enough,
  operate: enough,
  administer: enough,
  login: enough,
  callback: enough,
}
