/** What is known of one actor beside its chart: where it is, what can come, what is stored. Draws; asks nobody. */
import { html, nothing, type TemplateResult } from 'lit'
import {
  isDone,
  pathsOf,
  spaced,
  whatCanHappen,
  type ActorDetail,
  type ActorStep,
  type ChartDefinition,
  type NextEvent,
  type StateValue,
} from '../../domain/chart.ts'
import type { Explanation } from '../../domain/explanation.ts'
import { eventWords, guardWords, nextByPerson, timerWords, workWords } from '../../domain/next-words.ts'
import { isOverdue } from '../../domain/unread-agent.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { actorsDrawings } from './actors-icons.ts'

export interface Inspected {
  readonly actor: ActorDetail
  readonly definition: ChartDefinition | undefined
  /** The step that is looked at; undefined while following live. */
  readonly past: ActorStep | undefined
  readonly app: App
  readonly nowMs: number
  /** False: as last known, for which a countdown would be of another time than the rest. */
  readonly isCounting: boolean
  /** Who holds it has not told of itself for long. */
  readonly isSilent: boolean
  /** What is to be said about it; what needs a person stands above the chart already. */
  readonly explanations: readonly Explanation[]
}

const section = (title: string, content: TemplateResult): TemplateResult =>
  html`<section>
    <h3 class="label">${title}</h3>
    ${content}
  </section>`

/** "in 12 s", "now"; whole seconds, because the host redraws once a second. Where nothing is counted, the time. */
const left = ({ app: { format }, nowMs, isCounting }: Inspected, iso: string): string => {
  if (!isCounting) return format.clock(iso)
  const ms = Date.parse(iso) - nowMs
  return ms <= 0 ? 'now' : `in ${format.duration(Math.ceil(ms / 1000) * 1000)}`
}

export function inspector(inspected: Inspected): TemplateResult {
  const { actor, definition, past } = inspected
  const value = past?.value ?? actor.value
  return html`${section(
    past ? `State after step ${past.revision}` : 'State',
    html`${statePaths(value)}${past ? nothing : meaning(inspected)}`,
  )}
  ${section(past ? 'Could happen next' : 'Can happen next', nextEvents(definition, value, !past && actor.attention))}
  ${past ? section(`Step ${past.revision}`, stepFacts(past)) : nothing}
  ${past ? html`<p class="muted then">The rest is stored now and was not kept for step ${past.revision}.</p>` : nothing}
  ${stored(inspected)}`
}

/** Where it is, in words; and what is due there without anybody doing it. */
const meaning = ({ explanations, app }: Inspected): TemplateResult =>
  html`${explanations
    .filter(({ tone }) => tone === 'quiet')
    .map(
      ({ title, sentences, known }) =>
        html`<p class="meaning"><b>${title}.</b> ${sentences.map((sentence) => html`<bdi>${sentence}</bdi> `)}</p>
          ${known.map(({ words, at }) => html`<p class="muted meaning"><bdi>${words}</bdi> ${at === null ? nothing : app.format.at(at)}</p>`)}`,
    )}`

const statePaths = (value: StateValue): TemplateResult =>
  html`${pathsOf(value).map(
    (path) =>
      html`<ol class="path">
        ${path.map((key, index) => html`<li class=${index === path.length - 1 ? 'leaf' : nothing} title=${key}>${spaced(key)}</li>`)}
      </ol>`,
  )}`

function nextEvents(definition: ChartDefinition | undefined, value: StateValue, needsPerson: boolean): TemplateResult {
  if (!definition) return html`<p class="faint">Not known without its chart.</p>`
  const events = whatCanHappen(definition, value)
  const ended = isDone(definition, value)
    ? 'Nothing. It is finished.'
    : 'Not known: this release does not know this state.'
  if (events.length === 0) return html`<p class="faint">${needsPerson ? nextByPerson : ended}</p>`
  return html`<ul class="next">
    ${[...Map.groupBy(events, ({ event }) => event).values()].map(nextEvent)}
  </ul>`
}

/** One event with the ways it may lead: which of them is taken, the machine's conditions decide, in this order. */
function nextEvent(ways: readonly NextEvent[]): TemplateResult | typeof nothing {
  const [first] = ways
  if (!first) return nothing
  return html`<li>
    <span class="event">When ${eventWords(first.event)}</span> <span class="mono faint raw">${first.label}</span>
    ${ways.map(({ to, guard }) => {
      const condition = guard === undefined ? (ways.length > 1 ? 'otherwise' : '') : `if ${guardWords(guard)}`
      return html`<span class="to" title=${guard ?? nothing}
        >${to.length === 0 ? 'stays' : `→ ${to.map(spaced).join(', ')}`}${condition === '' ? '' : ` ${condition}`}</span
      >`
    })}
  </li>`
}

const stepFacts = (step: ActorStep): TemplateResult => {
  const { type: _, ...payload } = step.event
  return html`<dl>
    <div>
      <dt>Cause</dt>
      <dd>${step.cause}</dd>
    </div>
    <div>
      <dt>Facts</dt>
      <dd class="mono">${step.facts.length === 0 ? 'none' : step.facts.join(', ')}</dd>
    </div>
    ${
      Object.keys(payload).length === 0
        ? nothing
        : html`<div>
            <dt>Event</dt>
            <dd><signalbox-json .value=${payload}></signalbox-json></dd>
          </div>`
    }
  </dl>`
}

function stored(inspected: Inspected): TemplateResult {
  const { actor } = inspected
  return html`${actor.work === null && actor.lease === null ? nothing : section('Work', work(inspected))}
  ${actor.timers.length === 0 ? nothing : section('Pending timers', timers(inspected))}
  ${section('Context', context(actor))} ${section('Stored', rowFacts(inspected))}`
}

function work(inspected: Inspected): TemplateResult {
  const { work: wanted, lease } = inspected.actor
  const { nowMs, isSilent } = inspected
  const { format } = inspected.app
  const expired = lease !== null && Date.parse(lease.until) <= nowMs
  return html`<dl>
    ${
      wanted === null
        ? nothing
        : html`<div>
              <dt>Wants</dt>
              <dd>${workWords(wanted.id)} <span class="mono faint">${wanted.id}</span></dd>
            </div>
            <div>
              <dt>Started</dt>
              <dd>${wanted.startedAt === null ? 'not yet' : format.at(wanted.startedAt)}</dd>
            </div>`
    }
    ${
      lease === null
        ? html`<div>
            <dt>Lease</dt>
            <dd>nobody holds it</dd>
          </div>`
        : html`<div>
              <dt>Held by</dt>
              <dd class="mono">
                ${lease.owner}${isSilent ? html` <span class="tone-warn">${icon('triangle-alert', 13)} silent</span>` : nothing}
              </dd>
            </div>
            <div>
              <dt>Until</dt>
              <dd class=${expired ? 'tone-warn' : 'num'}>
                ${expired ? html`${icon('triangle-alert', 13)} ran out ${format.at(lease.until)}` : left(inspected, lease.until)}
              </dd>
            </div>`
    }
  </dl>`
}

const timers = (inspected: Inspected): TemplateResult => {
  const { format } = inspected.app
  return html`<ul class="timers">
    ${inspected.actor.timers.map(
      ({ id, dueAt }) =>
        html`<li class="row">
          ${icon(actorsDrawings.timer, 13)}<span class="grow" title=${id}>${timerWords(id)}</span>
          ${
            isOverdue(dueAt, inspected.nowMs)
              ? html`<span class="tone-warn num">due since ${format.at(dueAt)}</span>`
              : html`<time class="num" datetime=${dueAt} title=${format.full(dueAt)}>${left(inspected, dueAt)}</time>`
          }
        </li>`,
    )}
  </ul>`
}

const context = ({ context: shown }: ActorDetail): TemplateResult =>
  Object.keys(shown).length === 0
    ? html`<p class="faint">Nothing that may be shown.</p>`
    : html`<signalbox-json .value=${shown}></signalbox-json>`

function rowFacts({ actor, app }: Inspected): TemplateResult {
  const { format, router } = app
  const link = (path: string, words: string): TemplateResult =>
    html`<a class="link" href=${router.href(path)} data-route=${path}><bdi>${words}</bdi></a>`
  return html`<dl>
    ${
      actor.taskId === null
        ? nothing
        : html`<div>
            <dt>About</dt>
            <dd>
              ${link(`/tasks/${encodeURIComponent(actor.taskId)}`, actor.kind === 'command' || actor.title === '' ? 'Its task' : actor.title)}
            </dd>
          </div>`
    }
    ${
      actor.agentId === null
        ? nothing
        : html`<div>
            <dt>Agent</dt>
            <dd>${link(`/agents/${encodeURIComponent(actor.agentId)}`, actor.agentName ?? 'Its agent')}</dd>
          </div>`
    }
    <div>
      <dt>Machine</dt>
      <dd class="mono">${actor.kind} v${actor.machineVersion}</dd>
    </div>
    <div>
      <dt>Revision</dt>
      <dd class="num">${format.count(actor.revision)}</dd>
    </div>
    <div>
      <dt>Created</dt>
      <dd>${format.at(actor.createdAt)}</dd>
    </div>
    <div>
      <dt>Moved</dt>
      <dd>${format.at(actor.movedAt)}</dd>
    </div>
    ${
      actor.movedAt === actor.updatedAt
        ? nothing
        : html`<div>
            <dt>Last try</dt>
            <dd>${format.at(actor.updatedAt)}</dd>
          </div>`
    }
    <div>
      <dt>Id</dt>
      <dd class="mono id">${actor.id}</dd>
    </div>
  </dl>`
}
