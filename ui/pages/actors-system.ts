/**
 * `<signalbox-system>`: the machinery at a glance: what waits, who works on it, and the processes with their loops. Owns
 * the layout. Whether something is stuck, and how that is said, is domain/queue-words.ts; the page around it asks again.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import {
  attentionCountLimit,
  queueCountLimit,
  type KindQueue,
  type ProcessView,
  type QueuesAnswer,
  type SupervisorAnswer,
} from '../../domain/queue.ts'
import { countWords, oldestAgeMs, placesOf, queueStanding, systemStanding } from '../../domain/queue-words.ts'
import type { ApiFault } from '../api.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { ServerClock } from '../server-clock.ts'
import { queuesQuestion, supervisorQuestion } from './actors-questions.ts'
import { loopTable, processTable, resources } from './actors-processes.ts'
import { Seconds } from './actors-seconds.ts'
import { standingMark } from './actors-standing.ts'
import { systemPath } from './explanation-view.ts'
import { systemSheet } from './actors-system-sheet.ts'

/** The loops and the process are told without the database, so this page can say that it is the database that is away. */
const whyUnknown = ({ status, message }: ApiFault, isKnown: boolean): string =>
  `Queues and leases are ${isKnown ? 'as last known' : 'not known'}: ${status === 503 ? 'the database does not answer.' : message}`

/** @element signalbox-system */
export class SignalboxSystem extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, _chosen: { state: true } }
  static override styles = [sheet, systemSheet]
  declare app: App | undefined
  /** The process whose loops are shown; null: the one that answers. */
  declare _chosen: string | null

  readonly #supervisor = new Query(this, () => this.app && { queries: this.app.queries, question: supervisorQuestion })
  readonly #queues = new Query(this, () => this.app && { queries: this.app.queries, question: queuesQuestion })
  readonly #clock = new ServerClock()

  constructor() {
    super()
    this._chosen = null
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
      ${queues.data ? this.#queueTable(app, queues.data, supervisor.data) : nothing}
      ${queues.data ? this.#leaseTable(app, queues.data, process) : nothing}
      ${this.#processes(app, supervisor.data, queues.data)}
    </div>`
  }

  /** This process, and of several the one that was chosen, as long as it is known. */
  #processes(app: App, own: SupervisorAnswer, queues: QueuesAnswer | undefined): TemplateResult {
    const others = (queues?.processes ?? []).filter(({ owner }) => owner !== own.process.owner)
    const chosen = others.find(({ owner }) => owner === this._chosen)
    const choose = (owner: string): void => {
      this._chosen = owner
    }
    const shown = chosen ? chosen.told?.process : own.process
    const seen = { app, nowMs: this.#nowMs }
    return html`${others.length > 0 ? processTable(seen, own, others, chosen?.owner ?? own.process.owner, choose) : nothing}
    ${shown ? loopTable(seen, shown, chosen) : nothing} ${shown ? resources(seen, shown, queues) : nothing}`
  }

  #queueTable(app: App, answer: QueuesAnswer, own: SupervisorAnswer): TemplateResult {
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
          ${answer.kinds.map((queue) => this.#queueRow(app, queue, answer, own))}
        </tbody>
      </table>
    </section>`
  }

  #queueRow(app: App, queue: KindQueue, { leases, processes }: QueuesAnswer, own: SupervisorAnswer): TemplateResult {
    const nowMs = this.#nowMs
    const ageMs = oldestAgeMs(queue, nowMs)
    const standing = queueStanding(queue, leases, placesOf(own, processes, queue.kind, nowMs), nowMs)
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
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-system': SignalboxSystem
  }
}
