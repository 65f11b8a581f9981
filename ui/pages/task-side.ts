/**
 * The column beside a task: its facts, the states it went through, and the agent's trace. Owns telling why the trace is empty.
 */
import { html, nothing, svg, type TemplateResult } from 'lit'
import type { TaskView } from '../../domain/task.ts'
import type { TaskActorsAnswer } from '../../domain/task-actors.ts'
import type { App } from '../app.ts'
import type { CardFacts } from '../card.ts'
import { icon, type Icon } from '../elements/icon.ts'
import type { Answer } from '../queries.ts'
import { taskMark, type Tone } from '../states.ts'
import type { TraceEvent } from '../task-stream.ts'
import { tellsTrace } from '../traces.ts'
import { taskFollowers } from './task-followers.ts'
import { taskDrawings } from './task-icons.ts'

export interface SideContext {
  readonly app: App
  /** Undefined while the agent's card is not known. */
  readonly card: CardFacts | undefined
  readonly trace: readonly TraceEvent[]
  readonly debug: boolean
  readonly toggleDebug: () => void
  /** Who looks after it. */
  readonly followers: Answer<TaskActorsAnswer>
  /** The command this person sent last on this task, in this tab. */
  readonly commandId: string | undefined
}

export const taskSide = (task: TaskView, context: SideContext): TemplateResult =>
  html`${facts(task, context)}${timeline(task, context)} ${taskFollowers(context.app, context.followers, task)}
    ${traceSection(task, context)}
    <section><signalbox-task-history .app=${context.app} task-id=${task.localId}></signalbox-task-history></section>`

function facts(task: TaskView, { app, commandId }: SideContext): TemplateResult {
  const agent = `/agents/${task.agentId}`
  const actor = `/actors/command/${commandId ?? ''}`
  const row = (term: string, value: unknown): TemplateResult =>
    html`<div>
      <dt>${term}</dt>
      <dd>${value}</dd>
    </div>`
  return html`<section>
    <h2 class="label">Details</h2>
    <dl>
      ${row('Agent', html`<a class="link" href=${app.router.href(agent)} data-route=${agent}><bdi>${task.agentName}</bdi></a>`)}
      ${task.tenant ? row('Tenant', html`<bdi class="mono">${task.tenant}</bdi>`) : nothing}
      ${task.skillId ? row('Skill', html`<bdi class="mono">${task.skillId}</bdi>`) : nothing}
      ${task.contextId ? row('Context', html`<bdi class="mono ell" title=${task.contextId}>${task.contextId}</bdi>`) : nothing}
      ${row('Started', app.format.at(task.createdAt))} ${row('Changed', app.format.at(task.updatedAt))}
      ${
        commandId === undefined
          ? nothing
          : row(
              'Command',
              html`<a class="link mono ell" href=${app.router.href(actor)} data-route=${actor}
                >${commandId.slice(0, 8)}</a
              >`,
            )
      }
    </dl>
  </section>`
}

function timeline(task: TaskView, { app }: SideContext): TemplateResult {
  return html`<section>
    <h2 class="label">Timeline</h2>
    ${
      task.transitions.length === 0
        ? html`<p class="faint">
            ${task.kind === 'message' ? 'A direct reply has no states.' : 'No state was reported yet.'}
          </p>`
        : html`<ol class="timeline">
            ${task.transitions.map(({ state, timestamp }, at) => {
              const mark = taskMark(state)
              const before = task.transitions[at - 1]
              const passedMs = before ? Date.parse(timestamp) - Date.parse(before.timestamp) : 0
              return html`<li>
                <span class=${mark.tone ? `tone-${mark.tone}` : 'faint'}>${icon(mark.icon, 14)}</span>
                <span class="grow">${mark.word}</span>
                <span
                  class="faint num"
                  title=${before ? `${app.format.duration(passedMs)} after the state before` : nothing}
                  >${app.format.at(timestamp)}</span
                >
              </li>`
            })}
          </ol>`
    }
  </section>`
}

const faces: readonly { match: RegExp; icon: Icon; tone: Tone }[] = [
  { match: /error|failed/, icon: 'circle-x', tone: 'bad' },
  { match: /declined/, icon: 'circle-slash', tone: 'warn' },
  { match: /^tool\./, icon: taskDrawings.wrench, tone: 'info' },
  { match: /thinking|thought/, icon: taskDrawings.brain, tone: '' },
  { match: /delegat/, icon: 'bot', tone: 'auth' },
  { match: /decision/, icon: 'route', tone: '' },
  { match: /started/, icon: taskDrawings.play, tone: '' },
  { match: /finished|completed/, icon: 'check', tone: 'ok' },
]

const faceOf = (type: string): { icon: Icon; tone: Tone } =>
  faces.find(({ match }) => match.test(type)) ?? { icon: 'activity', tone: '' }

function traceSection(task: TaskView, { app, card, trace, debug, toggleDebug }: SideContext): TemplateResult {
  const hidden = trace.filter(({ level }) => level === 'debug').length
  const shown = debug ? trace : trace.filter(({ level }) => level !== 'debug')
  return html`<section>
    <h2 class="label row">
      <span class="grow">Trace</span>
      ${
        hidden > 0
          ? html`<button class="ghost small" aria-pressed=${debug} @click=${toggleDebug}>
              ${debug ? 'Hide' : 'Show'} ${hidden} debug
            </button>`
          : nothing
      }
    </h2>
    ${
      trace.length === 0
        ? html`<p class="faint">${whyEmpty(task, card)}</p>`
        : html`<ol class="trace">
            ${shown.map((event, at) => traceRow(app, event, spanOf(shown, at)))}
          </ol>`
    }
  </section>`
}

interface Span {
  /** Since the first event. */
  readonly startMs: number
  /** Until the next one: a trace tells when things happened, not how long they took. */
  readonly lengthMs: number
  readonly wholeMs: number
}

function spanOf(events: readonly TraceEvent[], at: number): Span {
  const time = (index: number): number => Date.parse(events[index]?.timestamp ?? '') || 0
  const startMs = Math.max(0, time(at) - time(0))
  const lengthMs = at + 1 < events.length ? Math.max(0, time(at + 1) - time(at)) : 0
  return { startMs, lengthMs, wholeMs: Math.max(1, time(events.length - 1) - time(0)) }
}

/** Where in the whole an event lies, in hundredths; never thinner than can be seen. */
const bar = ({ startMs, lengthMs, wholeMs }: Span, tone: Tone): TemplateResult =>
  html`<svg
    class=${tone ? `bar tone-${tone}` : 'bar'}
    viewBox="0 0 100 2"
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    ${svg`<rect class="track" width="100" height="2"></rect><rect x=${Math.min(98.5, (startMs / wholeMs) * 100)} width=${Math.max(1.5, (lengthMs / wholeMs) * 100)} height="2" fill="currentColor"></rect>`}
  </svg>`

function traceRow(app: App, event: TraceEvent, span: Span): TemplateResult {
  const { icon: name, tone } = faceOf(event.type)
  const line = html`<span class=${tone ? `tone-${tone}` : 'faint'}>${icon(name, 14)}</span>
    <bdi class="grow said">${event.title}</bdi>
    <span class="faint num" title=${app.format.full(event.timestamp)}>${app.format.duration(span.startMs)}</span
    >${bar(span, tone)}`
  if (event.parts.length === 0) return html`<li class="event">${line}</li>`
  return html`<li>
    <details>
      <summary class="event" title=${event.type}>${line}</summary>
      <signalbox-json .value=${event.parts}></signalbox-json>
    </details>
  </li>`
}

function whyEmpty(task: TaskView, card: CardFacts | undefined): string {
  if (task.kind === 'message') return 'A direct reply has no trace.'
  if (!card) return 'No trace event has arrived while this page was open.'
  if (!tellsTrace(card)) {
    return `${task.agentName} does not advertise a trace extension, so it has nothing to show here.`
  }
  return `${task.agentName} advertises a trace, and has told nothing about this task.`
}
