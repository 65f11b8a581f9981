/** What the Actors page asks the server, and the paths it links to. */
import * as z from 'zod/mini'
import { ActorAnswer, ActorPage } from '../../domain/actor.ts'
import { QueuesAnswer, SupervisorAnswer } from '../../domain/queue.ts'
import { SentWordsAnswer } from '../../domain/unsettled-send.ts'
import type { Question } from '../queries.ts'
import type { ChartFile, ChartIndex } from '../statechart/layout.ts'

export interface ActorFilter {
  readonly text: string
  readonly kind: string
  readonly attention: boolean
}
export const everyActor: ActorFilter = { text: '', kind: '', attention: false }
export const isFiltered = (filter: ActorFilter): boolean => filter.text !== '' || filter.kind !== '' || filter.attention

export function listPath(filter: ActorFilter, cursor?: string): string {
  const query = new URLSearchParams({ limit: '100' })
  if (filter.text !== '') query.set('q', filter.text)
  if (filter.kind !== '') query.set('kind', filter.kind)
  if (filter.attention) query.set('attention', 'true')
  if (cursor !== undefined) query.set('cursor', cursor)
  return `/api/actors?${query}`
}

export const listQuestion = (filter: ActorFilter): Question<ActorPage> => ({
  path: listPath(filter),
  schema: ActorPage,
  freshness: 'live',
})

export const supervisorQuestion: Question<SupervisorAnswer> = {
  path: '/api/supervisor',
  schema: SupervisorAnswer,
  freshness: 'steady',
}

export const queuesQuestion: Question<QueuesAnswer> = { path: '/api/queues', schema: QueuesAnswer, freshness: 'steady' }

const apiPath = (kind: string, id: string): string =>
  `/api/actors/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`

export const actorQuestion = (kind: string, id: string): Question<ActorAnswer> => ({
  path: apiPath(kind, id),
  schema: ActorAnswer,
  freshness: 'live',
})

/** What a command sent. It never changes, so it is asked for once. */
export const sentQuestion = (commandId: string): Question<SentWordsAnswer> => ({
  path: `/api/sends/${encodeURIComponent(commandId)}`,
  schema: SentWordsAnswer,
  freshness: 'steady',
})

export const logPath = (kind: string, id: string, after: number, limit: number): string =>
  `${apiPath(kind, id)}/log?after=${after}&limit=${limit}`

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

// Written by our own build and never by a person or an agent: its outline is checked, not every number in it.
const ChartFileSchema: z.ZodMiniType<ChartFile> = z.custom<ChartFile>(
  (value) => isRecord(value) && isRecord(value['definition']) && isRecord(value['layout']),
)
const ChartIndexSchema: z.ZodMiniType<ChartIndex> = z.custom<ChartIndex>(
  (value) => isRecord(value) && Array.isArray(value['charts']),
)

/** A machine's chart never changes under its version, so it is asked for once. */
export const chartQuestion = (kind: string, version: string): Question<ChartFile> => ({
  path: `/charts/${encodeURIComponent(kind)}@${encodeURIComponent(version)}.json`,
  schema: ChartFileSchema,
  freshness: 'steady',
})

export const chartsQuestion: Question<ChartIndex> = {
  path: '/charts/index.json',
  schema: ChartIndexSchema,
  freshness: 'steady',
}

export const actorPath = (kind: string, id: string): string =>
  `/actors/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`

/** The end of an id tells neighbours apart: ids are made in the order of time and begin alike. */
export const shortId = (id: string): string => (id.length > 13 ? `…${id.slice(-6)}` : id)
