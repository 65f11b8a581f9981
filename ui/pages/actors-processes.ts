/**
 * The processes on one database as a tree: each with how it stands, and below the one that is chosen its loops, places, threads
 * and connections, as it told of them. Templates of the system's page (actors-system.ts); which one is chosen is in the address.
 */
import { html, nothing, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import {
  type LoopView,
  type ProcessView,
  type QueuesAnswer,
  type SupervisorAnswer,
  type ToldProcess,
} from '../../domain/queue.ts'
import { slowAnswerMs } from '../../domain/patience.ts'
import { loopStanding, loopWords, outageWords } from '../../domain/queue-words.ts'
import {
  beside,
  isSilent,
  processStanding,
  replacedOwners,
  shortOwner,
  toldNow,
  workingProcess,
} from '../../domain/system-words.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { plural } from '../format.ts'
import { actorsPath, type ActorFilter } from './actors-questions.ts'
import { standingMark } from './actors-standing.ts'

export interface Seen {
  readonly app: App
  /** The server's clock. */
  readonly nowMs: number
  /** When queues and processes were read, by which they are shown. */
  readonly toldMs: number
  /** False: what others told is old, and nobody is judged by it. */
  readonly isKnown: boolean
  /** False: the process that answered this page does not answer any more, and what it said of itself is as old. */
  readonly isHere: boolean
}

/** `address`: which process it asks for, and what the list beside is filtered by, which links keep. */
export function processTree(
  seen: Seen,
  own: SupervisorAnswer,
  queues: QueuesAnswer | undefined,
  address: { readonly filter: ActorFilter; readonly process: string | null },
): TemplateResult {
  const { nowMs, toldMs } = seen
  const known = queues?.processes ?? []
  const self = toldNow(own, known, nowMs)
  const others = beside(own, known)
  const all = [self, ...others]
  const replaced = replacedOwners(all, toldMs)
  const asked = all.find(({ owner }) => owner === address.process)
  const chosen = asked?.owner ?? workingProcess(own, others, toldMs)
  const branch = (process: ToldProcess): TemplateResult => {
    const isOwn = process === self
    const { owner } = process
    const path = actorsPath(address.filter, { show: 'system', process: owner })
    const release = otherRelease(process, own)
    return html`<li>
      ${limb(seen, process, { isOwn, isChosen: owner === chosen, isReplaced: replaced.has(owner), path, release })}
      ${owner === chosen ? html`<div class="loops">${loopsOf(seen, process, isOwn)}</div>` : nothing}
    </li>`
  }
  return html`<section>
    <h2>Processes</h2>
    ${
      address.process !== null && !asked
        ? html`<p class="muted"><span class="mono">${shortOwner(address.process)}</span> is not there any more.</p>`
        : nothing
    }
    <ul class="processes" aria-label="Every process on this database; choose one to see its loops">
      ${repeat(all, ({ owner }) => owner, branch)}
    </ul>
  </section>`
}

interface Limb {
  readonly isOwn: boolean
  readonly isChosen: boolean
  readonly isReplaced: boolean
  readonly path: string
  /** Where it is not that of the process that answers. */
  readonly release: string | null
}

/** Of a process that runs another than ours, in words; null where it is the same, or not known. Earlier ones do not tell theirs. */
function otherRelease({ told }: ToldProcess, own: SupervisorAnswer): string | null {
  if (told === null || own.process.release === undefined) return null
  const { release = null } = told.process
  if (release === own.process.release) return null
  return release === null ? 'earlier release' : `release ${release}`
}

function limb(
  { app, toldMs, nowMs, isKnown, isHere }: Seen,
  process: ToldProcess,
  { isOwn, isChosen, isReplaced, path, release }: Limb,
): TemplateResult {
  const { owner, told, seenAt } = process
  const standing = processStanding(process, isOwn ? nowMs : toldMs, isReplaced)
  const isJudged = isOwn ? isHere : isKnown
  const isTold = told !== null && isJudged && (isOwn || !isSilent(process, toldMs))
  return html`<div class="process">
    <a
      class="pick mono"
      href=${app.router.href(path)}
      data-route=${path}
      title=${owner}
      aria-current=${isChosen ? 'true' : nothing}
      >${shortOwner(owner)}</a
    >
    ${isOwn ? html`<span class="chip tiny">this process</span>` : nothing}
    ${release === null ? nothing : html`<span class="chip tiny">${release}</span>`}
    ${standingMark(isJudged ? standing : { tone: 'quiet', words: 'Not known' })}
    <span class="told num"
      >${isTold ? placesWords(told.process) : nothing}${isOwn ? nothing : html`<span>told ${app.format.at(seenAt)}</span>`}</span
    >
  </div>`
}

/** "command 3 of 256, subscription 8 of 8": what it is at. */
function placesWords({ loops }: ProcessView): TemplateResult | typeof nothing {
  const busy = loops.flatMap(({ name, places }) =>
    places !== null && places.taken > 0 ? [`${name} ${places.taken} of ${places.limit}`] : [],
  )
  return busy.length === 0 ? nothing : html`<span>${busy.join(', ')}</span>`
}

function loopsOf(seen: Seen, process: ToldProcess, isOwn: boolean): TemplateResult {
  const { app, toldMs, isKnown, isHere } = seen
  const { told, seenAt } = process
  if (told === null) return html`<p class="muted">It is of another release, whose words this one does not know.</p>`
  const isGone = isKnown && isSilent(process, toldMs)
  if (!isOwn && (isGone || !isKnown))
    return html`<p class="muted">
      Last heard of at ${app.format.at(seenAt)}: what its loops do is not known.
      ${isGone ? 'Who stays silent is forgotten after ten minutes.' : nothing}
    </p>`
  if (isOwn && !isHere)
    return html`<p class="muted">It answered this page, and does not answer now: what its loops do is not known.</p>`
  const { loops, works, release } = told.process
  const which = isOwn ? 'The process that answers this page.' : html`As it told, ${app.format.at(seenAt)}.`
  return html`<p class="muted">
      ${which} ${works ? 'It works.' : 'It leaves the work to workers in processes of their own.'}
      ${release === undefined ? nothing : `Release ${release}.`}
    </p>
    ${loopTable(seen, loops, process, isOwn)} ${resources(app, told.process)}`
}

function loopTable(
  { app, nowMs, toldMs }: Seen,
  loops: readonly LoopView[],
  { owner, seenAt }: ToldProcess,
  isOwn: boolean,
): TemplateResult {
  return html`<table>
    <caption class="sr">
      The supervisor's loops in ${owner}
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
      ${repeat(
        loops,
        ({ name }) => name,
        (loop) =>
          html`<tr>
            <th scope="row">
              <span class="mono">${loop.name}</span> <span class="does">${loopWords(loop.name)}</span>
            </th>
            <td class="standing-cell">${standingMark(loopStanding(loop, isOwn ? nowMs : toldMs))}</td>
            <td class="end num" data-label="Places taken">${placesCell(loop)}</td>
            <td class="end num" data-label="Restarts">
              ${loop.restarts === 0 ? html`<span class="faint">0</span>` : loop.restarts}
            </td>
            <td data-label="Last trouble">${troubleCell(app, loop, isOwn ? null : seenAt)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`
}

function placesCell({ places }: LoopView): TemplateResult {
  if (places === null) return html`<span class="faint" aria-label="no places">–</span>`
  const { taken, limit, perAgent } = places
  const most = perAgent < limit ? `${perAgent} for one agent at most` : nothing
  return html`<span title=${most}>${taken} of ${limit}</span>`
}

/** By the database's clock, as all other times here; the process that answers, and one that tells no age, go by their own. */
const troubleAt = ({ at, agoMs }: { at: string; agoMs?: number | undefined }, seenAt: string | null): string =>
  seenAt === null || agoMs === undefined ? at : new Date(Date.parse(seenAt) - agoMs).toISOString()

function troubleCell({ format }: App, { lastFailure, lastOutage }: LoopView, seenAt: string | null): TemplateResult {
  if (lastFailure === null && lastOutage === null) return html`<span class="faint">none</span>`
  return html`${lastFailure === null ? nothing : html`<p>${lastFailure.message}, ${format.at(troubleAt(lastFailure, seenAt))}</p>`}
  ${
    lastOutage === null
      ? nothing
      : html`<p>
          ${outageWords(lastOutage)}, ${format.at(troubleAt(lastOutage, seenAt))}; tried again after
          ${format.duration(lastOutage.pauseMs)}
        </p>`
  }`
}

function resources({ format }: App, { parser, database }: ProcessView): TemplateResult {
  const fact = (term: string, words: TemplateResult | string): TemplateResult =>
    html`<div>
      <dt>${term}</dt>
      <dd>${words}</dd>
    </div>`
  const { inUse, idle, waiting, profile, answerMs } = database
  const name = profile === 'pglite' ? 'embedded' : 'PostgreSQL'
  const pool = `${name}: ${plural(inUse, 'connection')} in use, ${idle} idle`
  const warned = (words: string): TemplateResult =>
    html`, <span class="tone-warn">${icon('triangle-alert', 13)} ${words}</span>`
  const answers =
    answerMs === undefined
      ? nothing
      : answerMs < slowAnswerMs
        ? `, answers in ${answerMs} ms`
        : warned(`answers in ${format.duration(answerMs)}`)
  const busy = `${parser.underWay} under way (${format.bytes(parser.bytesUnderWay)}), ${parser.queued} waiting`
  const threads = `${plural(parser.threads, 'thread')}, ${parser.underWay === 0 ? 'nothing under way' : busy}`
  const lost = plural(parser.tasksLost, 'task')
  return html`<dl>
    ${fact('Database', html`${pool}${answers}${waiting === 0 ? nothing : warned(`${waiting} waiting for a connection`)}`)}
    ${fact('Parsing', parser.tasksLost === 0 ? threads : html`${threads}${warned(`${lost} given up, see the log`)}`)}
  </dl>`
}
