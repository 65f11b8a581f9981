/**
 * What the palette asks for to find messages that made no task, and what is older than the newest that its lists hold. Apart from it, and
 * loaded once there are words to look for: what the palette shared with the lists of these would be named in the first load.
 */
import { ActorPage } from '../../domain/actor.ts'
import type { ActorSummary } from '../../domain/chart.ts'
import { UnderWayAnswer, underWayStanding } from '../../domain/under-way.ts'
import { UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { actorPath, actorsPath, everyActor, listPath } from '../pages/actors-questions.ts'
import type { Question } from '../queries.ts'

const unsettled: Question<UnsettledAnswer> = {
  path: '/api/sends/unsettled',
  schema: UnsettledAnswer,
  freshness: 'live',
}
const underWay: Question<UnderWayAnswer> = { path: '/api/sends/under-way', schema: UnderWayAnswer, freshness: 'live' }

/** Tasks and messages have actors, which the server finds by their titles. Steady: it is asked for one person's words, once. */
const furtherBack = (text: string): Question<ActorPage> => ({
  path: listPath({ ...everyActor, text }),
  schema: ActorPage,
  freshness: 'steady',
})

/** The page of actors with these words, which goes on where the palette's few end. */
const everywhere = (text: string): string => actorsPath({ ...everyActor, text }, { show: null, process: null })

export interface Older {
  readonly title: string
  readonly note: 'task' | 'message'
  readonly path: string
}

/**
 * The tasks and messages among these actors that are not shown already. The actor that follows a task has the task's id; a message
 * is called as its task is, so where that is found the message is left out.
 */
function olderOf(actors: readonly ActorSummary[], text: string, shown: ReadonlySet<string>): readonly Older[] {
  const named = actors.filter(({ id, title }) => title.toLowerCase().includes(text.toLowerCase()) && !shown.has(id))
  const tasks = named.filter(({ kind }) => kind === 'subscription')
  const titles = new Set([...shown, ...tasks.map(({ title }) => title)])
  const messages = named.filter(({ kind, title }) => kind === 'command' && !titles.has(title))
  return [
    ...tasks.map(({ id, title }): Older => ({ title, note: 'task', path: `/tasks/${id}` })),
    ...messages.map(({ kind, id, title }): Older => ({ title, note: 'message', path: actorPath(kind, id) })),
  ]
}

export const sendQuestions = { unsettled, underWay, furtherBack, everywhere, olderOf, standing: underWayStanding }
