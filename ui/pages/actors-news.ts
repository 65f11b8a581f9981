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

/** `nowMs`: by the server's clock. */
export function queuesNews(
  supervisor: Answer<SupervisorAnswer>,
  { data, fault }: Answer<QueuesAnswer>,
  nowMs: number,
  format: Format,
): QueuesNews {
  const since = data ? format.clock(data.at) : null
  const failed = supervisor.fault?.kind === 'unreachable' ? supervisor.fault : fault
  if (failed) return { missing: { why: whyOf(failed), since } }
  if (!data) return { missing: { why: 'unasked', since } }
  return nowMs - Date.parse(data.at) > lateAfterMs ? { missing: { why: 'late', since } } : { known: data }
}
