/** Parts of an actor's page around its chart: what there is to know, the choice of a part on a narrow screen, nobody there. Draws. */
import { html, nothing, type TemplateResult } from 'lit'
import type { ActorAnswer } from '../../domain/actor.ts'
import type { Explanation } from '../../domain/explanation.ts'
import type { SentWords } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { SignalboxReopen } from '../elements/reopen-send.ts'
import { SignalboxSettle } from '../elements/settle-send.ts'
import { define } from '../elements/view.ts'
import { shortId } from './actors-questions.ts'
import { explanationNotice, type Subject } from './explanation-view.ts'

define('signalbox-settle', SignalboxSettle)
define('signalbox-reopen', SignalboxReopen)

/** What there is to know, the chart, the log, the details. */
export type Part = 'told' | 'chart' | 'log' | 'details'

const partWords: Readonly<Record<Part, string>> = { told: 'To know', chart: 'Chart', log: 'Log', details: 'Details' }

export interface Told {
  readonly app: App
  readonly seen: ActorAnswer
  /** What a command sent; undefined for other kinds, and until it is known. */
  readonly send: SentWords | undefined
  /** What stands above the chart. */
  readonly above: readonly Explanation[]
  /** Where this is drawn; `stay`: it is drawn again, and stays in sight where one part is shown at a time. */
  readonly root: ParentNode
  readonly stay: () => void
}

/** What needs a person, and what a person settled; everything else is said beside the chart. */
export const isAbove = ({ tone }: Explanation, { settlement }: ActorAnswer): boolean =>
  tone !== 'quiet' || settlement !== null

/** A command that never came to a task has none of its own; then its task is where its message was found. */
function subjectOf(app: App, { actor, delivery, evidence, settlement }: ActorAnswer): Subject {
  const { kind, id, agentId, taskId } = actor
  const localId = taskId ?? delivery?.localId ?? evidence?.localId ?? null
  const successorId = settlement?.successorId ?? null
  return { app, commandId: kind === 'command' ? id : null, agentId, localId, successorId }
}

/** The form that somebody is writing in: it stays until they are done with it, whoever decides meanwhile. */
export function writtenIn(root: ParentNode, commandId: string): 'settle' | 'reopen' | undefined {
  const isWritten = (form: SignalboxSettle | SignalboxReopen | null): boolean =>
    form !== null && form.open && form.commandId === commandId
  if (isWritten(root.querySelector('signalbox-settle'))) return 'settle'
  return isWritten(root.querySelector('signalbox-reopen')) ? 'reopen' : undefined
}

/** Settling, or taking that back: of a command that is over, for whoever may act on it. */
function deciding({ app, seen, send, root }: Told): TemplateResult | typeof nothing {
  const { actor, settlement, reopenings } = seen
  if (actor.status !== 'done' || !send?.operable || send.id !== actor.id) return nothing
  const form = writtenIn(root, actor.id) ?? (settlement ? 'reopen' : actor.attention ? 'settle' : undefined)
  if (form === 'reopen') {
    const reopened = settlement ? null : (reopenings[0] ?? null)
    return html`<signalbox-reopen .app=${app} .commandId=${actor.id} .reopened=${reopened}></signalbox-reopen>`
  }
  return form === 'settle'
    ? html`<signalbox-settle .app=${app} .commandId=${actor.id} .decided=${settlement}></signalbox-settle>`
    : nothing
}

/** What was sent, and what needs a person. Once it is settled or reopened the focus stays here, where that is said. */
export function toldPart(told: Told): TemplateResult | typeof nothing {
  const { app, seen, send, above, stay } = told
  if (above.length === 0 && !send) return nothing
  const { evidence, reopenings, replaces } = seen
  const subject = subjectOf(app, seen)
  const focus = ({ currentTarget }: Event): void => {
    if (currentTarget instanceof HTMLElement) currentTarget.focus()
    stay()
  }
  return html`<div
    class="told"
    role="region"
    aria-label="What there is to know"
    tabindex="0"
    @settled=${focus}
    @reopened=${focus}
  >
    ${
      send
        ? html`<signalbox-sent
            .app=${app}
            .send=${send}
            .foundTaskId=${evidence?.taskId ?? null}
            .replaces=${replaces}
            .reopenings=${reopenings}
          ></signalbox-sent>`
        : nothing
    }
    ${above.map((each) => explanationNotice(each, subject, deciding(told)))}
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
