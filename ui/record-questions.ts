/** What is on record of an actor, and what a command said, as more than one page asks for it. */
import { ActorAnswer } from '../domain/actor.ts'
import { SentWordsAnswer } from '../domain/unsettled-send.ts'
import type { Question } from './queries.ts'

export const actorApiPath = (kind: string, id: string): string =>
  `/api/actors/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`

export const actorQuestion = (kind: string, id: string): Question<ActorAnswer> => ({
  path: actorApiPath(kind, id),
  schema: ActorAnswer,
  freshness: 'live',
})

/** What a command sent. It never changes, so it is asked for once. */
export const sentQuestion = (commandId: string): Question<SentWordsAnswer> => ({
  path: `/api/sends/${encodeURIComponent(commandId)}`,
  schema: SentWordsAnswer,
  freshness: 'steady',
})
