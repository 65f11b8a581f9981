/**
 * A task's conversation as a transcript: who said what, what the agent made, and what it asks. Owns the order: messages, then
 * what was made, then the open question last, next to where it is answered. Nothing of an agent's becomes markup.
 */
import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import { isWaiting, type TaskArtifact, type TaskMessage, type TaskView } from '../../domain/task.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { downloadLink, faceOf, joinText, partView, textOf } from '../elements/parts.ts'
import { agentMark, personMark } from '../states.ts'
import { taskDrawings } from './task-icons.ts'

export interface Pending {
  readonly text: string
  readonly messageId: string
  /** How its command stands, in words. */
  readonly standing: string
}

export interface TranscriptContext {
  readonly app: App
  /** Whose messages the person's are: this console has no authors on messages yet. */
  readonly person: string
  readonly pending: Pending | undefined
  readonly open: (artifact: TaskArtifact) => void
}

/** The last word of an agent that waits: it came as the status's own message. */
export function questionOf(task: TaskView): TaskMessage | undefined {
  if (!isWaiting(task.state)) return undefined
  const last = task.messages.at(-1)
  return last?.role === 'agent' && last.fromStatus ? last : undefined
}

export function transcript(task: TaskView, context: TranscriptContext): TemplateResult {
  const question = questionOf(task)
  const said = question ? task.messages.slice(0, -1) : task.messages
  const { pending } = context
  const arrived = pending && task.messages.some(({ id }) => id === pending.messageId)
  return html`${repeat(
    said,
    ({ id }) => id,
    (message) => messageView(task, message, context),
  )}
  ${task.artifacts.length > 0 ? artifacts(task, context) : nothing}
  ${question ? messageView(task, question, context, true) : nothing}
  ${pending && !arrived ? pendingView(pending, context) : nothing}
  ${
    task.messages.length === 0 && task.artifacts.length === 0 && !pending
      ? html`<p class="muted">Nothing has been said yet.</p>`
      : nothing
  }`
}

function messageView(
  task: TaskView,
  message: TaskMessage,
  { app, person }: TranscriptContext,
  asks = false,
): TemplateResult {
  const agent = message.role === 'agent'
  const who = agent ? task.agentName : person
  return html`<article class=${asks ? 'message asks' : 'message'}>
    ${agent ? agentMark() : personMark(person)}
    <div class="grow">
      <p class="by">
        <b><bdi>${who}</bdi></b
        >${asks ? html`<span class="chip tone-warn">asks</span>` : nothing}
        <span class="faint num">${app.format.atMinute(message.timestamp)}</span>
      </p>
      <div class="parts">${joinText(message.parts).map((part) => partView(app, part))}</div>
    </div>
  </article>`
}

const pendingView = (pending: Pending, { person }: TranscriptContext): TemplateResult =>
  html`<article class="message pending">
    ${personMark(person)}
    <div class="grow">
      <p class="by"><b>${person}</b><span class="chip">${icon('circle-dashed', 13)}${pending.standing}</span></p>
      <div class="parts"><p class="said">${pending.text}</p></div>
    </div>
  </article>`

function artifacts(task: TaskView, context: TranscriptContext): TemplateResult {
  return html`<section class="made" aria-label="Artifacts">
    ${repeat(
      task.artifacts,
      ({ artifactId }) => artifactId,
      (artifact) => artifactView(artifact, context),
    )}
  </section>`
}

function artifactView(artifact: TaskArtifact, { app, open }: TranscriptContext): TemplateResult {
  const { icon: name, name: title, summary } = faceOf(app, artifact)
  const parts = joinText(artifact.parts)
  const [only] = parts
  const single = parts.length === 1 ? only : undefined
  return html`<article class="artifact card" aria-label=${`Artifact ${title}`}>
    <header class="row">
      <span class="face" aria-hidden="true">${icon(name, 16)}</span>
      <div class="grow">
        <p class="ell">
          <b><bdi>${title}</bdi></b>
        </p>
        <p class="faint num ell">
          ${single?.kind === 'url' ? html`<bdi class="mono">${textOf(single)}</bdi>, not opened` : summary}
        </p>
      </div>
      ${artifact.complete ? nothing : html`<span class="chip tone-info"><span class="arriving" aria-hidden="true"></span>Arriving</span>`}
      ${
        single?.kind === 'raw'
          ? downloadLink(app, single, single.filename ?? title)
          : html`<button class="small" @click=${() => open(artifact)} aria-label=${`Open ${title}`}>
              ${icon(taskDrawings.expand, 13)}Open
            </button>`
      }
    </header>
    ${artifact.description ? html`<p class="said muted about">${artifact.description}</p>` : nothing}
    ${
      single?.kind === 'text'
        ? html`<div
            class=${artifact.complete ? 'preview scroll' : 'preview growing scroll'}
            tabindex="0"
            role="region"
            aria-label=${`Content of ${title}`}
          >
            ${partView(app, single)}
          </div>`
        : nothing
    }
  </article>`
}
