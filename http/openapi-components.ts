/**
 * The schemas that have a name in the OpenAPI document, so that it says each once. Owns the names and the two shapes of a failure;
 * not the records (domain/).
 */
import * as z from 'zod/mini'
import { Session } from '../domain/access.ts'
import { StateValueSchema } from '../domain/actor.ts'
import { Agent, CardSigning, ComplianceReport, RegisteredAgent } from '../domain/agent.ts'
import { AuditRecord } from '../domain/audit.ts'
import { CommandBody } from '../domain/command-body.ts'
import { Command } from '../domain/command.ts'
import { CommandEvidence } from '../domain/evidence.ts'
import { Following } from '../domain/following.ts'
import { Reviewer } from '../domain/grant.ts'
import { Part, TaskArtifact, TaskMessage, TaskRow, TaskView } from '../domain/task.ts'

/** What is decided before an operation is asked, and what is not there. */
export const DoorFailure = z.object({ error: z.object({ message: z.string() }) })
/** What an operation declines in the state that things are in. */
export const OperationFailure = z.object({ error: z.object({ name: z.literal('Error'), message: z.string() }) })
/** The push receiver's. */
export const DeliveryFailure = z.object({ error: z.string() })

export const components = z.registry<{ id: string }>()
const named: Readonly<Record<string, z.ZodMiniType>> = {
  DoorFailure,
  OperationFailure,
  DeliveryFailure,
  Session,
  Agent,
  RegisteredAgent,
  CardSigning,
  ComplianceReport,
  Command,
  CommandBody,
  CommandEvidence,
  Following,
  Part,
  TaskMessage,
  TaskArtifact,
  TaskRow,
  TaskView,
  AuditRecord,
  Reviewer,
  StateValue: StateValueSchema,
}
for (const [id, schema] of Object.entries(named)) components.add(schema, { id })
