/** Parts of an actor's page around its chart: what there is to know, the choice of a part on a narrow screen, nobody there. Draws. */
import { html, nothing, type TemplateResult } from 'lit'
import type { Explanation } from '../../domain/explanation.ts'
import type { SentWords } from '../../domain/unsettled-send.ts'
import { icon } from '../elements/icon.ts'
import { shortId } from './actors-questions.ts'
import { explanationNotice, type Subject } from './explanation-view.ts'

/** What there is to know, the chart, the log, the details. */
export type Part = 'told' | 'chart' | 'log' | 'details'

const partWords: Readonly<Record<Part, string>> = { told: 'To know', chart: 'Chart', log: 'Log', details: 'Details' }

export interface Told {
  /** What a command sent; undefined for other kinds, and until it is known. */
  readonly send: SentWords | undefined
  /** The agent's name of the task where it was found. */
  readonly foundTaskId: string | null
  readonly loud: readonly Explanation[]
  readonly subject: Subject
}

/** What was sent, and what needs a person. */
export function toldPart({ send, foundTaskId, loud, subject }: Told): TemplateResult | typeof nothing {
  if (loud.length === 0 && !send) return nothing
  return html`<div class="told" role="region" aria-label="What there is to know" tabindex="0">
    ${
      send
        ? html`<signalbox-sent .app=${subject.app} .send=${send} .foundTaskId=${foundTaskId}></signalbox-sent>`
        : nothing
    }
    ${loud.map((each) => explanationNotice(each, subject))}
  </div>`
}

export interface Choice {
  readonly label: string
  readonly className: string
  readonly parts: readonly Part[]
  readonly shown: Part
  readonly choose: (part: Part) => void
}

/** Which part is shown where there is no room for all. */
export const partChoice = ({ label, className, parts, shown, choose }: Choice): TemplateResult =>
  html`<div class="segments ${className}" role="group" aria-label=${label}>
    ${parts.map(
      (part) => html`<button aria-pressed=${shown === part} @click=${() => choose(part)}>${partWords[part]}</button>`,
    )}
  </div>`

export const actorMissing = (kind: string, id: string, listHref: string | undefined): TemplateResult =>
  html`<div class="empty">
    ${icon('workflow', 28)}<b>Actor not found</b>
    <p>No ${kind} has the id ${shortId(id)}. It may belong to another organization.</p>
    <div class="row">
      <a class="button" href=${listHref ?? nothing} data-route="/actors">All actors</a>
    </div>
  </div>`

export const chartMissing = (kind: string, version: string | undefined): TemplateResult =>
  html`<div class="empty">
    ${icon('workflow', 28)}<b>No chart of this version</b>
    <p>This build has no picture of ${kind} v${version}. Its state and its log are still here.</p>
  </div>`
