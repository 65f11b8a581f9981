/**
 * What is known of the queues now, for whoever judges by it: the last answer as long as it is fresh, and else why there is none.
 * Owns when an answer is too old; the words are domain/system-words.ts.
 */
import type { QueuesAnswer, SupervisorAnswer } from '../../domain/queue.ts'
import type { Missing, QueuesNews } from '../../domain/system-words.ts'
import type { ApiFault } from '../api.ts'
import type { Format } from '../format.ts'
import type { Answer } from '../queries.ts'

/** Three times the pause after which it is asked again (controllers/again.ts): an answer is out, or nobody looked. */
const lateAfterMs = 15_000

const whyOf = ({ kind, status }: ApiFault): Missing['why'] =>
  kind === 'unreachable' ? 'console' : status === 503 ? 'database' : 'refused'

/** When each answer was first looked at: its own time is by the server's clock, which a browser's may jump away from. */
const lookedAtMs = new WeakMap<QueuesAnswer, number>()

function isLate(answer: QueuesAnswer): boolean {
  const nowMs = Date.now()
  const firstMs = lookedAtMs.get(answer) ?? nowMs
  lookedAtMs.set(answer, firstMs)
  return nowMs - firstMs > lateAfterMs
}

export function queuesNews(
  supervisor: Answer<SupervisorAnswer>,
  { data, fault }: Answer<QueuesAnswer>,
  format: Format,
): QueuesNews {
  const since = data ? format.clock(data.at) : null
  const failed = supervisor.fault?.kind === 'unreachable' ? supervisor.fault : fault
  if (failed) return { missing: { why: whyOf(failed), since } }
  if (!data) return { missing: { why: 'unasked', since } }
  return isLate(data) ? { missing: { why: 'late', since } } : { known: data }
}
