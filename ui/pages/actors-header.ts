/** The line above an actor's chart: which actor, how it is being looked at, and the chart's tools. Draws; its caller acts. */
import { html, type SVGTemplateResult, type TemplateResult } from 'lit'
import type { ActorDetail, ActorStep } from '../../domain/chart.ts'
import { icon } from '../elements/icon.ts'
import { chip } from '../states.ts'
import { actorsDrawings } from './actors-icons.ts'
import { shortId } from './actors-questions.ts'

export type Copied = 'no' | 'yes' | 'failed'
const copyWords: Record<Copied, string> = { no: 'Copy as Mermaid', yes: 'Copied', failed: 'Could not copy' }

export interface DetailHeader {
  readonly actor: ActorDetail
  /** The step that is looked at; undefined while following. */
  readonly past: ActorStep | undefined
  readonly hasChart: boolean
  /** The change signal arrives, so what is shown is what is. */
  readonly connected: boolean
  /** Where the list is. */
  readonly back: string
  readonly copied: Copied
  readonly outline: boolean
  readonly copy: () => void
  readonly toggleOutline: () => void
  readonly zoomIn: () => void
  readonly zoomOut: () => void
  readonly showEverything: () => void
}

export function detailHeader(header: DetailHeader): TemplateResult {
  const { actor, hasChart, back, copied, outline } = header
  return html`<header class="row">
    <a class="button ghost small icon-only back" href=${back} data-route="/actors" aria-label="All actors">
      ${icon('arrow-left', 15)}
    </a>
    <h2 tabindex="-1" title=${`${actor.kind}/${actor.id}`}>
      <span class="mono ell">${actor.kind}/${shortId(actor.id)}</span>
      <bdi class="muted title ell">${actor.title}</bdi>
    </h2>
    ${mode(header)}
    <span class="grow"></span>
    <button class="small tool" ?disabled=${!hasChart} @click=${header.copy}>
      ${icon(copied === 'yes' ? 'check' : 'copy', 13)}<span class="wide" role="status">${copyWords[copied]}</span>
    </button>
    <button class="small tool" ?disabled=${!hasChart} aria-pressed=${outline} @click=${header.toggleOutline}>
      ${icon('list-checks', 13)}<span class="wide">Outline</span>
    </button>
    <div class="zoom" role="group" aria-label="Chart size">
      ${zoomButton(actorsDrawings['zoom-out'], 'Zoom out', '-', header.zoomOut)}
      ${zoomButton(actorsDrawings['zoom-in'], 'Zoom in', '+', header.zoomIn)}
      ${zoomButton(actorsDrawings.maximize, 'Show everything', '0', header.showEverything)}
    </div>
  </header>`
}

const zoomButton = (drawing: SVGTemplateResult, label: string, key: string, act: () => void): TemplateResult =>
  html`<button class="ghost small icon-only" aria-label=${label} title=${`${label} (${key})`} @click=${act}>
    ${icon(drawing, 15)}
  </button>`

/**
 * Looking back must not be mistaken for looking at now, so it is the loudest of the four. That the page keeps up says nothing of
 * how the actor fares, so that is no green: beside one that is stuck it would read as an all-clear.
 */
function mode({ actor, past, connected }: DetailHeader): TemplateResult {
  if (past) return chip({ icon: 'history', word: `Looking at step ${past.revision}`, tone: 'warn' })
  // Its machine is done with it, and a person is not: only commands end so, and those a person settles.
  if (actor.status === 'done' && actor.attention)
    return chip({ icon: 'triangle-alert', word: 'Needs a person', tone: 'warn' })
  if (actor.status === 'done') return chip({ icon: 'circle-check', word: 'Finished', tone: '' })
  if (connected) return chip({ icon: 'radio', word: 'Page is live', tone: '' })
  return chip({ icon: 'clock', word: 'As last known', tone: '' })
}
