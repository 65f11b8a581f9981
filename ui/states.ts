/** How states look: icon, word and colour together, never colour alone. The states themselves are the domain's. */
import { html, type TemplateResult } from 'lit'
import type { Role } from '../domain/access.ts'
import type { Trust } from '../domain/agent.ts'
import type { CommandStatus } from '../domain/command.ts'
import type { TaskState } from '../domain/task.ts'
import { initials } from './format.ts'
import { icon, type IconName } from './elements/icon.ts'

export type Tone = '' | 'ok' | 'warn' | 'bad' | 'info' | 'auth' | 'accent'

export interface Mark {
  readonly icon: IconName
  readonly word: string
  readonly tone: Tone
}

const taskMarks: Record<TaskState, Mark> = {
  TASK_STATE_UNSPECIFIED: { icon: 'circle-help', word: 'Unknown', tone: '' },
  TASK_STATE_SUBMITTED: { icon: 'circle-dashed', word: 'Submitted', tone: '' },
  TASK_STATE_WORKING: { icon: 'circle-dot', word: 'Working', tone: 'info' },
  TASK_STATE_INPUT_REQUIRED: { icon: 'circle-help', word: 'Needs input', tone: 'warn' },
  TASK_STATE_AUTH_REQUIRED: { icon: 'key-round', word: 'Needs sign-in', tone: 'auth' },
  TASK_STATE_COMPLETED: { icon: 'circle-check', word: 'Completed', tone: 'ok' },
  TASK_STATE_FAILED: { icon: 'circle-x', word: 'Failed', tone: 'bad' },
  TASK_STATE_CANCELED: { icon: 'circle-slash', word: 'Canceled', tone: '' },
  TASK_STATE_REJECTED: { icon: 'circle-slash', word: 'Rejected', tone: 'bad' },
  MESSAGE_ONLY: { icon: 'reply', word: 'Replied', tone: 'ok' },
}

/** A state of an agent newer than us still shows as something. */
export function taskMark(state: string): Mark {
  const known: Readonly<Record<string, Mark>> = taskMarks
  return Object.hasOwn(taskMarks, state)
    ? (known[state] ?? taskMarks.TASK_STATE_UNSPECIFIED)
    : taskMarks.TASK_STATE_UNSPECIFIED
}

export const commandMarks: Record<CommandStatus, Mark> = {
  pending: { icon: 'circle-dashed', word: 'Accepted, waiting to be delivered', tone: '' },
  dispatching: { icon: 'circle-dot', word: 'Being delivered', tone: 'info' },
  succeeded: { icon: 'circle-check', word: 'Delivered', tone: 'ok' },
  failed: { icon: 'circle-x', word: 'Not delivered', tone: 'bad' },
  uncertain: { icon: 'triangle-alert', word: 'Outcome unknown', tone: 'warn' },
}

export const trustMarks: Record<Trust, Mark> = {
  verified: { icon: 'shield-check', word: 'Verified', tone: 'ok' },
  unsigned: { icon: 'circle-dashed', word: 'Unsigned', tone: '' },
  untrusted: { icon: 'circle-help', word: 'Untrusted key', tone: 'warn' },
  invalid: { icon: 'circle-x', word: 'Invalid signature', tone: 'bad' },
}

export const roleWords: Record<Role, string> = { admin: 'Administrator', operator: 'Operator', viewer: 'Viewer' }

export const chip = ({ icon: name, word, tone }: Mark): TemplateResult =>
  html`<span class=${tone ? `chip tone-${tone}` : 'chip'}>${icon(name, 13)}${word}</span>`

export const personMark = (name: string): TemplateResult =>
  html`<span class="avatar" aria-hidden="true">${initials(name)}</span>`

export const agentMark = (): TemplateResult =>
  html`<span class="avatar agent" aria-hidden="true">${icon('bot', 15)}</span>`
