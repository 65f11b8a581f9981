/**
 * What the palette asks for to find messages that made no task. Apart from it, and loaded once there are words to look for: what the
 * palette shared with the lists of these messages would be named in the first load.
 */
import { UnderWayAnswer } from '../../domain/under-way.ts'
import { UnsettledAnswer } from '../../domain/unsettled-send.ts'
import type { Question } from '../queries.ts'

export const sendQuestions: {
  readonly unsettled: Question<UnsettledAnswer>
  readonly underWay: Question<UnderWayAnswer>
} = {
  unsettled: { path: '/api/sends/unsettled', schema: UnsettledAnswer, freshness: 'live' },
  underWay: { path: '/api/sends/under-way', schema: UnderWayAnswer, freshness: 'live' },
}
