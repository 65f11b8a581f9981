/** What the Actors page asks the server, and the paths it links to. */
import * as z from 'zod/mini'
import { ActorPage } from '../../domain/actor.ts'
import { QueuesAnswer, SupervisorAnswer } from '../../domain/queue.ts'
import type { Question } from '../queries.ts'
import { actorApiPath } from '../record-questions.ts'
import type { ChartFile, ChartIndex } from '../statechart/layout.ts'

export interface ActorFilter {
  readonly text: string
  readonly kind: string
  readonly attention: boolean
  /** What is due and held by nobody, or what somebody is at; empty: either, and neither. */
  readonly work: '' | 'due' | 'held'
  /** Whose leases; empty: anybody's, and nobody's. */
  readonly owner: string
  /** What is about this agent; empty: about any. */
  readonly agentId: string
}
export const everyActor: ActorFilter = { text: '', kind: '', attention: false, work: '', owner: '', agentId: '' }
export const isFiltered = (filter: ActorFilter): boolean => filter.attention || paramsOf(filter).size > 0

/** As the page's address and the server's say it alike; what is empty is left out. */
function paramsOf({ text, kind, work, owner, agentId }: ActorFilter): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ q: text, kind, work, owner, agentId }))
    if (value !== '') query.set(name, value)
  return query
}

/** What the page's address asks for; what it says in a way that we do not know is left out. */
export function filterOf(query: URLSearchParams): ActorFilter {
  const work = query.get('work')
  return {
    text: query.get('q') ?? '',
    kind: query.get('kind') ?? '',
    attention: query.get('needs') === 'attention',
    work: work === 'due' || work === 'held' ? work : '',
    owner: query.get('owner') ?? '',
    agentId: query.get('agentId') ?? '',
  }
}

export const isSameFilter = (a: ActorFilter, b: ActorFilter): boolean =>
  a.attention === b.attention && `${paramsOf(a)}` === `${paramsOf(b)}`

/** What is shown beside the list: which page, and whose loops. Null: as it comes. */
export interface Beside {
  readonly show: 'system' | 'machines' | null
  readonly process: string | null
}

export function besideOf(query: URLSearchParams): Beside {
  const show = query.get('show')
  return {
    show: show === null ? null : show === 'machines' ? 'machines' : 'system',
    process: query.get('process'),
  }
}

/** The page's address: the list as it is filtered, and what is beside it. */
export function actorsPath(filter: ActorFilter, { show, process }: Beside): string {
  const query = paramsOf(filter)
  if (filter.attention) query.set('needs', 'attention')
  if (show !== null) query.set('show', show)
  if (process !== null) query.set('process', process)
  return query.size === 0 ? '/actors' : `/actors?${query}`
}

/** Everything that needs attention. */
export const attentionPath = actorsPath({ ...everyActor, attention: true }, { show: null, process: null })

export function listPath(filter: ActorFilter, cursor?: string): string {
  const query = paramsOf(filter)
  query.set('limit', '100')
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

export const logPath = (kind: string, id: string, from: 'after' | 'before', revision: number, limit: number): string =>
  `${actorApiPath(kind, id)}/log?${from}=${revision}&limit=${limit}`

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
