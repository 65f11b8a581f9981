/**
 * What routes answer with where the domain has no name for it: envelopes around the domain's records. Handlers are checked against
 * them when they are compiled, bodies by the fuzz test (test/specs/openapi-fuzz.spec.ts), the document shows them
 * (openapi.ts). Nothing is checked while answering. Does not own the records (domain/).
 */
import * as z from 'zod/mini'
import { Reviewer } from '../domain/grant.ts'
import { Agent, CardSigning, ComplianceReport, OperableSkills, RegisteredAgent, Trust } from '../domain/agent.ts'
import { Command } from '../domain/command.ts'
import { Following } from '../domain/following.ts'
import { TaskRow, TaskView } from '../domain/task.ts'

const list = <Item extends z.ZodMiniType>(item: Item) => z.readonly(z.array(item))

export const SignedOut = z.object({ signedOut: z.literal(true) })
export const Updated = z.object({ updated: z.literal(true) })
export const Removed = z.object({ removed: z.literal(true) })

export const AgentsAnswer = z.object({ agents: list(Agent) })
export const RegistrationAnswer = z.object({ agent: RegisteredAgent })
export const AgentAnswer = z.object({
  ...RegisteredAgent.shape,
  card: z.unknown(),
  trust: Trust,
  signing: CardSigning,
  report: ComplianceReport,
  operableSkills: OperableSkills,
})
export const PreviewAnswer = z.object({ card: z.unknown(), resolvedCardUrl: z.string(), report: ComplianceReport })

export const CommandAnswer = z.object({ command: Command })
/** `result`: the agent's task or message, in its 1.0 shape and without an envelope. */
export const OutcomeAnswer = z.object({
  result: z.unknown(),
  localId: z.string(),
  commandId: z.string(),
  sessionId: z.string(),
  requestId: z.string(),
  telemetry: list(z.never()),
})

export const TasksAnswer = z.object({ tasks: list(TaskRow) })
/** All but the task: beyond the specification. `operable`: whoever asks may answer and cancel it. */
export const TaskAnswer = z.object({
  task: TaskView,
  commands: list(Command),
  following: z.nullable(Following),
  operable: z.boolean(),
})
/** Of `TaskAnswer` what a page with the task's own stream open has no news of. */
export const TaskCommandsAnswer = z.object({ commands: list(Command) })
export const TaskViewsAnswer = z.object({ tasks: list(TaskView), next: z.nullable(z.string()) })

export const ReviewersAnswer = z.object({ reviewers: list(Reviewer) })

/** A file or a stream: the document can say no more of it than what it is. */
const text: z.ZodMiniType<unknown> = z.string()
/** Where a body is not JSON but one of these media types. */
export const media = (types: readonly string[], description: string) => ({
  description,
  content: Object.fromEntries(types.map((type) => [type, { schema: text }])),
})
/** An answer without a body. */
export const nothing = z.undefined()
