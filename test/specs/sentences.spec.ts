/**
 * The specification's sentences with their statuses, letter by letter: code elsewhere, and most tests, name them by a code or a
 * constant, and would follow a typing mistake. Which request is answered with which is the other specs' part.
 */
import { describe, expect, test } from 'vitest'
import { commandErrors } from '../../domain/command.ts'
import { credentialSentences } from '../../domain/credential.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import { failureOf } from '../../http/refusals.ts'

type Answer = readonly [status: number, sentence: string]

/** Decided before an operation is asked, or about what is not there: `{error: {message}}`. */
const door: Partial<Record<RefusalCode, Answer>> = {
  'session.required': [401, 'Sign in to continue.'],
  'session.failed': [401, 'Sign-in failed. Start a new sign-in attempt.'],
  'session.limit': [429, 'Too many sign-in requests.'],
  'session.unavailable': [503, 'Sign-in service unavailable.'],
  'action.forbidden': [403, 'This action is not permitted.'],
  'rate.limit': [429, 'Too many requests. Try again shortly.'],
  'body.missing': [400, 'Request body is required.'],
  'body.json': [400, 'Invalid request JSON.'],
  'agent.url.missing': [400, 'cardUrl is required.'],
  'agent.url.scheme': [400, 'Agent Card URL must be http(s).'],
  'agent.url.decorated': [400, 'Agent Card URL must not contain credentials, query strings or fragments.'],
  'agent.url.length': [400, 'Agent Card URL exceeds 1024 characters.'],
  'agent.unknown': [404, 'Unknown agent.'],
  'task.unknown': [404, 'Task not found.'],
  'task.filter': [400, 'Invalid task filter.'],
  'task.limit': [400, 'limit must be 1–100.'],
  'task.views.page': [400, 'limit must be 1–100 and after must be a local UUID'],
  'command.key.missing': [400, 'An idempotency key of 1–255 characters is required.'],
  'cursor.invalid': [400, 'Invalid cursor.'],
  'audit.range': [400, 'The start of the range is after its end.'],
  'artifact.identity': [400, 'Invalid artifact identity.'],
  'access.invalid': [400, 'Invalid access management request.'],
  'access.grant.unknown': [400, 'Unknown grant.'],
  'access.team.unknown': [400, 'Unknown team.'],
  'access.membership.unknown': [400, 'Unknown membership.'],
  'access.subject.unknown': [400, 'Unknown grant subject.'],
  'access.agent.unknown': [400, 'Unknown agent.'],
  'push.off': [503, 'Push delivery is not configured.'],
  'push.unauthenticated': [401, 'Invalid push authentication.'],
  'push.media': [415, 'Push requires a JSON content type.'],
  'push.envelope': [400, 'Invalid push event envelope.'],
  'push.payload': [400, 'Invalid push event payload.'],
  'push.delivery': [400, 'Invalid push delivery ID.'],
  'push.task': [409, 'Unexpected push task identity.'],
  'push.scope': [409, 'Unexpected push scope.'],
  'push.limit': [429, 'Push rate limit exceeded.'],
  'push.unavailable': [503, 'Push receipt unavailable; retry later.'],
}

/** Declined in the state that things are in: `{error: {name: 'Error', message}}`. */
const operation: Partial<Record<RefusalCode, Answer>> = {
  'agent.seeded': [409, "This agent comes from A2A_REGISTERED_AGENTS and can't be removed from the UI."],
  'agent.network': [502, 'Agent network request failed.'],
  'command.key.taken': [409, 'This idempotency key already belongs to different command content.'],
  'settlement.taken': [409, 'This send is already settled.'],
  'settlement.early': [409, 'Only a send that failed or is uncertain can be settled.'],
  'settlement.open': [409, 'This send is not settled.'],
  'settlement.successor': [
    400,
    'successorId must name another command with the same action to the same agent, tenant and skill, and no earlier one.',
  ],
  'task.reference.unknown': [404, 'Referenced task not found.'],
  'task.context': [403, 'Task context mismatch.'],
  'skill.context': [400, 'A skill-scoped send must start a new context.'],
  'skill.fixed': [400, 'Task skill cannot be changed.'],
  'skill.unsupported': [400, 'This agent does not support bounded skill routing.'],
  'skill.crossed': [409, 'Agent response crossed a task skill boundary.'],
}

const entriesOf = (table: Partial<Record<RefusalCode, Answer>>) => Object.entries(table) as [RefusalCode, Answer][]

describe('a refusal', () => {
  test.each([
    ['door', door],
    ['operation', operation],
  ] as const)('at the %s has its status and its sentence', (shape, table) => {
    for (const [code, [status, message]] of entriesOf(table))
      expect(failureOf(new Refusal(code)), code).toEqual({ status, message, shape, alarm: null })
  })
})

test('what becomes of a command is said in the specification’s words', () => {
  expect(commandErrors).toEqual({
    discovery: 'Agent discovery failed before dispatch after three attempts.',
    unavailable: 'Command could not dispatch: unavailable agent or input archive.',
    uncertain: 'Remote outcome is uncertain. Automatic resend is disabled; check the task before submitting new work.',
    leaseExpired: 'A previous dispatch lease expired. Remote outcome requires reconciliation.',
  })
  expect(credentialSentences).toEqual({
    required: 'Agent credentials are required.',
    refused: 'Protected agent operation failed.',
    destination: 'Agent credential destination is not permitted.',
    disabled: 'Agent credentials are disabled.',
    vault: 'Credential vault unavailable.',
    oauth: 'Agent OAuth credentials unavailable.',
  })
})
