/**
 * A refusal: the console declines, on purpose, and says why. Closed codes, each with the sentence of the specification;
 * a sentence is safe to show. http/refusals.ts alone gives a code its status. Not for outages or defects.
 */
import { settlementRefusals } from './settlement.ts'

export const refusals = {
  'body.invalid': 'Invalid request.',
  'body.missing': 'Request body is required.',
  'body.json': 'Invalid request JSON.',
  'body.size': 'Request body exceeds the 16 MiB limit.',
  'session.required': 'Sign in to continue.',
  'session.unavailable': 'Sign-in service unavailable.',
  'session.failed': 'Sign-in failed. Start a new sign-in attempt.',
  'session.limit': 'Too many sign-in requests.',
  'rate.limit': 'Too many requests. Try again shortly.',
  'action.forbidden': 'This action is not permitted.',
  'agent.unknown': 'Unknown agent.',
  'agent.seeded': "This agent comes from A2A_REGISTERED_AGENTS and can't be removed from the UI.",
  'agent.url.missing': 'cardUrl is required.',
  'agent.url.scheme': 'Agent Card URL must be http(s).',
  'agent.url.decorated': 'Agent Card URL must not contain credentials, query strings or fragments.',
  'agent.url.length': 'Agent Card URL exceeds 1024 characters.',
  'agent.discovery': 'Agent Card discovery failed.',
  'agent.network': 'Agent network request failed.',
  'command.unknown': 'Command not found.',
  'command.key.missing': 'An idempotency key of 1–255 characters is required.',
  'command.key.taken': 'This idempotency key already belongs to different command content.',
  'command.failed': 'The command failed.',
  'command.waiting': 'Command accepted; waiting stopped.',
  'settlement.taken': settlementRefusals.taken,
  'settlement.early': settlementRefusals.early,
  'settlement.open': settlementRefusals.open,
  'settlement.successor': settlementRefusals.successor,
  'settlement.replaces': settlementRefusals.replaces,
  'task.unknown': 'Task not found.',
  'task.filter': 'Invalid task filter.',
  'task.limit': 'limit must be 1–100.',
  'task.offset': 'offset must be 0 or more.',
  'task.views.page': 'limit must be 1–100 and after must be a local UUID',
  'task.views.room': 'Other large tasks are being read now; try again in a moment.',
  'task.reference.unknown': 'Referenced task not found.',
  'task.context': 'Task context mismatch.',
  'skill.context': 'A skill-scoped send must start a new context.',
  'skill.fixed': 'Task skill cannot be changed.',
  'skill.unsupported': 'This agent does not support bounded skill routing.',
  'skill.crossed': 'Agent response crossed a task skill boundary.',
  'cursor.invalid': 'Invalid cursor.',
  'audit.range': 'The start of the range is after its end.',
  'audit.chain.filters': 'A chain export takes no filters: it would not show that nothing is missing.',
  'access.invalid': 'Invalid access management request.',
  'access.grant.unknown': 'Unknown grant.',
  'access.team.unknown': 'Unknown team.',
  'access.membership.unknown': 'Unknown membership.',
  'access.subject.unknown': 'Unknown grant subject.',
  'access.agent.unknown': 'Unknown agent.',
  'actor.unknown': 'Actor not found.',
  'artifact.identity': 'Invalid artifact identity.',
  'push.off': 'Push delivery is not configured.',
  'push.unauthenticated': 'Invalid push authentication.',
  'push.limit': 'Push rate limit exceeded.',
  'push.media': 'Push requires a JSON content type.',
  'push.delivery': 'Invalid push delivery ID.',
  'push.envelope': 'Invalid push event envelope.',
  'push.payload': 'Invalid push event payload.',
  'push.task': 'Unexpected push task identity.',
  'push.scope': 'Unexpected push scope.',
  'push.unavailable': 'Push receipt unavailable; retry later.',
  'route.unknown': 'Not found.',
  'route.method': 'This method is not allowed here.',
  'event.ignored': 'The actor cannot take this event in its present state.',
} as const

export type RefusalCode = keyof typeof refusals

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  /** `message` replaces the code's sentence where the specification's carries a value of this case. */
  constructor(code: RefusalCode, message?: string) {
    super(message ?? refusals[code])
    this.code = code
  }
}
