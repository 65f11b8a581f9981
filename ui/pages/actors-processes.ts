/**
 * The processes on one database, and what one of them says of itself: its loops, places, threads and connections. Templates of
 * the system's page (actors-system.ts), which owns what is chosen.
 */
import { html, nothing, type TemplateResult } from 'lit'
import {
  queueCountLimit,
  type LoopView,
  type ProcessView,
  type QueuesAnswer,
  type SupervisorAnswer,
  type ToldProcess,
} from '../../domain/queue.ts'
import { countWords, loopStanding, loopWords, oldestAgeMs, processStanding } from '../../domain/queue-words.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { plural } from '../format.ts'
import { standingMark } from './actors-standing.ts'

export interface Seen {
  readonly app: App
  /** The server's clock. */
  readonly nowMs: number
}

/** A row each; the one whose loops are shown below is pressed. */
export function processTable(
  { app, nowMs }: Seen,
  own: SupervisorAnswer,
  others: readonly ToldProcess[],
  chosen: string,
  choose: (owner: string) => void,
): TemplateResult {
  const self: ToldProcess = { owner: own.process.owner, seenAt: new Date(nowMs).toISOString(), told: own }
  const row = (process: ToldProcess): TemplateResult => {
    const { owner, told, seenAt } = process
    const isOwn = process === self
    return html`<tr>
      <th scope="row">
        <button type="button" class="pick mono" aria-pressed=${owner === chosen} @click=${() => choose(owner)}>
          ${owner}
        </button>
        ${isOwn ? html`<span class="chip tiny">this process</span>` : nothing}
      </th>
      <td>${standingMark(processStanding(process, nowMs))}</td>
      <td>${told === null ? html`<span class="faint">not known</span>` : placesWords(told.process)}</td>
      <td class="num">${isOwn ? 'now' : app.format.at(seenAt)}</td>
    </tr>`
  }
  return html`<section>
    <h2>Processes</h2>
    <table>
      <caption class="sr">
        Every process on this database; choose one to see its loops
      </caption>
      <thead>
        <tr>
          <th scope="col">Process</th>
          <th scope="col">Standing</th>
          <th scope="col">Places taken</th>
          <th scope="col">Told</th>
        </tr>
      </thead>
      <tbody>
        ${row(self)} ${others.map(row)}
      </tbody>
    </table>
  </section>`
}

/** "command 3 of 256, subscription 8 of 8": what it is at. */
function placesWords({ loops, works }: ProcessView): TemplateResult | string {
  if (!works) return html`<span class="faint" aria-label="no places">–</span>`
  const busy = loops.flatMap(({ name, places }) =>
    places !== null && places.taken > 0 ? [`${name} ${places.taken} of ${places.limit}`] : [],
  )
  return busy.length === 0 ? html`<span class="faint">none</span>` : busy.join(', ')
}

/** `told`: another process than the one that answers. */
export function loopTable(
  seen: Seen,
  { loops, owner, works }: ProcessView,
  told: ToldProcess | undefined,
): TemplateResult {
  const { app, nowMs } = seen
  const which = told ? html`As it told, ${app.format.at(told.seenAt)}.` : 'The process that answers this page.'
  return html`<section>
    <h2>Loops of <span class="mono">${owner}</span></h2>
    <p class="muted">${which} ${works ? 'It works.' : 'It leaves the work to workers in processes of their own.'}</p>
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
              <td>${standingMark(loopStanding(loop, nowMs))}</td>
              <td class="end num">${placesCell(loop)}</td>
              <td class="end num">${loop.restarts === 0 ? html`<span class="faint">0</span>` : loop.restarts}</td>
              <td>${troubleCell(app, loop)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}

function placesCell({ places }: LoopView): TemplateResult {
  if (places === null) return html`<span class="faint" aria-label="no places">–</span>`
  const { taken, limit, perAgent } = places
  const most = perAgent < limit ? `${perAgent} for one agent at most` : nothing
  return html`<span title=${most}>${taken} of ${limit}</span>`
}

function troubleCell({ format }: App, { lastFailure, lastOutage }: LoopView): TemplateResult {
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

export function resources(
  seen: Seen,
  { parser, database }: ProcessView,
  queues: QueuesAnswer | undefined,
): TemplateResult {
  const { format } = seen.app
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
      ${queues ? fact('Commands', commandsFact(seen, queues)) : nothing}
      ${fact('Database', waiting === 0 ? pool : html`${pool}, <span class="tone-warn">${icon('triangle-alert', 13)} ${waiting} waiting for one</span>`)}
      ${fact('Parsing', parser.tasksLost === 0 ? threads : html`${threads}; <span class="tone-warn">${icon('triangle-alert', 13)} ${lost} given up, see the log</span>`)}
    </dl>
  </section>`
}

function commandsFact({ app: { format }, nowMs }: Seen, { commands }: QueuesAnswer): TemplateResult {
  const { pending, dispatching, oldestPendingAt } = commands
  const count = (n: number): string => countWords(n, queueCountLimit, (m) => format.count(m))
  const ageMs = oldestAgeMs({ oldestDueAt: oldestPendingAt }, nowMs)
  return html`${count(pending)}
  pending${ageMs === null ? nothing : html`, the oldest for ${format.duration(Math.floor(ageMs / 1000) * 1000)}`};
  ${count(dispatching)} being delivered`
}
