/**
 * The answers about agents, by path, and how their list comes: first what is kept of them, then each as it answers. Apart from
 * questions.ts because the first page needs none of it. Owns no state.
 */
import * as z from 'zod/mini'
import { Agent, CardSigning, ComplianceReport, OperableSkills, RegisteredAgent, Trust } from '../domain/agent.ts'
import { type Api, ApiFault } from './api.ts'
import type { Question } from './queries.ts'
import { agentsPath, answeringPath } from './questions.ts'
import { eventsOf, parseJson } from './task-stream.ts'

const AgentList = z.object({ agents: z.array(Agent) })
export type AgentList = z.infer<typeof AgentList>
const Answered = z.object({ id: z.string(), agent: z.nullable(Agent) })

/** It is in the list by what is kept of it. */
export const isUnanswered = ({ card, error }: Agent): boolean => card === undefined && error === undefined

/** Hundreds may answer in one moment: they are not drawn one by one. */
const drawnEveryMs = 100

const Broken = z.object({ status: z.number(), message: z.string() })

/** The list takes some 5 s at the most: what says nothing for longer has stalled on its way. */
const listWithinMs = 15_000

/**
 * Chromium reports an answer that is not to be stored as aborted, although its stream was read whole: the end of that comes before the
 * request's. Of a copy it does not, whose other half is given up. A copy is taken as fast as it comes, so this is for short answers.
 */
function copyOf(response: Response): ReadableStream<Uint8Array> | null {
  const { body } = response.clone()
  response.body?.cancel().catch(() => undefined)
  return body
}

/**
 * What was known of an agent before stands until it has answered again. Null where that does not come to its end: a console of the release
 * before has no such answer, and what is between may cut it off.
 */
async function readAnswering(
  api: Api,
  known: AgentList | undefined,
  soFar: (list: AgentList) => void,
  signal: AbortSignal,
): Promise<AgentList | null> {
  const response = await api.request(answeringPath, { headers: { accept: 'text/event-stream' }, signal }, [404])
  const body = response.status === 404 ? null : copyOf(response)
  if (!body) return null
  const before = new Map(known?.agents.map((agent) => [agent.id, agent]))
  const agents = new Map<string, Agent>()
  const list = (): AgentList => ({ agents: [...agents.values()] })
  let isWhole = false
  let drawing: ReturnType<typeof setTimeout> | undefined
  const draw = (): void => {
    drawing = undefined
    soFar(list())
  }
  try {
    for await (const { event, data } of eventsOf(body, signal)) {
      const said = parseJson(data)
      if (said === undefined) break
      if (event === 'error') {
        const { status: failed, message } = api.read(said, Broken)
        throw api.refused(failed, message)
      }
      if (event === 'end') isWhole = true
      else if (event === 'kept') {
        for (const agent of api.read(said, AgentList).agents) agents.set(agent.id, before.get(agent.id) ?? agent)
        draw()
      } else if (event === 'answered') {
        const { id, agent } = api.read(said, Answered)
        if (agent) agents.set(id, agent)
        else agents.delete(id)
        drawing ??= setTimeout(draw, drawnEveryMs)
      }
    }
  } catch (error) {
    if (error instanceof ApiFault && error.kind === 'unreachable') return null
    throw error
  } finally {
    clearTimeout(drawing)
  }
  // Read to its end all the same, which is the next thing to come: an answer that is left early is one that was cut off.
  return isWhole ? list() : null
}

/** Steady: the console asks every agent for its card to answer it. */
export const agentsQuestion: Question<AgentList> = { path: agentsPath, schema: AgentList, freshness: 'steady' }

/**
 * The same for who shows agents as they answer, and whose choices do not hang on what has not come yet. Where it breaks off, all of it is
 * asked for in one answer, whose fault is then the fault.
 */
export const answeringQuestion: Question<AgentList> = {
  path: answeringPath,
  schema: AgentList,
  freshness: 'steady',
  sameAs: agentsQuestion,
  ask: async (api, known, soFar, signal) =>
    (await readAnswering(api, known, soFar, AbortSignal.any([signal, AbortSignal.timeout(listWithinMs)]))) ??
    api.get(agentsPath, AgentList, signal),
}

const AgentDetail = z.object({
  ...RegisteredAgent.shape,
  card: z.optional(z.unknown()),
  trust: z.optional(Trust),
  signing: z.optional(CardSigning),
  report: z.optional(ComplianceReport),
  operableSkills: OperableSkills,
})
export type AgentDetail = z.infer<typeof AgentDetail>

export const agentQuestion = (id: string): Question<AgentDetail> => ({
  path: `/api/agents/${encodeURIComponent(id)}`,
  schema: AgentDetail,
  freshness: 'steady',
})

export const Preview = z.object({ card: z.unknown(), resolvedCardUrl: z.string(), report: ComplianceReport })
export type Preview = z.infer<typeof Preview>

export const Registration = z.object({ agent: RegisteredAgent })
