/**
 * `<signalbox-unfollowed>`: how many tasks are not followed, above the foot of the task list: their rows say what their agents said
 * last and look like any other. Leads to the one, or to what follows them. Owns showing; the words are domain/troubles.ts, and why
 * it is so stands on the task.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { failingToldAfterMs } from '../../domain/patience.ts'
import { UnfollowedTasksAnswer, unfollowedWords } from '../../domain/troubles.ts'
import type { App } from '../app.ts'
import { Again } from '../controllers/again.ts'
import { Query } from '../controllers/query.ts'
import type { Question } from '../queries.ts'
import { icon } from './icon.ts'
import { sheet } from './sheet.ts'
import { define } from './view.ts'

const unfollowedQuestion: Question<UnfollowedTasksAnswer> = {
  path: '/api/unfollowed-tasks',
  schema: UnfollowedTasksAnswer,
  freshness: 'steady',
}

/** Those that follow tasks and need a person, on the Actors page. */
const followersPath = '/actors?kind=subscription&needs=attention'

/** @element signalbox-unfollowed */
class SignalboxUnfollowed extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false } }
  static override styles = [
    sheet,
    css`
      a {
        display: flex;
        align-items: center;
        gap: 7px;
        min-height: 34px;
        padding: 4px 13px;
        border-top: 1px solid var(--sb-border);
        background: var(--sb-warn-soft);
        font-size: var(--sb-text-s);
        font-weight: 540;
        color: var(--sb-warn);
      }
      a:focus-visible {
        outline-offset: -2px;
      }
    `,
  ]
  declare app: App | undefined
  readonly #tasks = new Query(this, () => this.app && { queries: this.app.queries, question: unfollowedQuestion })

  constructor() {
    super()
    new Again(
      this,
      () => this.app,
      () => this.#tasks.refresh(),
      failingToldAfterMs / 4,
    )
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    const { data } = this.#tasks
    if (!app || !data) return nothing
    const words = unfollowedWords(data)
    const [task, ...others] = data.tasks
    if (!task) return nothing
    const path = others.length === 0 ? `/tasks/${task.localId}` : followersPath
    return html`<p class="sr" role="status">${words}</p>
      <a href=${app.router.href(path)} data-route=${path}>${icon('unplug', 14)}${words}</a>`
  }
}

define('signalbox-unfollowed', SignalboxUnfollowed)

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-unfollowed': SignalboxUnfollowed
  }
}
