/** What is on record of an actor, and what a command said, as more than one page asks for it. */
import { ActorAnswer } from '../domain/actor.ts'
import { CommandStatus } from '../domain/command.ts'
import { SentWordsAnswer, type SentWords } from '../domain/unsettled-send.ts'
import type { Question } from './queries.ts'

export const actorApiPath = (kind: string, id: string): string =>
  `/api/actors/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`

export const actorQuestion = (kind: string, id: string): Question<ActorAnswer> => ({
  path: actorApiPath(kind, id),
  schema: ActorAnswer,
  freshness: 'live',
})

/**
 * What a command sent: words of up to megabytes, which never change, so they are not asked for with every signal. What does change of
 * the answer (its status, what was decided about it, whether one may act on it) is as old as the question: `asItStands` has it new.
 */
export const sentQuestion = (commandId: string): Question<SentWordsAnswer> => ({
  path: `/api/sends/${encodeURIComponent(commandId)}`,
  schema: SentWordsAnswer,
  freshness: 'steady',
})

/** What a command sent, with how it stands by what is on record of it now; that is asked for again with every change. */
export function asItStands(send: SentWords, record: ActorAnswer | undefined): SentWords {
  if (record?.actor.kind !== 'command' || record.actor.id !== send.id) return send
  const { actor, settlement, reopenings, replaces } = record
  const { data: status = send.status } = CommandStatus.safeParse(actor.value)
  return { ...send, status, settlement, reopenings: [...reopenings], replaces }
}
