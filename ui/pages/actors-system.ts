/**
 * `<signalbox-system>`: the machinery at a glance: what waits, who works on it, and the loops of the process that answers. Owns
 * the layout. Whether something is stuck, and how that is said, is domain/queue-words.ts; the page around it asks again.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import {
  attentionCountLimit,
  queueCountLimit,
  type KindQueue,
  type LoopView,
  type ProcessView,
  type QueuesAnswer,
} from '../../domain/queue.ts'
import {
  countWords,
  loopStanding,
  loopWords,
  oldestAgeMs,
  placesOf,
  queueStanding,
  systemStanding,
  type Standing,
} from '../../domain/queue-words.ts'
import type { ApiFault } from '../api.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon, type IconName } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { plural } from '../format.ts'
import { ServerClock } from '../server-clock.ts'
import { queuesQuestion, supervisorQuestion } from './actors-questions.ts'
import { Seconds } from './actors-seconds.ts'
import { systemPath } from './explanation-view.ts'
import { systemSheet } from './actors-system-sheet.ts'

const icons: Record<Standing['tone'], IconName> = {
  ok: 'circle-check',
  quiet: 'circle-dot',
  warn: 'triangle-alert',
  bad: 'circle-x',
}
export const standingMark = ({ tone, words }: Standing): TemplateResult =>
  html`<span class="standing ${tone === 'quiet' ? 'muted' : `tone-${tone}`}">${icon(icons[tone], 13)}${words}</span>`

/** The loops and the process are told without the database, so this page can say that it is the database that is away. */
const whyUnknown = ({ status, message }: ApiFault, isKnown: boolean): string =>
  `Queues and leases are ${isKnown ? 'as last known' : 'not known'}: ${status === 503 ? 'the database does not answer.' : message}`

/** @element signalbox-system */
export class SignalboxSystem extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false } }
  static override styles = [sheet, systemSheet]
  declare app: App | undefined

  readonly #supervisor = new Query(this, () => this.app && { queries: this.app.queries, question: supervisorQuestion })
  readonly #queues = new Query(this, () => this.app && { queries: this.app.queries, question: queuesQuestion })
  readonly #clock = new ServerClock()

  constructor() {
    super()
    new Seconds(this, () => this.#queues.data !== undefined)
  }

  get #nowMs(): number {
    return this.#clock.nowMs(this.#queues.data)
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    if (!app) return nothing
    const supervisor = this.#supervisor.answer
    const queues = this.#queues.answer
    const retry = (): void => this.#supervisor.refresh()
    if (!supervisor.data) return supervisor.fault ? failure(supervisor.fault, retry) : skeleton(6, 'page')
    const { process } = supervisor.data
    const standing = systemStanding(supervisor.data, queues.data, this.#nowMs)
    return html`<div class="scroll all" tabindex="0" role="region" aria-label="System">
      ${supervisor.fault ? staleNotice(supervisor.fault, retry) : nothing}
      <p class="whole" role="status">${standingMark(standing)}</p>
      ${
        queues.fault
          ? html`<div class="notice warn" role="status">
              ${icon('triangle-alert', 15)}<span>${whyUnknown(queues.fault, queues.data !== undefined)}</span>
            </div>`
          : nothing
      }
      ${queues.data ? this.#queueTable(app, queues.data, process) : nothing}
      ${queues.data ? this.#leaseTable(app, queues.data, process) : nothing} ${this.#loopTable(app, process)}
      ${this.#facts(app, process, queues.data)}
    </div>`
  }

  #queueTable(app: App, answer: QueuesAnswer, { loops }: ProcessView): TemplateResult {
    return html`<section>
      <h2>Queues</h2>
      <table>
        <caption class="sr">
          What is due, by kind of actor
        </caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" class="end">Due</th>
            <th scope="col">Oldest</th>
            <th scope="col" class="end">Under way</th>
            <th scope="col">Standing</th>
            <th scope="col" class="end">Needs a person</th>
          </tr>
        </thead>
        <tbody>
          ${answer.kinds.map((queue) => this.#queueRow(app, queue, answer, loops))}
        </tbody>
      </table>
    </section>`
  }

  #queueRow(app: App, queue: KindQueue, { leases }: QueuesAnswer, loops: readonly LoopView[]): TemplateResult {
    const nowMs = this.#nowMs
    const ageMs = oldestAgeMs(queue, nowMs)
    const standing = queueStanding(queue, leases, placesOf(loops, queue.kind), nowMs)
    const held = leases.filter(({ kind }) => kind === queue.kind).reduce((sum, each) => sum + each.held, 0)
    const count = (n: number): string => app.format.count(n)
    const path = `${systemPath}&needs=attention&kind=${encodeURIComponent(queue.kind)}`
    return html`<tr>
      <th scope="row" class="mono">${queue.kind}</th>
      <td class="end num">${countWords(queue.due, queueCountLimit, count)}</td>
      <td class="num ${standing.tone === 'warn' ? 'tone-warn' : ''}">
        ${ageMs === null ? html`<span class="faint">none</span>` : app.format.duration(Math.floor(ageMs / 1000) * 1000)}
      </td>
      <td class="end num">${count(held)}</td>
      <td>${standingMark(standing)}</td>
      <td class="end num">
        ${
          queue.attention === 0
            ? html`<span class="faint">0</span>`
            : html`<a class="link" href=${app.router.href(path)} data-route=${path}
                >${countWords(queue.attention, attentionCountLimit, count)}<span class="sr">
                  ${queue.kind} actors</span
                ></a
              >`
        }
      </td>
    </tr>`
  }

  #leaseTable(app: App, { leases }: QueuesAnswer, own: ProcessView): TemplateResult {
    const left = (iso: string): string => {
      const ms = Date.parse(iso) - this.#nowMs
      return ms <= 0 ? 'ran out' : `in ${app.format.duration(Math.ceil(ms / 1000) * 1000)}`
    }
    return html`<section>
      <h2>Leases</h2>
      ${
        leases.length === 0
          ? html`<p class="muted">Nobody holds any: no work is under way.</p>`
          : html`<table>
              <caption class="sr">
                Who holds work, by process
              </caption>
              <thead>
                <tr>
                  <th scope="col">Process</th>
                  <th scope="col">Kind</th>
                  <th scope="col" class="end">Held</th>
                  <th scope="col">Oldest since</th>
                  <th scope="col">First ends</th>
                </tr>
              </thead>
              <tbody>
                ${leases.map(
                  ({ owner, kind, held, expired, oldestSince, nextEndAt }) =>
                    html`<tr>
                      <th scope="row">
                        <span class="mono">${owner}</span>
                        ${owner === own.owner ? html`<span class="chip tiny">this process</span>` : nothing}
                      </th>
                      <td class="mono">${kind}</td>
                      <td class="end num">${app.format.count(held)}</td>
                      <td>
                        ${oldestSince === null ? html`<span class="faint">not begun</span>` : app.format.at(oldestSince)}
                      </td>
                      <td class="num ${expired > 0 ? 'tone-warn' : ''}">
                        ${expired > 0 ? html`${icon('triangle-alert', 13)} ${expired} ran out` : left(nextEndAt)}
                      </td>
                    </tr>`,
                )}
              </tbody>
            </table>`
      }
    </section>`
  }

  #loopTable(app: App, { loops, owner, works }: ProcessView): TemplateResult {
    return html`<section>
      <h2>Loops of <span class="mono">${owner}</span></h2>
      <p class="muted">
        ${works ? 'The process that answers this page, and works.' : 'The process that answers this page. It leaves the work to workers in processes of their own.'}
      </p>
      <table>
        <caption class="sr">
          The supervisor's loops in this process
        </caption>
        <thead>
          <tr>
            <th scope="col">Loop</th>
            <th scope="col">State</th>
            <th scope="col" class="end">Places taken</th>
            <th scope="col" class="end">Restarts</th>
            <th scope="col">Last trouble</th>
          </tr>
        </thead>
        <tbody>
          ${loops.map(
            (loop) =>
              html`<tr>
                <th scope="row">
                  <span class="mono">${loop.name}</span> <span class="does">${loopWords(loop.name)}</span>
                </th>
                <td>${standingMark(loopStanding(loop, this.#nowMs))}</td>
                <td class="end num">${this.#places(loop)}</td>
                <td class="end num">${loop.restarts === 0 ? html`<span class="faint">0</span>` : loop.restarts}</td>
                <td>${this.#trouble(app, loop)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </section>`
  }

  #places({ places }: LoopView): TemplateResult {
    if (places === null) return html`<span class="faint" aria-label="no places">–</span>`
    const { taken, limit, perAgent } = places
    const most = perAgent < limit ? `${perAgent} for one agent at most` : nothing
    return html`<span title=${most}>${taken} of ${limit}</span>`
  }

  #trouble({ format }: App, { lastFailure, lastOutage }: LoopView): TemplateResult {
    if (lastFailure === null && lastOutage === null) return html`<span class="faint">none</span>`
    return html`${lastFailure === null ? nothing : html`<p>${lastFailure.message}, ${format.at(lastFailure.at)}</p>`}
    ${
      lastOutage === null
        ? nothing
        : html`<p>
            Database away, ${format.at(lastOutage.at)}; tried again after ${format.duration(lastOutage.pauseMs)}
          </p>`
    }`
  }

  #facts({ format }: App, { parser, database }: ProcessView, queues: QueuesAnswer | undefined): TemplateResult {
    const fact = (term: string, words: TemplateResult | string): TemplateResult =>
      html`<div>
        <dt>${term}</dt>
        <dd>${words}</dd>
      </div>`
    const { inUse, idle, waiting, profile } = database
    const name = profile === 'pglite' ? 'embedded' : 'PostgreSQL'
    const pool = `${name}: ${plural(inUse, 'connection')} in use, ${idle} idle`
    const busy = `${parser.underWay} under way (${format.bytes(parser.bytesUnderWay)}), ${parser.queued} waiting`
    const threads = `${plural(parser.threads, 'thread')}, ${parser.underWay === 0 ? 'nothing under way' : busy}`
    const lost = plural(parser.tasksLost, 'task')
    return html`<section>
      <h2>Resources</h2>
      <dl>
        ${queues ? fact('Commands', this.#commands(queues, format)) : nothing}
        ${fact('Database', waiting === 0 ? pool : html`${pool}, <span class="tone-warn">${icon('triangle-alert', 13)} ${waiting} waiting for one</span>`)}
        ${fact('Parsing', parser.tasksLost === 0 ? threads : html`${threads}; <span class="tone-warn">${icon('triangle-alert', 13)} ${lost} given up, see the log</span>`)}
      </dl>
    </section>`
  }

  #commands({ commands }: QueuesAnswer, format: App['format']): TemplateResult {
    const { pending, dispatching, oldestPendingAt } = commands
    const count = (n: number): string => countWords(n, queueCountLimit, (m) => format.count(m))
    const ageMs = oldestAgeMs({ oldestDueAt: oldestPendingAt }, this.#nowMs)
    return html`${count(pending)}
    pending${ageMs === null ? nothing : html`, the oldest for ${format.duration(Math.floor(ageMs / 1000) * 1000)}`};
    ${count(dispatching)} being delivered`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-system': SignalboxSystem
  }
}
