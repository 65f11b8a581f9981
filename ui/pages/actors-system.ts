/**
 * `<signalbox-system>`: the machinery at a glance: what waits, who works on it, and the processes with their loops. Owns
 * the layout. Whether something is stuck, and how that is said, is domain/queue-words.ts; the page around it asks again.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { stuckAfterMs } from '../../domain/patience.ts'
import {
  attentionCountLimit,
  queueCountLimit,
  type HeldLeases,
  type KindQueue,
  type QueuesAnswer,
  type SupervisorAnswer,
} from '../../domain/queue.ts'
import {
  agedWords,
  commandsWords,
  countWords,
  heldOf,
  kindTitle,
  oldestAgeMs,
  queueStanding,
  type Standing,
} from '../../domain/queue-words.ts'
import {
  holdersOf,
  needingStanding,
  placesOf,
  shortOwner,
  systemStanding,
  type QueuesNews,
} from '../../domain/system-words.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { Select } from '../controllers/select.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { ServerClock } from '../server-clock.ts'
import { queuesNews } from './actors-news.ts'
import { processTree, type Seen } from './actors-processes.ts'
import * as ask from './actors-questions.ts'
import { Seconds } from './actors-seconds.ts'
import { standingMark } from './actors-standing.ts'
import { systemSheet } from './actors-system-sheet.ts'

/** What stands where numbers are old: they are shown as they were, and nobody is judged by them. */
const unjudged: Standing = { tone: 'quiet', words: 'Not known' }

/** @element signalbox-system */
export class SignalboxSystem extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false } }
  static override styles = [sheet, systemSheet]
  declare app: App | undefined

  readonly #route = new Select(
    this,
    () => this.app?.router,
    (route) => route,
  )
  readonly #supervisor = new Query(
    this,
    () => this.app && { queries: this.app.queries, question: ask.supervisorQuestion },
  )
  readonly #queues = new Query(this, () => this.app && { queries: this.app.queries, question: ask.queuesQuestion })
  readonly #clock = new ServerClock()

  constructor() {
    super()
    new Seconds(this, () => this.#queues.data !== undefined)
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    if (!app) return nothing
    const supervisor = this.#supervisor.answer
    const retry = (): void => this.#supervisor.refresh()
    if (!supervisor.data) return supervisor.fault ? failure(supervisor.fault, retry) : skeleton(6, 'page')
    const { data, fault } = this.#queues.answer
    const nowMs = this.#clock.nowMs(data)
    const news = queuesNews(supervisor, this.#queues.answer, app.format)
    const isKnown = 'known' in news
    // Everything is shown as it was when it was read: by a clock that runs on, whoever lives falls silent before a slow answer comes.
    const seen: Seen = {
      app,
      nowMs,
      toldMs: data ? Date.parse(data.at) : nowMs,
      isKnown,
      isHere: supervisor.fault?.kind !== 'unreachable',
    }
    return html`<div class="scroll all" tabindex="0" role="region" aria-label="System">
      ${supervisor.fault ? staleNotice(supervisor.fault, retry) : nothing}
      <div class="head">
        <p class="whole" role="status">${standingMark(systemStanding(supervisor.data, news, nowMs))}</p>
        ${this.#needing(app, news)}
      </div>
      ${
        // Where the console does not answer at all it is said once, above.
        fault && fault.status !== 503 && seen.isHere ? staleNotice(fault, () => this.#queues.refresh()) : nothing
      }
      ${data ? this.#queueTable(seen, data, supervisor.data) : nothing}
      ${data ? this.#leaseTable(seen, data, supervisor.data) : nothing}
      ${processTree(seen, supervisor.data, data, this.#address)}
    </div>`
  }

  /** What the address says: whose loops are to be seen, and what the list is filtered by, which links keep. */
  get #address(): { readonly filter: ask.ActorFilter; readonly process: string | null } {
    const query = this.#route.value?.query ?? new URLSearchParams()
    return { filter: ask.filterOf(query), process: query.get('process') }
  }

  #needing(app: App, news: QueuesNews): TemplateResult | typeof nothing {
    const needing = needingStanding(news)
    if (needing === null) return nothing
    return html`<a class="needing" href=${app.router.href(ask.attentionPath)} data-route=${ask.attentionPath}
      >${standingMark(needing)}</a
    >`
  }

  /** A number, and the way to the actors that it counts; `narrowed`: what the list is filtered by then. */
  #counted(app: App, count: number, words: string, of: string, narrowed: Partial<ask.ActorFilter>): TemplateResult {
    if (count === 0) return html`<span class="faint">0</span>`
    const path = ask.actorsPath({ ...ask.everyActor, ...narrowed }, { show: null, process: this.#address.process })
    return html`<a class="link" href=${app.router.href(path)} data-route=${path}
      >${words}<span class="sr"> ${of}</span></a
    >`
  }

  #queueTable(seen: Seen, answer: QueuesAnswer, own: SupervisorAnswer): TemplateResult {
    const dueCommands = answer.kinds.find(({ kind }) => kind === 'command')?.due ?? 0
    return html`<section>
      <h2>Queues</h2>
      <table>
        <caption class="sr">
          What is due, by kind of actor
        </caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col">Standing</th>
            <th scope="col" class="end">Due</th>
            <th scope="col">Oldest</th>
            <th scope="col" class="end">Under way</th>
            <th scope="col" class="end">Needs attention</th>
          </tr>
        </thead>
        <tbody>
          ${answer.kinds.map((queue) => this.#queueRow(seen, queue, answer, own))}
        </tbody>
      </table>
      <p class="muted">${commandsWords(answer.commands, dueCommands, seen.toldMs, seen.app.format)}</p>
    </section>`
  }

  #queueRow(
    { app, toldMs, isKnown }: Seen,
    queue: KindQueue,
    answer: QueuesAnswer,
    own: SupervisorAnswer,
  ): TemplateResult {
    const { kind, due, attention } = queue
    const ageMs = oldestAgeMs(queue, toldMs)
    const holders = holdersOf(answer, own, toldMs)
    const judged = queueStanding(queue, holders, placesOf(own, answer.processes, kind, toldMs), toldMs)
    const standing = isKnown ? judged : unjudged
    const { underWay } = heldOf(kind, holders)
    const count = (n: number): string => app.format.count(n)
    return html`<tr>
      <th scope="row">${kindTitle(kind)} <span class="kind mono">${kind}</span></th>
      <td class="standing-cell">${standingMark(standing)}</td>
      <td class="end num" data-label="Due">
        ${this.#counted(app, due, countWords(due, queueCountLimit, count), `${kind} actors that are due`, { kind, work: 'due' })}
      </td>
      <td class="num ${isKnown && ageMs !== null && ageMs >= stuckAfterMs ? 'tone-warn' : ''}" data-label="Oldest">
        ${ageMs === null ? html`<span class="faint">none</span>` : agedWords(ageMs, (ms) => app.format.duration(ms))}
      </td>
      <td class="end num" data-label="Under way">
        ${this.#counted(app, underWay, count(underWay), `${kind} actors under way`, { kind, work: 'held' })}
      </td>
      <td class="end num" data-label="Needs attention">
        ${this.#counted(app, attention, countWords(attention, attentionCountLimit, count), `${kind} actors that need attention`, { kind, attention: true })}
      </td>
    </tr>`
  }

  #leaseTable(seen: Seen, answer: QueuesAnswer, own: SupervisorAnswer): TemplateResult {
    const { leases, silent } = holdersOf(answer, own, seen.toldMs)
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
                ${leases.map((lease) => this.#leaseRow(seen, lease, silent.has(lease.owner)))}
              </tbody>
            </table>`
      }
    </section>`
  }

  #leaseRow({ app, toldMs, isKnown }: Seen, lease: HeldLeases, isSilentOwner: boolean): TemplateResult {
    const { owner, kind, held, expired, oldestSince, nextEndAt } = lease
    const leftMs = Date.parse(nextEndAt) - toldMs
    const inSeconds = leftMs <= 0 ? 'ran out' : `in ${app.format.duration(Math.ceil(leftMs / 1000) * 1000)}`
    // What was left when it was last known is not what is left.
    const left = isKnown ? inSeconds : app.format.at(nextEndAt)
    const isOwn = owner === this.#supervisor.data?.process.owner
    return html`<tr>
      <th scope="row">
        <span class="mono" title=${owner}>${shortOwner(owner)}</span>
        ${isOwn ? html`<span class="chip tiny">this process</span>` : nothing}
        ${isSilentOwner ? standingMark({ tone: 'warn', words: 'silent' }) : nothing}
      </th>
      <td class="mono">${kind}</td>
      <td class="end num" data-label="Held">
        ${this.#counted(app, held, app.format.count(held), `${kind} actors of ${owner}`, { kind, owner })}
      </td>
      <td data-label="Oldest since">
        ${oldestSince === null ? html`<span class="faint">not begun</span>` : app.format.at(oldestSince)}
      </td>
      <td class="num ${expired > 0 ? 'tone-warn' : ''}" data-label="First ends">
        ${expired > 0 ? html`${icon('triangle-alert', 13)} ${expired} ran out` : left}
      </td>
    </tr>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-system': SignalboxSystem
  }
}
