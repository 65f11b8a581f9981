/** One actor of the list: which it is, where it is, and what keeps it there. And that there is none. Draws; which one is chosen is its caller's. */
import { html, nothing, type TemplateResult } from 'lit'
import { silentTitle } from '../../domain/actor-explanation.ts'
import { untakenTitle } from '../../domain/actor-wait.ts'
import { pathsOf, pathWords, type ActorSummary } from '../../domain/chart.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { actorPath, everyActor, isFiltered, isSameFilter, shortId, type ActorFilter } from './actors-questions.ts'
import { standingMark } from './actors-standing.ts'

export interface ActorRow {
  readonly app: App
  readonly actor: ActorSummary
  readonly isChosen: boolean
  readonly press: (event: MouseEvent, path: string) => void
}

/** Nobody does its work: whoever holds it is gone, or nobody took it. The former is said alone, for the latter follows from it. */
function halted({ silent, waits }: ActorSummary): TemplateResult | typeof nothing {
  if (!silent && !waits) return nothing
  return html`<span class="line">${standingMark({ tone: 'warn', words: silent ? silentTitle : untakenTitle })}</span>`
}

export function actorRow({ app, actor, isChosen, press }: ActorRow): TemplateResult {
  const path = actorPath(actor.kind, actor.id)
  const word = actor.status === 'active' ? 'Active' : 'Finished'
  return html`<li>
    <a
      href=${app.router.href(path)}
      data-route=${path}
      class=${actor.attention ? 'attention' : nothing}
      aria-current=${isChosen ? 'true' : nothing}
      @click=${(event: MouseEvent) => press(event, path)}
    >
      ${
        actor.attention
          ? icon('triangle-alert', 13, 'Needs attention')
          : html`<span class="lamp ${actor.status}" role="img" aria-label=${word} title=${word}></span>`
      }
      <span class="id mono ell" title=${actor.id}>${actor.kind}/${shortId(actor.id)}</span>
      ${app.format.when(actor.movedAt)}
      ${actor.title === '' ? nothing : html`<bdi class="line ell" title=${actor.title}>${actor.title}</bdi>`}
      ${pathsOf(actor.value).map((keys) => html`<span class="line state ell" title=${keys.join('.')}>${pathWords(keys)}</span>`)}
      ${halted(actor)}
    </a>
  </li>`
}

/** No row, and why. */
export function noRows(filter: ActorFilter): TemplateResult {
  if (isFiltered(filter)) {
    const onlyAttention = isSameFilter(filter, { ...everyActor, attention: true })
    return html`<div class="empty">
      ${icon(onlyAttention ? 'circle-check' : 'list-filter', 28)}
      <b>${onlyAttention ? 'Nothing needs attention' : 'No actor matches'}</b>
      <p>
        ${
          onlyAttention
            ? 'No command is uncertain, nothing has failed or lost its worker.'
            : 'Try fewer words, another kind, or all actors. Finished actors are searched among the newest 10,000 of a kind, titles among the newest 2,000; a whole ID finds any.'
        }
      </p>
    </div>`
  }
  return html`<div class="empty">
    ${icon('workflow', 28)}<b>No actors yet</b>
    <p>Send a message to an agent: its command becomes the first.</p>
  </div>`
}
